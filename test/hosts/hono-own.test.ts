import { type Context, Hono } from "hono";
import { compress } from "hono/compress";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
import { HTTPException } from "hono/http-exception";
import { requestId } from "hono/request-id";
import { stream } from "hono/streaming";
import { afterEach, describe, expect, test } from "vitest";
import { CORS_LISTS } from "../../src/http/cors.ts";
import { protect } from "../../src/http/hono.ts";
import { closeApps, engineOf, principal, served } from "./hono-app.ts";
import { assertFirst, assertReplay } from "./laws/said.ts";
import { linesOf, type WireAnswer } from "./wire.ts";

afterEach(closeApps);

describe("Hono's ways of answering are kept as they were sent", () => {
  const ways: readonly (readonly [string, (c: Context) => Response | Promise<Response>])[] = [
    ["c.json", (c) => c.json({ a: 1 }, 201)],
    ["c.text with a header", (c) => c.text("made", 201, { "X-Own": "1" })],
    ["c.html", (c) => c.html("<p>made</p>")],
    ["c.body of bytes", (c) => c.body(Uint8Array.of(0, 255), 200, { "Content-Type": "image/png" })],
    ["c.body of nothing", (c) => c.body(null, 204)],
    ["c.redirect", (c) => c.redirect("/charges/1", 303)],
    [
      "c.header and c.status",
      (c) => {
        c.header("X-Own", "1");
        c.status(202);
        return c.json({});
      },
    ],
    ["c.notFound", (c) => c.notFound()],
    ["a bare Response", () => new Response("made", { status: 201 })],
    ["stream", (c) => stream(c, async (out) => void (await out.write("made")))],
    ["a thrown HTTPException", () => Promise.reject(new HTTPException(409, { message: "taken" }))],
    [
      "a thrown HTTPException with a response and a header set before",
      (c) => {
        c.header("X-Own", "1");
        throw new HTTPException(422, { res: new Response("own", { headers: { "X-Other": "2" } }) });
      },
    ],
  ];
  test.each(ways)("%s", async (_, answer) => {
    const bare = await served((app) => app.post("/charges", answer));
    const { sent, record } = await served((app, engine) =>
      app.post("/charges", protect(engine, { principal }, answer)),
    );
    const unprotected = await bare.sent();
    const first = await sent();
    assertFirst(first, unprotected.status);
    expect(first.body).toEqual(unprotected.body);
    for (const [name, value] of unprotected.headers) {
      if (!["date", "transfer-encoding", "content-length"].includes(name))
        expect(linesOf(first, name)).toEqual([value]);
    }
    await expect.poll(async () => (await record())?.state).toBe("completed");
    assertReplay(first, await sent());
  });
});

describe("layers around a protected route", () => {
  test("with the lists for CORS a script may send a key and see what became of it, refusals included", async () => {
    const { sent } = await served((app, engine) => {
      app.use(
        cors({
          origin: (origin) => origin,
          allowHeaders: ["content-type", ...CORS_LISTS.allowHeaders],
          exposeHeaders: ["location", ...CORS_LISTS.exposeHeaders],
        }),
      );
      app.post(
        "/charges",
        protect(engine, { principal }, (c) => c.json({ made: true }, 201)),
      );
    });
    const from = ["Origin", "https://a.test"] as const;
    const preflight = await sent({
      method: "OPTIONS",
      headers: [
        from,
        ["Access-Control-Request-Method", "POST"],
        ["Access-Control-Request-Headers", "idempotency-key"],
      ],
    });
    expect(listed(preflight, "access-control-allow-headers")).toContain("idempotency-key");
    const [first, copy] = [await sent({ headers: [from] }), await sent({ headers: [from] })];
    const refused = await sent({ headers: [from], body: "another request" });
    expect([first.status, copy.status, refused.status]).toEqual([201, 201, 422]);
    for (const answer of [first, copy, refused]) {
      expect(linesOf(answer, "access-control-allow-origin")).toEqual(["https://a.test"]);
      const exposed = listed(answer, "access-control-expose-headers");
      expect(exposed).toEqual(expect.arrayContaining(["idempotent-replayed", "retry-after", "location"]));
      const own = answer.headers.map(([name]) => name).filter((name) => name.startsWith("idempoten"));
      expect(own.filter((name) => !exposed.includes(name))).toEqual([]);
    }
    expect(linesOf(copy, "idempotent-replayed")).toEqual(["true"]);
  });

  test("CORS, request ids, compression and entity tags are each exchange's own", async () => {
    const { sent, record } = await served((app, engine) => {
      app.use(etag(), compress({ threshold: 1 }), cors({ origin: (origin) => origin }), requestId());
      app.post(
        "/charges",
        protect(engine, { principal }, (c) => c.json({ text: "x".repeat(2_000) }, 201)),
      );
    });
    const first = await sent({
      headers: [
        ["Origin", "https://a.test"],
        ["Accept-Encoding", "gzip"],
      ],
    });
    const copy = await sent({ headers: [["Origin", "https://b.test"]] });
    expect(linesOf(first, "access-control-allow-origin")).toEqual(["https://a.test"]);
    expect(linesOf(copy, "access-control-allow-origin")).toEqual(["https://b.test"]);
    expect(linesOf(first, "content-encoding")).toEqual(["gzip"]);
    expect(linesOf(copy, "content-encoding")).toEqual([]);
    expect(linesOf(copy, "x-request-id")).toHaveLength(1);
    expect(linesOf(copy, "x-request-id")).not.toEqual(linesOf(first, "x-request-id"));
    expect(JSON.parse(copy.body.toString())).toEqual({ text: "x".repeat(2_000) });
    const kept = await record();
    const names = kept?.state === "completed" ? kept.answer.headers.map(([name]) => name) : [];
    expect(names).toEqual(["content-type"]);
    const refused = await sent({ headers: [["Origin", "https://c.test"]], body: "other" });
    expect(refused.status).toBe(422);
    expect(linesOf(refused, "access-control-allow-origin")).toEqual(["https://c.test"]);
  });

  test("an error handler that answers with a bare Response says that the outcome is unknown", async () => {
    const { sent } = await served((app, engine) => {
      app.use(async (_, next) => await next());
      app.onError(() => new Response("own", { status: 500 }));
      app.post(
        "/charges",
        protect(engine, { principal }, () => {
          throw new Error("secret");
        }),
      );
    });
    const answer = await sent();
    expect([answer.status, answer.body.toString()]).toEqual([500, "own"]);
    expect(linesOf(answer, "idempotency-status")).toEqual(["unknown"]);
  });

  test("authentication that refuses is no answer of the key's", async () => {
    const { sent, record } = await served((app, engine) => {
      const asked = (c: Context) => {
        if (c.req.header("authorization") === undefined) throw new HTTPException(401);
        return "alice";
      };
      app.post(
        "/charges",
        protect(engine, { principal: asked }, (c) => c.text("made", 201)),
      );
    });
    expect((await sent()).status).toBe(401);
    expect(await record()).toBeNull();
    assertFirst(await sent({ headers: [["Authorization", "yes"]] }), 201);
  });
});

describe("what a route is called", () => {
  test("is its method and pattern, never a path that may hold a name; a route may name itself", async () => {
    const { sent, events } = await served((app, engine) => {
      const sub = new Hono().post(
        "/:user/pay",
        protect(engine, { principal }, (c) => c.text("made")),
      );
      app.route("/users", sub);
      app.post(
        "/charges",
        protect(engine, { principal, operation: "charge" }, (c) => c.text("made")),
      );
    });
    await sent({ target: "/users/alice/pay" });
    await sent();
    const names = events.flatMap((event) => (event.type === "request" ? [event.operation] : []));
    expect(names).toEqual(["POST /users/:user/pay", "charge"]);
  });

  test("a correlation id that no store could keep is left out", async () => {
    const ids = ["r-1", "", "r".repeat(5_000)];
    for (const id of ids) {
      const { sent, record } = await served((app, engine) => {
        const options = { principal, correlationId: (c: Context) => c.req.header("x-request-id") };
        app.post(
          "/charges",
          protect(engine, options, (c) => c.text("made", 201)),
        );
      });
      assertFirst(await sent({ headers: [["X-Request-Id", id]] }), 201);
      expect((await record())?.correlationId).toBe(id === "r-1" ? id : null);
    }
  });

  test("where Hono is not strict, a trailing slash is the same path to the fingerprint as well", async () => {
    const { engine } = engineOf();
    const app = new Hono({ strict: false });
    app.post(
      "/charges",
      protect(engine, { principal }, (c) => c.text("made", 201)),
    );
    const ask = (path: string) => app.request(path, { method: "POST", headers: { "Idempotency-Key": "k" } });
    expect((await ask("/charges")).status).toBe(201);
    const copy = await ask("/charges/");
    expect([copy.status, copy.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect((await ask("/charges//")).status).not.toBe(201);
  });
});

describe("a path is compared as Hono routed by it", () => {
  test.each([
    ["/charges/%61", "/charges/a", 201],
    ["/charges/caf%C3%A9", "/charges/caf%c3%a9", 201],
    ["/charges/%41", "/charges/a", 422],
    ["/charges/a%2Fb", "/charges/a%252Fb", 422],
    ["/charges/%ff", "/charges/%fe", 422],
  ])("%s and %s", async (one, other, status) => {
    const { sent } = await served((app, engine) => {
      app.post(
        "/charges/:name",
        protect(engine, { principal }, (c) => c.text(c.req.param("name") ?? "", 201)),
      );
    });
    const first = await sent({ target: one });
    assertFirst(first, 201);
    const copy = await sent({ target: other });
    expect(copy.status).toBe(status);
    if (status === 201) assertReplay(first, copy);
  });
});

describe("without a server's own request", () => {
  test("a key that may be two lines joined is taken as it reads", async () => {
    const { engine } = engineOf();
    const app = new Hono().post(
      "/charges",
      protect(engine, { principal }, (c) => c.text("made", 201)),
    );
    const ask = (key: string) =>
      app.request("/charges", { method: "POST", headers: { "Idempotency-Key": key } });
    expect((await ask('"a, b"')).status).toBe(201);
    expect((await ask("a, b")).status).toBe(400);
    expect((await ask('"a", "b"')).status).toBe(400);
  });
});

function listed(answer: WireAnswer, name: string): readonly string[] {
  return linesOf(answer, name).flatMap((line) => line.toLowerCase().split(/\s*,\s*/));
}
