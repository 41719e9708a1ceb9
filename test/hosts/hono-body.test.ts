import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { validator } from "hono/validator";
import { afterEach, describe, expect, test } from "vitest";
import { ConfigurationError } from "../../src/errors.ts";
import { protect } from "../../src/http/hono.ts";
import { closeApps, principal, served } from "./hono-app.ts";
import { assertFirst, assertReplay, json } from "./laws/said.ts";

afterEach(closeApps);

describe("the body that was hashed still stands in c.req", () => {
  const readers: readonly (readonly [string, string, string, (c: Context) => Promise<unknown>, unknown])[] = [
    ["json()", "application/json", '{"a":1}', (c) => c.req.json(), { a: 1 }],
    ["text()", "text/plain", "caf\u00e9", (c) => c.req.text(), "caf\u00e9"],
    [
      "parseBody()",
      "application/x-www-form-urlencoded",
      "a=1&b=2",
      (c) => c.req.parseBody(),
      { a: "1", b: "2" },
    ],
    [
      "arrayBuffer()",
      "application/octet-stream",
      "abc",
      async (c) => (await c.req.arrayBuffer()).byteLength,
      3,
    ],
    ["blob()", "text/plain", "abc", async (c) => (await c.req.blob()).size, 3],
    [
      "formData()",
      "application/x-www-form-urlencoded",
      "a=1",
      async (c) => (await c.req.formData()).get("a"),
      "1",
    ],
  ];
  test.each(readers)("%s", async (_, type, body, read, expected) => {
    const { sent } = await served((app, engine) =>
      app.post(
        "/charges",
        protect(engine, { principal }, async (c) => c.json({ read: await read(c) })),
      ),
    );
    const request = { headers: [["Content-Type", type]] as const, body };
    const first = await sent(request);
    expect(JSON.parse(first.body.toString())).toEqual({ read: expected });
    assertReplay(first, await sent(request));
    expect((await sent({ ...request, body: `${body} ` })).status).toBe(
      type === "application/json" ? 200 : 422,
    );
  });

  test.each(["json", "form"] as const)(
    "after a validator of %s, and the bytes are compared",
    async (target) => {
      const { sent } = await served((app, engine) =>
        app.post(
          "/charges",
          validator(target, (value) => value),
          protect(engine, { principal }, (c) => c.json({ made: Math.random() }, 201)),
        ),
      );
      const form = { headers: [["Content-Type", "application/x-www-form-urlencoded"]] as const };
      const [one, other] =
        target === "json"
          ? [json("", '{"a":1}'), json("", '{"a":2}')]
          : [
              { ...form, body: "a=1" },
              { ...form, body: "a=2" },
            ];
      const own = { ...one, headers: one.headers.filter(([name]) => name === "Content-Type") };
      const first = await sent(own);
      assertFirst(first, 201);
      assertReplay(first, await sent(own));
      expect((await sent({ ...own, body: other.body })).status).toBe(422);
    },
  );

  test("a limit of its length may stand before", async () => {
    const { sent } = await served((app, engine) =>
      app.post(
        "/charges",
        bodyLimit({ maxSize: 5 }),
        protect(engine, { principal }, async (c) => c.text(await c.req.text(), 201)),
      ),
    );
    expect((await sent({ body: "abcdef" })).status).toBe(413);
    const first = await sent({ body: "abc" });
    expect(first.body.toString()).toBe("abc");
    assertReplay(first, await sent({ body: "abc" }));
  });

  test.each([
    ["its stream", (c: Context) => c.req.raw.text()],
    ["a form", (c: Context) => c.req.formData()],
  ])("where %s was taken before, nothing runs", async (_, take) => {
    const errors: Error[] = [];
    let runs = 0;
    const { sent, record } = await served((app, engine) => {
      app.onError((error, c) => {
        errors.push(error);
        return c.text("broken", 500);
      });
      const taking = async (c: Context, next: () => Promise<void>) => {
        await take(c);
        await next();
      };
      app.post(
        "/charges",
        taking,
        protect(engine, { principal }, (c) => {
          runs += 1;
          return c.text("made");
        }),
      );
    });
    const headers = [["Content-Type", "application/x-www-form-urlencoded"]] as const;
    expect((await sent({ headers, body: "a=1" })).status).toBe(500);
    expect(errors).toEqual([expect.any(ConfigurationError)]);
    expect([runs, await record()]).toEqual([0, null]);
  });
});
