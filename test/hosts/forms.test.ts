import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import express, { type Request as ExpressRequest } from "express";
import { Hono } from "hono";
import { expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { idempotency, keepBytes, protect as protectExpress } from "../../src/http/express.ts";
import { protect as protectFetch } from "../../src/http/fetch.ts";
import { protect as protectHono } from "../../src/http/hono.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { listening } from "./hosts.ts";
import { assertFirst, assertReplay, keyed, problemOf } from "./laws/said.ts";
import { send } from "./wire.ts";

const principal = () => "alice";

/** What of a form makes it the same one: its fields, and of its file the name and the bytes. */
async function fieldsOf(form: FormData): Promise<unknown> {
  const file = form.get("file");
  if (!(file instanceof File)) return null;
  return { amount: form.get("amount"), name: file.name, file: new Uint8Array(await file.arrayBuffer()) };
}

async function reading(form: FormData): Promise<Response> {
  const file = form.get("file");
  const text = file instanceof File ? await file.text() : "no file";
  return new Response(`${form.get("amount")} ${text} ${Math.random()}`, { status: 201 });
}

const hosts: Readonly<Record<string, () => (request: Request) => Response | Promise<Response>>> = {
  fetch: () =>
    protectFetch(
      createEngine({ store: memoryStore() }),
      { principal, fingerprint: async (request) => await fieldsOf(await request.clone().formData()) },
      async (request) => await reading(await request.formData()),
    ),
  hono: () =>
    new Hono().post(
      "/forms",
      protectHono(
        createEngine({ store: memoryStore() }),
        { principal, fingerprint: async (c) => await fieldsOf(await c.req.formData()) },
        async (c) => await reading(await c.req.formData()),
      ),
    ).fetch,
};

test.each(Object.entries(hosts))(
  "on %s a form that is sent again with another boundary is the same one, and another file is not",
  async (_, open) => {
    const serve = open();
    const sent = async (amount: string, text: string, name = "f.txt") => {
      const body = new FormData();
      body.set("amount", amount);
      body.set("file", new File([text], name));
      const headers = { "idempotency-key": "k" };
      const answer = await serve(new Request("http://service.test/forms", { method: "POST", headers, body }));
      return { status: answer.status, text: await answer.text() };
    };
    const first = await sent("100", "hello");
    expect(first).toEqual({ status: 201, text: expect.stringMatching(/^100 hello /) });
    expect(await sent("100", "hello")).toEqual(first);
    for (const other of [sent("101", "hello"), sent("100", "hallo"), sent("100", "hello", "g.txt")]) {
      expect((await other).status).toBe(422);
    }
  },
);

const MAX_BYTES = 100_000;

const uploads: Readonly<Record<string, (max: number) => (request: Request) => Response | Promise<Response>>> =
  {
    fetch: (maxRequestBytes) =>
      protectFetch(
        createEngine({ store: memoryStore() }),
        { principal, maxRequestBytes },
        async (request) => new Response(String((await request.arrayBuffer()).byteLength)),
      ),
    hono: (maxRequestBytes) =>
      new Hono().post(
        "/forms",
        protectHono(createEngine({ store: memoryStore() }), { principal, maxRequestBytes }, async (c) =>
          c.text(String((await c.req.arrayBuffer()).byteLength)),
        ),
      ).fetch,
  };

test.each(Object.entries(uploads))(
  "on %s a body that does not say its length is read up to the limit, and no further (SL-04)",
  async (_, open) => {
    const serve = open(MAX_BYTES);
    const upload = async (pieces: number, key: string) => {
      let pulled = 0;
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (pulled === pieces) return controller.close();
          pulled += 1;
          controller.enqueue(new Uint8Array(10_000));
        },
      });
      const init = { method: "POST", headers: { "idempotency-key": key }, body, duplex: "half" } as const;
      const answer = await serve(new Request("http://service.test/forms", init));
      return { status: answer.status, text: await answer.text(), pulled };
    };
    const long = await upload(1_000, "long");
    expect(long.status).toBe(413);
    expect(long.pulled).toBeLessThan(20);
    expect(await upload(10, "whole")).toMatchObject({ status: 200, text: "100000", pulled: 10 });
    expect(await upload(0, "none")).toMatchObject({ status: 200, text: "0" });
  },
);

test("a body of unknown length that is longer than the limit reaches the handler of an observed route whole", async () => {
  const app = express();
  app.use(
    idempotency(createEngine({ store: memoryStore() }), { principal, observe: true, maxRequestBytes: 10 }),
    express.text({ limit: "1mb" }),
  );
  app.post("/texts", (request, response) => void response.status(201).send(request.body));
  const { port, close } = await listening(createServer(app).listen(0, "127.0.0.1"));
  try {
    const pieces = ["1234567", "8".repeat(7), "9".repeat(200_000)];
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const piece of pieces) controller.enqueue(Buffer.from(piece));
        controller.close();
      },
    });
    const headers = { "idempotency-key": "k", "content-type": "text/plain" };
    const init = { method: "POST", headers, body, duplex: "half" } as const;
    const answer = await fetch(`http://127.0.0.1:${port}/texts`, init);
    expect([answer.status, await answer.text()]).toEqual([201, pieces.join("")]);
  } finally {
    await close();
  }
});

test("a parser that has undone the compression hands on what a document it is", async () => {
  const app = express();
  app.use(express.json({ verify: keepBytes }));
  app.post(
    "/charges",
    protectExpress(
      createEngine({ store: memoryStore() }),
      { principal },
      (request: ExpressRequest, response) => response.status(201).json(request.body),
    ),
  );
  const { port, close } = await listening(createServer(app).listen(0, "127.0.0.1"));
  const sent = (body: string, level: number) => {
    const more = [
      ["Content-Type", "application/json"],
      ["Content-Encoding", "gzip"],
    ] as const;
    return send(port, { target: "/charges", ...keyed("k", more), body: gzipSync(body, { level }) });
  };
  try {
    const first = await sent('{"a":1,"b":2}', 9);
    assertFirst(first, 201);
    assertReplay(first, await sent('{"b":2,"a":1.0}', 0));
    problemOf(await sent('{"a":1,"b":3}', 9), "key_reused", { effect: "done" });
  } finally {
    await close();
  }
});
