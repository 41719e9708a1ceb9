import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { gunzipSync } from "node:zlib";
import compression from "compression";
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from "express";
import { afterAll, describe, expect, test } from "vitest";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import { NotPerformed } from "../../src/errors.ts";
import { idempotency, keepBytes, protect } from "../../src/http/express.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { principal } from "./hono-app.ts";
import { listening } from "./hosts.ts";
import { assertFirst, assertReplay, json, problemOf } from "./laws/said.ts";
import { type HeaderLine, linesOf, send, type WireAnswer } from "./wire.ts";

const open: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of open) await close();
});

interface App {
  readonly sent: (body?: unknown, headers?: readonly HeaderLine[], method?: string) => Promise<WireAnswer>;
  readonly state: () => Promise<string | undefined>;
  readonly records: () => Promise<number>;
  /** The status of a request that does not say its length. */
  readonly chunked: (key: string, pieces: readonly string[]) => Promise<number | undefined>;
}

async function served(build: (app: express.Express, engine: Engine) => void): Promise<App> {
  const engine: Engine = createEngine({ store: memoryStore() });
  const app = express();
  build(app, engine);
  const { port, close } = await listening(createServer(app).listen(0, "127.0.0.1"));
  open.push(close);
  const identity = { kind: "http", principal: "alice", key: "k" } as const;
  return {
    sent: (body = { a: 1 }, headers = [], method = "POST") =>
      send(port, { method, target: "/charges", ...json("k", body, headers) }),
    state: async () => (await engine.store.read(identity)).record?.state,
    records: async () => (await engine.store.list({ limit: 10 })).records.length,
    chunked: async (key, pieces) => {
      const headers = { "idempotency-key": key };
      const asking = request({ port, method: "POST", path: "/charges", headers });
      for (const piece of pieces) asking.write(piece);
      asking.end();
      const [answer]: IncomingMessage[] = await once(asking, "response");
      answer?.resume();
      return answer?.statusCode;
    },
  };
}

const large = { text: "x".repeat(10_000) };

describe("compression is no part of what is kept", () => {
  const inside: RequestHandler = compression();
  const places = {
    before: (app: express.Express, engine: Engine) => {
      app.use(compression());
      app.post(
        "/charges",
        protect(engine, { principal }, (_request, response) => void response.json(large)),
      );
    },
    behind: (app: express.Express, engine: Engine) => {
      app.use(idempotency(engine, { principal }), inside);
      app.post("/charges", (_request, response) => void response.json(large));
    },
  };
  test.each(Object.entries(places))("%s protect", async (_, build) => {
    const { sent } = await served(build);
    const answers = [
      await sent({}, [["Accept-Encoding", "gzip"]]),
      await sent({}, []),
      await sent({}, [["Accept-Encoding", "gzip;q=0"]]),
    ];
    for (const answer of answers) {
      expect(answer.complete).toBe(true);
      const gzipped = linesOf(answer, "content-encoding").includes("gzip");
      expect(JSON.parse(String(gzipped ? gunzipSync(answer.body) : answer.body))).toEqual(large);
      expect(linesOf(answer, "vary")).toEqual(["Accept-Encoding"]);
    }
    expect(answers.map((answer) => linesOf(answer, "content-encoding"))).toEqual([["gzip"], [], []]);
    expect(answers.map((answer) => linesOf(answer, "idempotent-replayed").length)).toEqual([0, 1, 1]);
  });
});

describe("a body parser may stand before", () => {
  test("where it keeps the bytes they are compared", async () => {
    const { sent } = await served((app, engine) => {
      app.use(express.json({ verify: keepBytes }));
      app.post(
        "/charges",
        protect(engine, { principal }, (request: Request, response) => void response.json(request.body)),
      );
    });
    const first = await sent({ a: 1 });
    assertFirst(first, 200);
    expect(first.body.toString()).toBe('{"a":1}');
    assertReplay(first, await sent('{ "a": 1.0 }'));
    problemOf(await sent({ a: 2 }), "key_reused", { effect: "done" });
  });

  test("where it does not, nothing runs; behind protect it reads as always", async () => {
    const before = await served((app, engine) => {
      app.use(express.json());
      app.post(
        "/charges",
        protect(engine, { principal }, (_request, response) => void response.json({})),
      );
    });
    expect((await before.sent()).status).toBe(500);
    expect(await before.state()).toBeUndefined();
    const behind = await served((app, engine) => {
      app.use(idempotency(engine, { principal }), express.json());
      app.post("/charges", (request, response) => void response.status(201).json(request.body));
    });
    const first = await behind.sent({ a: "x".repeat(70_000) });
    assertFirst(first, 201);
    expect(JSON.parse(first.body.toString())).toEqual({ a: "x".repeat(70_000) });
    assertReplay(first, await behind.sent({ a: "x".repeat(70_000) }));
  });

  test("what its handler makes of the request changes no record and no retry (FP-04)", async () => {
    let fails = true;
    let runs = 0;
    const spoil = (request: Request & { rawBody?: unknown }) => {
      runs += 1;
      request.body.amount = 999;
      delete request.body.x;
      request.rawBody = Buffer.from("{}");
      request.url = "/other?z=1";
      request.headers = {};
    };
    const { sent, state, records } = await served((app, engine) => {
      app.use(express.json({ verify: keepBytes }));
      app.post(
        "/charges",
        protect(engine, { principal }, (request: Request, response) => {
          spoil(request);
          if (fails) throw new NotPerformed("The till is closed.");
          response.status(201).json(request.body);
        }),
      );
    });
    const body = { amount: 1, x: 1, y: 1 };
    problemOf(await sent(body), "not_performed", { retryAfter: true });
    expect([await state(), await records()]).toEqual(["released", 1]);
    fails = false;
    const first = await sent(body);
    assertFirst(first, 201);
    expect(JSON.parse(first.body.toString())).toEqual({ amount: 999, y: 1 });
    assertReplay(first, await sent(body));
    problemOf(await sent({ amount: 999, y: 1 }), "key_reused", { effect: "done" });
    expect([await state(), await records(), runs]).toEqual(["completed", 1, 2]);
  });

  test("one that is too long is 413 before the store is asked", async () => {
    const { sent, state, chunked } = await served((app, engine) => {
      app.post(
        "/charges",
        protect(engine, { principal, maxRequestBytes: 10 }, (_request, response) => void response.json({})),
      );
    });
    problemOf(await sent("x".repeat(11)), "request_too_large");
    expect(await state()).toBeUndefined();
    assertFirst(await sent("x".repeat(10)), 200);
    expect(await chunked("k2", ["x".repeat(6), "x".repeat(6)])).toBe(413);
    expect(await chunked("k3", ["x".repeat(5), "x".repeat(5)])).toBe(200);
  });
});

describe("what a handler's end means", () => {
  const declined: RequestHandler = () => {
    throw Object.assign(new Error("declined"), { status: 402 });
  };
  test("an error with a status is the answer that the application makes of it, and is kept", async () => {
    const page: ErrorRequestHandler = (error, _request, response, _next) =>
      void response.status(error.status ?? 500).json({ said: String(error.message) });
    for (const throwing of [
      declined,
      ((_request, _response, next) => next(new Error("no"))) satisfies RequestHandler,
    ]) {
      const { sent, state } = await served((app, engine) => {
        app.post("/charges", protect(engine, { principal }, throwing));
        app.use(page);
      });
      const first = await sent();
      if (throwing === declined) {
        assertFirst(first, 402);
        expect(first.body.toString()).toBe('{"said":"declined"}');
        assertReplay(first, await sent());
      } else {
        expect([first.status, linesOf(first, "idempotency-status"), await state()]).toEqual([
          500,
          ["unknown"],
          "unknown",
        ]);
      }
    }
  });

  test("a timeout layer's refusal is not the handler's: nothing runs again", async () => {
    let runs = 0;
    const { sent, state } = await served((app, engine) => {
      app.use((_request, response, next) => {
        setTimeout(() => {
          if (!response.headersSent) response.status(503).end("too slow");
        }, 30);
        next();
      });
      app.post(
        "/charges",
        protect(engine, { principal }, async () => {
          runs += 1;
          await new Promise((resolve) => setTimeout(resolve, 150));
        }),
      );
    });
    const first = await sent();
    expect([first.status, linesOf(first, "idempotency-status")]).toEqual([503, ["unknown"]]);
    problemOf(await sent(), "outcome_unknown", { retry: "never" });
    expect([runs, await state()]).toEqual([1, "unknown"]);
  });

  test("a handler that fails after it has answered leaves an unknown outcome", async () => {
    const { sent, state } = await served((app, engine) => {
      app.post(
        "/charges",
        protect(engine, { principal }, async (_request, response) => {
          response.end("made");
          throw new Error("failed afterwards");
        }),
      );
    });
    const first = await sent();
    expect([first.status, linesOf(first, "idempotency-status")]).toEqual([500, ["unknown"]]);
    expect(await state()).toBe("unknown");
  });

  test("a global mount asks for no key, and leaves other methods alone", async () => {
    let runs = 0;
    const { sent } = await served((app, engine) => {
      app.use(idempotency(engine, { principal }));
      app.all("/charges", (_request, response) => {
        runs += 1;
        response.status(201).send(String(runs));
      });
    });
    const first = await sent();
    assertReplay(first, await sent());
    for (const method of ["PUT", "DELETE", "PUT"]) assertFirst(await sent({}, [], method), 201);
    expect(runs).toBe(4);
  });

  test("a header that stood before the handler is each exchange's own; one that the handler has changed is kept", async () => {
    let exchanges = 0;
    const { sent } = await served((app, engine) => {
      app.use((_request, response, next) => {
        exchanges += 1;
        response.set({ "X-Exchange": String(exchanges), "X-Version": "old" });
        next();
      });
      app.post(
        "/charges",
        protect(engine, { principal }, (_request, response) => {
          response.setHeader("X-Version", "new");
          response.end("made");
        }),
      );
    });
    const answers = [await sent(), await sent(), await sent({ other: 1 })];
    expect(answers.map((answer) => linesOf(answer, "x-exchange"))).toEqual([["1"], ["2"], ["3"]]);
    expect(answers.map((answer) => linesOf(answer, "x-version"))).toEqual([["new"], ["new"], ["old"]]);
  });
});
