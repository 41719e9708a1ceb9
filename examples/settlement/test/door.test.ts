import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { call, order, settle } from "./support/calls.ts";
import { sharedService } from "./support/launch.ts";
import { databases } from "./support/places.ts";

describe.for(databases)("the door of the service on $name", ({ name, skip }) => {
  const service = sharedService({ name, skip }, {});
  const records = () => service().count("SELECT count(*) FROM oncekey_records");

  test.skipIf(skip)("who is not known is told so, and nothing is kept", async () => {
    const { url, bankUrl } = service();
    const before = await records();
    const routes = [
      "POST /settlements",
      "POST /accounts",
      "POST /transfers",
      "GET /settlements",
      "GET /accounts/1",
    ];
    for (const route of [...routes, "GET /settlements/1", "GET /transfers/1"]) {
      for (const token of [null, "demo-mallory", "demo-admin", ""]) {
        const refused = await call(url, route, {
          token,
          ...(route.startsWith("POST") ? { body: order } : {}),
        });
        expect(refused, `${route} ${token}`).toMatchObject({ status: 401, body: { code: "unauthorized" } });
        expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer /);
      }
    }
    expect(await records()).toBe(before);
    expect(await call(bankUrl, "GET /ledger")).toMatchObject({ status: 200, text: "[]" });
  });

  test.skipIf(skip)(
    "a body that cannot be used is refused by the name of its field, and nothing is kept",
    async () => {
      const { url } = service();
      const before = await records();
      const transfer = { from: "a", to: "b", amount: "1.00", currency: "EUR" };
      const account = { currency: "EUR", balance: "1.00" };
      const texts = {
        debtor: ["", 7, "a\0b", undefined],
        creditor: ["x".repeat(256)],
        reference: ["\ud800", null],
      };
      const amounts = ["0", "-1", "1e3", "12.505", "01", 12.5, " 1", undefined, "9".repeat(16)];
      const wrong = [
        ...fieldsOf("/settlements", order, { ...texts, currency: ["eur", "XXX", 1], amount: amounts }),
        ...fieldsOf("/transfers", transfer, {
          from: ["", undefined],
          to: ["a", 1],
          currency: ["€"],
          amount: amounts,
        }),
        ...fieldsOf("/accounts", account, { currency: ["EURO"], balance: ["-1", "1.001", 1, undefined] }),
      ];
      for (const { path, field, body } of wrong) {
        const refused = await call(url, `POST ${path}`, { body });
        const why = `${path} ${JSON.stringify(body)}`;
        expect(refused, why).toMatchObject({
          status: 422,
          body: { code: "invalid_field", field, effect: "none" },
        });
        expect(refused.headers.get("content-type")).toBe("application/problem+json");
      }
      const both = await settle(url, { body: { ...order, debtor: 1, creditor: 2 } });
      expect(both.body["errors"]).toMatchObject([{ field: "debtor" }, { field: "creditor" }]);
      for (const path of ["/settlements", "/transfers", "/accounts"]) {
        for (const body of ["", "{", '{"a":1}}', new Uint8Array([0x22, 0xff, 0x22])]) {
          expect(await call(url, `POST ${path}`, { body })).toMatchObject({
            status: 400,
            body: { code: "malformed_json" },
          });
        }
        for (const body of ["[]", "null", "1"]) {
          expect(await call(url, `POST ${path}`, { body })).toMatchObject({
            status: 422,
            body: { field: "body" },
          });
        }
        const long = JSON.stringify({ ...order, note: "x".repeat(70_000) });
        expect(await call(url, `POST ${path}`, { body: long })).toMatchObject({ status: 413 });
      }
      expect(await records()).toBe(before);
    },
  );

  test.skipIf(skip)(
    "a body that comes in chunks is the same request, and an endless one is refused",
    async () => {
      const { url } = service();
      const key = randomUUID();
      const send = async (body: ReadableStream) => {
        const headers = {
          authorization: "Bearer demo-alice",
          "idempotency-key": key,
          "content-type": "application/json",
        };
        return await fetch(`${url}/settlements`, { method: "POST", headers, body, duplex: "half" });
      };
      const text = JSON.stringify(order);
      const first = await send(streamOf([text.slice(0, 20), text.slice(20)]));
      expect(first.status).toBe(201);
      const again = await settle(url, { key });
      expect(again.text).toBe(await first.text());
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      const long = await send(streamOf([text, " ".repeat(70_000)]));
      expect(long.status).toBe(413);
    },
  );

  test.skipIf(skip)("health, readiness and the counter of outcomes need no token", async () => {
    const { url } = service();
    const open = { token: null };
    expect(await call(url, "GET /healthz", open)).toMatchObject({ status: 200, body: { status: "ok" } });
    expect(await call(url, "GET /readyz", open)).toMatchObject({ status: 200, body: { status: "ready" } });
    const counted = async () => (await call(url, "GET /metrics", open)).text;
    const before = await counted();
    const key = randomUUID();
    for (const amount of ["12.50", "12.50", "13.00"]) await settle(url, { key, body: { ...order, amount } });
    await settle(url, { key: null });
    await settle(url, { key: "k".repeat(256) });
    await call(url, "POST /accounts", { body: { currency: "EUR", balance: "1" } });
    const after = await counted();
    const outcomes = ["claimed", "replayed", "fingerprint_mismatch", "key_missing", "key_invalid"];
    for (const [operation, outcome] of [
      ...outcomes.map((each) => ["POST /settlements", each] as const),
      ["POST /accounts", "claimed"] as const,
    ]) {
      const label = `oncekey_requests_total{operation="${operation}",outcome="${outcome}"}`;
      expect(countIn(after, label), label).toBe(countIn(before, label) + 1);
    }
    for (const secret of [key, "alice", "demo-"]) expect(after).not.toContain(secret);
    expect((await call(url, "GET /metrics", open)).headers.get("content-type")).toMatch(
      /^text\/plain; version=0/,
    );
  });

  test.skipIf(skip)("a path that leads nowhere is a 404", async () => {
    const { url } = service();
    for (const route of ["GET /", "POST /nowhere", "DELETE /settlements", "GET /oncekey"]) {
      expect(await call(url, route), route).toMatchObject({ status: 404, body: { code: "no_such_route" } });
    }
  });
});

/** The value of one series in Prometheus' text format; 0 where it is not there yet. */
function countIn(metrics: string, series: string): number {
  const line = metrics.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? 0);
}

function streamOf(chunks: readonly string[]): ReadableStream {
  return new Blob([...chunks]).stream();
}

function fieldsOf(path: string, body: object, wrong: Readonly<Record<string, readonly unknown[]>>) {
  return Object.entries(wrong).flatMap(([field, values]) =>
    values.map((value) => ({ path, field, body: { ...body, [field]: value } })),
  );
}
