import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { afterEach, describe, expect, test } from "vitest";
import { idempotency } from "../../src/http/hono.ts";
import { closeApps, engineOf, principal, served } from "./hono-app.ts";
import { assertFirst, assertReplay, problemOf } from "./laws/said.ts";
import { linesOf } from "./wire.ts";

afterEach(closeApps);

const post = { body: '{"a":1}', headers: [["Content-Type", "application/json"]] } as const;

describe("a mount for the whole application", () => {
  test("protects POST and PATCH, asks for no key, and leaves the rest alone", async () => {
    let runs = 0;
    let exchanges = 0;
    const { sent, record, events } = await served((app, engine) => {
      app.use(async (c, next) => {
        exchanges += 1;
        c.header("x-exchange", String(exchanges));
        await next();
      });
      app.use(idempotency(engine, { principal, dropHeaders: ["x-exchange"] }));
      app.all("/charges/:id?", async (c) => {
        runs += 1;
        return c.json({ runs, body: await c.req.text() }, 201);
      });
    });
    for (const method of ["PUT", "GET"]) assertFirst(await sent({ method }), 201);
    expect(await record()).toBeNull();
    const first = await sent(post);
    expect(first.body.toString()).toBe('{"runs":3,"body":"{\\"a\\":1}"}');
    expect(linesOf(first, "idempotency-expires")).toHaveLength(1);
    const copy = await sent(post);
    const other = await sent({ ...post, method: "PATCH" });
    problemOf(other, "key_reused", { effect: "done" });
    expect([first, copy, other].map((answer) => linesOf(answer, "x-exchange"))).toEqual([
      ["3"],
      ["4"],
      ["5"],
    ]);
    expect([copy.body, linesOf(copy, "idempotent-replayed")]).toEqual([first.body, ["true"]]);
    for (const _ of [1, 2]) assertFirst(await sent({ headers: [["Idempotency-Key", ""]] }), 400);
    expect(runs).toBe(3);
    const names = events.flatMap((event) => (event.type === "request" ? [event.operation] : []));
    expect(names[0]).toBe("POST /charges/:id?");
  });

  test("a request without a key runs as it always did, its errors answered once", async () => {
    let pages = 0;
    const app = new Hono().use(idempotency(engineOf().engine, { principal }));
    app.post("/charges", () => {
      throw new Error("lost");
    });
    app.onError((_, c) => {
      pages += 1;
      return c.text("page", 500);
    });
    const answer = await app.request("/charges", { method: "POST" });
    expect([answer.status, await answer.text(), pages]).toEqual([500, "page", 1]);
  });

  const ways: readonly (readonly [string, (c: Context) => Response | Promise<Response>])[] = [
    ["c.json", (c) => c.json({ a: 1 }, 201)],
    ["c.body of nothing", (c) => c.body(null, 204)],
    ["a redirect", (c) => c.redirect("/charges/1", 303)],
    ["a bare Response", () => new Response("made", { status: 201, headers: { "x-own": "1" } })],
    ["a stream", (c) => stream(c, async (out) => void (await out.write("made")))],
    ["c.notFound", (c) => c.notFound()],
    ["an HTTPException, as the application answers it", () => Promise.reject(new HTTPException(409))],
  ];
  test.each(ways)("keeps %s as the bare application sends it", async (_, answer) => {
    const page = (app: Hono) =>
      app.onError((error, c) => {
        c.header("x-page", "1");
        return error instanceof HTTPException
          ? c.json({ said: error.status }, error.status)
          : c.text("?", 500);
      });
    const bare = await served((app) => void page(app).post("/charges", answer));
    const { sent, record } = await served((app, engine) => {
      app.use(
        (c, next) => {
          c.res.headers.set("x-layer", "1");
          return next();
        },
        idempotency(engine, { principal }),
      );
      page(app).post("/charges", answer);
    });
    const unprotected = await bare.sent();
    const first = await sent();
    assertFirst(first, unprotected.status);
    expect(first.body).toEqual(unprotected.body);
    for (const [name, value] of unprotected.headers) {
      if (!["date", "transfer-encoding", "content-length"].includes(name))
        expect(linesOf(first, name)).toEqual([value]);
    }
    await expect.poll(async () => (await record())?.state).toBe("completed");
    const copy = await sent();
    assertReplay(first, copy);
    expect(linesOf(copy, "x-layer")).toEqual(["1"]);
  });

  test("an error without a status leaves an unknown outcome, on the page that the application made of it once", async () => {
    let pages = 0;
    const { sent, record } = await served((app, engine) => {
      app.use(idempotency(engine, { principal }));
      app.post("/charges", () => {
        throw new Error("The connection broke off.");
      });
      app.onError((_, c) => {
        pages += 1;
        return c.text("page", 422);
      });
    });
    const first = await sent();
    expect([first.status, first.body.toString(), linesOf(first, "idempotency-status")]).toEqual([
      422,
      "page",
      ["unknown"],
    ]);
    problemOf(await sent(), "outcome_unknown", { retry: "never" });
    expect([pages, (await record())?.state]).toEqual([1, "unknown"]);
  });

  test("no route behind it can say that its answer is a replay", async () => {
    const { sent } = await served((app, engine) => {
      app.use(idempotency(engine, { principal }));
      app.post("/charges", (c) => c.text("made", 201, { "Idempotent-Replayed": "true" }));
    });
    const first = await sent();
    assertFirst(first, 201);
    assertReplay(first, await sent());
  });

  test("where the store is out of reach it says so, or runs and says so, as the route wants it", async () => {
    for (const failOpen of [false, true]) {
      const { sent } = await served((app, engine) => {
        const away = {
          ...engine,
          begin: async () => ({ kind: "store_unavailable", error: new Error("away") }) as const,
        };
        app.use(idempotency(away, { principal, failOpen }));
        app.post("/charges", (c) => c.text("made", 201));
      });
      const answer = await sent();
      expect([answer.status, linesOf(answer, "idempotency-status")]).toEqual(
        failOpen ? [201, ["unprotected"]] : [503, []],
      );
    }
  });
});
