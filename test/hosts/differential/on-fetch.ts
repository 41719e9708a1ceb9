import { serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { protect as protectFetch } from "../../../src/http/fetch.ts";
import { protect as protectHono } from "../../../src/http/hono.ts";
import { listening } from "../hosts.ts";
import { errorOf, waited } from "./playing.ts";
import type { Failure, Material, OwnScript, Script } from "./script.ts";
import { type DifferentialHost, OPTIONS } from "./site.ts";

export const fetchHosts = (): readonly DifferentialHost[] => [fetchHost(), honoHost()];

function fetchHost(): DifferentialHost {
  return {
    ...{ name: "fetch", ways: Object.keys(FETCH_WAYS), share: 1, native: false, framesAnew: true },
    ...{ hearsThrows: true, dropsEmpty: false },
    serve: async (site) => {
      const handler = async ({ method, url }: Request) => {
        const script = own(site.enter(method, new URL(url).pathname));
        await waited(script);
        if (script.failure !== null) throw thrownByFetch(script.failure);
        return FETCH_WAYS[script.way]?.(script) ?? new Response();
      };
      const kept = protectFetch(site.engine, OPTIONS, handler);
      const fetch = async (request: Request) => {
        const run = new URL(request.url).pathname.startsWith("/kept/") ? kept : handler;
        const failed = new Response("Internal Server Error", { status: 500 });
        // A thrown `Response` is an answer to every runtime that knows of such.
        return await run(request).catch((error) => (error instanceof Response ? error : failed));
      };
      return await listening(serve({ fetch, port: 0, hostname: "127.0.0.1" }));
    },
  };
}

function honoHost(): DifferentialHost {
  return {
    ...{ name: "Hono", ways: [...Object.keys(FETCH_WAYS), ...Object.keys(HONO_WAYS)] },
    ...{ share: 1, native: false, framesAnew: true },
    ...{ hearsThrows: true, dropsEmpty: false },
    serve: async (site) => {
      const handler = async (c: Context) => {
        const script = own(site.enter(c.req.method, c.req.path));
        await waited(script);
        for (const [name, value] of script.headers) c.header(name, value, { append: true });
        if (script.failure !== null) throw thrownByHono(script.failure);
        return await (HONO_WAYS[script.way]?.(c, script) ??
          FETCH_WAYS[script.way]?.(script) ??
          new Response());
      };
      const app = new Hono();
      const kept = protectHono(site.engine, OPTIONS, handler);
      const methods = ["GET", "HEAD", "POST"];
      app.on(methods, "/bare/:n", handler);
      app.on(methods, "/kept/:n", kept);
      app.onError((error, c) => {
        // As Hono's own, which besides writes to the console.
        if (error instanceof HTTPException)
          return c.newResponse(error.getResponse().body, error.getResponse());
        return c.text("Internal Server Error", 500);
      });
      return await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
    },
  };
}

function own(script: Script): OwnScript {
  if (script.kind === "native") throw new TypeError("There is no response of Node's own here.");
  return script;
}

function thrownByFetch(failure: Failure): unknown {
  if (failure.kind !== "status") return errorOf(failure);
  return new Response(failure.message, { status: failure.status, headers: { "x-thrown": "1" } });
}

function thrownByHono(failure: Failure): unknown {
  if (failure.kind !== "status") return errorOf(failure);
  const { status, message } = failure;
  return new HTTPException(500, { res: new Response(message, { status }), message });
}

const initOf = ({ status, headers }: Material) => ({ status, headers: headers.map(([...line]) => line) });

/** Fetch refuses bodies on these. */
const bodied = ({ status }: Material, body: ConstructorParameters<typeof Response>[0]) =>
  [204, 205, 304].includes(status) ? null : body;

const FETCH_WAYS: Readonly<Record<string, (material: Material) => Response>> = {
  "a Response of text": (material) => new Response(bodied(material, material.text), initOf(material)),
  "a Response of bytes": (material) => new Response(bodied(material, material.bytes), initOf(material)),
  "a Response of nothing": (material) => new Response(null, initOf(material)),
  "a Response of a blob": (material) =>
    new Response(bodied(material, new Blob([material.bytes], { type: "image/png" })), initOf(material)),
  "a Response of a form": (material) =>
    new Response(bodied(material, new URLSearchParams({ text: material.text })), initOf(material)),
  "a Response of a stream": (material) =>
    new Response(bodied(material, streamOf(material)), initOf(material)),
  "Response.json": (material) =>
    bodied(material, "") === null
      ? new Response(null, initOf(material))
      : Response.json({ json: material.json }, initOf(material)),
  "Response.redirect": () => Response.redirect("http://service.test/charges/1", 303),
};

const HONO_WAYS: Readonly<Record<string, (c: Context, material: Material) => Response | Promise<Response>>> =
  {
    "c.json": (c, { json }) => c.json({ json }),
    "c.text": (c, { text }) => c.text(text),
    "c.html": (c, { text }) => c.html(text),
    "c.body of text": (c, { text }) => c.body(text),
    "c.body of bytes": (c, { bytes }) => c.body(bytes),
    "c.body of null": (c) => c.body(null),
    "c.newResponse": (c, material) =>
      c.newResponse(
        [204, 205, 304].includes(material.status) ? null : material.text,
        new Response(null, { status: material.status, headers: { "x-own": "1" } }),
      ),
    "c.redirect": (c) => c.redirect("/charges/1"),
    "c.notFound": (c) => c.notFound(),
    stream: (c, material) =>
      stream(c, async (writer) => {
        for (const piece of material.pieces) {
          await writer.write(piece);
          await waited(material);
        }
      }),
  };

function streamOf(material: Material): ReadableStream<Uint8Array<ArrayBuffer>> {
  const left = [...material.pieces];
  return new ReadableStream({
    pull: async (controller) => {
      await waited(material);
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
}
