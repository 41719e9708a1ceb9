import { Readable } from "node:stream";
import Koa, { type Context } from "koa";
import { idempotency, protect } from "../../../src/http/koa.ts";
import { listening } from "../hosts.ts";
import { errorOf, gathered, playNative, waited } from "./playing.ts";
import type { Material } from "./script.ts";
import { type DifferentialHost, type DifferentialSite, OPTIONS } from "./site.ts";

export const koaHosts = (): readonly DifferentialHost[] => [
  koaHost("Koa", "route"),
  koaHost("Koa, mounted", "mount"),
];

function koaHost(name: string, by: "route" | "mount"): DifferentialHost {
  return {
    ...{ name, ways: Object.keys(WAYS), native: true, framesAnew: false },
    ...{ share: by === "route" ? 1 : 1 / 3 },
    ...{ hearsThrows: true, dropsEmpty: true },
    serve: async (site) => {
      const app = new Koa();
      app.silent = true;
      const handler = handlerOf(site);
      const kept = protect(site.engine, OPTIONS, handler);
      const mount = idempotency(site.engine, OPTIONS);
      app.use(async (context) => {
        if (!context.path.startsWith("/kept/")) await handler(context);
        else if (by === "mount") await mount(context, async () => await handler(context));
        else await kept(context, async () => {});
      });
      return await listening(app.listen(0, "127.0.0.1"));
    },
  };
}

function handlerOf(site: DifferentialSite) {
  return (context: Context): unknown => {
    const script = site.enter(context.method, context.url);
    if (script.kind === "own") return answered(script.way, script, context);
    context.respond = false;
    return playNative(script, context.res);
  };
}

async function answered(way: string, material: Material, context: Context): Promise<void> {
  await waited(material);
  context.status = material.status;
  for (const [name, values] of gathered(material.headers)) {
    const [only = ""] = values;
    context.set(name, values.length === 1 ? only : [...values]);
  }
  if (material.failure !== null) throw errorOf(material.failure);
  await WAYS[way]?.(context, material);
}

const WAYS: Readonly<Record<string, (context: Context, material: Material) => unknown>> = {
  "a body of text": (context, { text }) => {
    context.body = text;
  },
  "a body of bytes": (context, { bytes }) => {
    context.body = Buffer.from(bytes);
  },
  "a body of an object": (context, { json }) => {
    context.body = { json };
  },
  "a body of null": (context) => {
    context.body = null;
  },
  "a status alone": () => {},
  "a body, and then a status": (context, { text, status }) => {
    context.body = text;
    context.status = status;
  },
  "a stream": (context, { pieces }) => {
    context.body = Readable.from(pieces);
  },
  "a web stream": (context, { pieces }) => {
    context.body = new Blob([...pieces]).stream();
  },
  "a blob": (context, { bytes }) => {
    context.body = new Blob([bytes]);
  },
  redirect: (context) => context.redirect("/charges/1"),
  "type, cookies and text": (context, { text }) => {
    context.cookies.set("sid", "A");
    context.append("Link", "<c>");
    context.type = "text/plain";
    context.body = text;
  },
  attachment: (context, { bytes }) => {
    context.attachment("a.bin");
    context.body = Buffer.from(bytes);
  },
  throw: (context, { status }) => context.throw(Math.max(status, 400), "so"),
};
