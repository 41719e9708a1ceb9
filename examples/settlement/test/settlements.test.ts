import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../test/support/processes.ts";
import { startBank } from "../src/bank/bank.ts";
import {
  type Answered,
  CALLERS,
  type Caller,
  ledger,
  newCaller,
  setFaults,
  settle,
} from "./support/calls.ts";
import { sharedService, startService } from "./support/launch.ts";
import { databases, freshPlace, type Place, temporaryFolder } from "./support/places.ts";

const soon = {
  BANK_TIMEOUT: "5s",
  STORE_TIMEOUT: "20s",
  SWEEP_INTERVAL: "100ms",
  RECONCILE_INTERVAL: "100ms",
  SWEEP_GRACE: "100ms",
};

describe.for(databases)("settlements on $name", ({ name, skip }) => {
  const service = sharedService({ name, skip }, { ...CALLERS, ...soon });
  afterEach(async () => {
    if (!skip) await setFaults(service().bankUrl, {});
  });

  test.skipIf(skip)("an order is settled once, and every copy of it gets the same answer", async () => {
    const { url, bankUrl } = service();
    const [alice, key] = [newCaller(), randomUUID()];
    const first = await alice.settle(url, { key });
    const [payment] = await alice.payments(bankUrl);
    expect(first.status).toBe(201);
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    const { id } = first.body;
    expect(first.body).toEqual({ id, status: "settled", ...alice.order, externalReference: payment?.["id"] });
    expect(first.headers.get("location")).toBe(`/settlements/${id}`);
    expect(Date.parse(first.headers.get("idempotency-expires") ?? "")).toBeGreaterThan(Date.now());
    for (const sent of [key, `"${key}"`]) expectCopy(await alice.settle(url, { key: sent }), first);
    expect(await alice.payments(bankUrl)).toEqual([payment]);
    expect((await alice.call(url, `GET /settlements/${id}`)).body).toEqual(first.body);
    expect(JSON.parse((await alice.call(url, "GET /settlements")).text)).toEqual([first.body]);
  });

  test.skipIf(skip)(
    "of fifty simultaneous copies one runs, the others are told so or get its answer",
    async () => {
      const { url, bankUrl } = service();
      await setFaults(bankUrl, { delayMs: 300 });
      const [alice, key] = [newCaller(), randomUUID()];
      const answers = await Promise.all(Array.from({ length: 50 }, () => alice.settle(url, { key })));
      const first = answers.filter(
        ({ status, headers }) => status === 201 && !headers.has("idempotent-replayed"),
      );
      expect(first).toHaveLength(1);
      const copies = answers.filter((answer) => answer !== first[0]);
      for (const copy of copies.filter(({ status }) => status !== 409)) expectCopy(copy, first[0]);
      const conflicts = copies.filter(({ status }) => status === 409);
      expect(conflicts.length).toBeGreaterThan(0);
      for (const { body, headers } of conflicts) {
        expect(body).toMatchObject({ code: "in_progress", status: 409 });
        expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      }
      expect(await alice.payments(bankUrl)).toHaveLength(1);
      expectCopy(await alice.settle(url, { key }), first[0]);
    },
  );

  test.skipIf(skip)(
    "one key of two callers is two keys, and one key for another order is refused",
    async () => {
      const { url, bankUrl } = service();
      const [alice, bob, key] = [newCaller(), newCaller(), randomUUID()];
      const [hers, his] = [await alice.settle(url, { key }), await bob.settle(url, { key })];
      expect([hers.status, his.status]).toEqual([201, 201]);
      expect(his.headers.has("idempotent-replayed")).toBe(false);
      expect(his.body["id"]).not.toBe(hers.body["id"]);
      for (const [who, own, others] of [
        [alice, hers, his],
        [bob, his, hers],
      ] as const) {
        expect(JSON.parse((await who.call(url, "GET /settlements")).text)).toEqual([own.body]);
        expect(await who.call(url, `GET /settlements/${others.body["id"]}`)).toMatchObject({ status: 404 });
        expect(await who.payments(bankUrl)).toHaveLength(1);
      }
      const other = await alice.settle(url, { key, body: { ...alice.order, amount: "12.51" } });
      expect(other).toMatchObject({ status: 422, body: { code: "key_reused" } });
      expect(await alice.payments(bankUrl)).toHaveLength(1);
    },
  );

  test.skipIf(skip)(
    "a bank that takes no payments is a 503, and the same key settles once it does",
    async () => {
      const { url, bankUrl } = service();
      await setFaults(bankUrl, { unavailable: true });
      const [alice, key] = [newCaller(), randomUUID()];
      const refused = await alice.settle(url, { key });
      expect(refused).toMatchObject({ status: 503, body: { code: "not_performed", effect: "none" } });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(await rowsOf(service(), alice)).toEqual({ abandoned: 1 });
      await setFaults(bankUrl, {});
      const settled = await alice.settle(url, { key, body: { ...alice.order, amount: "13.00" } });
      expect(settled).toMatchObject({ status: 201, body: { status: "settled", amount: "13.00" } });
      expect(await alice.payments(bankUrl)).toMatchObject([{ amount: "13.00" }]);
      expect(await rowsOf(service(), alice)).toEqual({ settled: 1 });
    },
  );

  test.skipIf(skip)(
    "a bank that cannot be reached is a 503, and the same key settles once it can",
    async () => {
      const dataDir = temporaryFolder();
      const gone = await startBank({ port: 0, dataDir });
      await gone.close();
      const place = await freshPlace(name);
      const { url, bankUrl } = await startService({ ...place.environment, BANK_URL: gone.url });
      expect(bankUrl).toBe(gone.url);
      const key = randomUUID();
      expect(await settle(url, { key })).toMatchObject({ status: 503, body: { code: "not_performed" } });
      const bank = await startBank({ port: gone.port, dataDir });
      onTestFinished(() => bank.close());
      expect(await settle(url, { key })).toMatchObject({ status: 201 });
      expect(await ledger(bank.url)).toHaveLength(1);
      expect(await place.count("SELECT count(*) FROM settlements")).toBe(1);
    },
  );

  test.skipIf(skip)("a decline is a 402 that is kept after the bank has changed its mind", async () => {
    const { url, bankUrl } = service();
    await setFaults(bankUrl, { decline: true });
    const [alice, key] = [newCaller(), randomUUID()];
    const declined = await alice.settle(url, { key });
    expect(declined).toMatchObject({ status: 402, body: { ...alice.order, status: "declined" } });
    await setFaults(bankUrl, {});
    expectCopy(await alice.settle(url, { key }), declined);
    expect(await alice.payments(bankUrl)).toEqual([]);
    expect((await alice.call(url, `GET /settlements/${declined.body["id"]}`)).body).toEqual(declined.body);
  });

  const losses: readonly (readonly [what: string, faults: object, paid: boolean])[] = [
    ["a bank that pays and hangs up", { commitThenDrop: true }, true],
    ["a bank that pays, says nothing and hides it", { commitThenHang: true, hideForMs: 6000 }, true],
    ["a bank that hangs up without having paid", { down: true }, false],
  ];
  test.skipIf(skip).each(losses)("%s is a 504, and the same key gets the truth", async (_, faults, paid) => {
    const { url, bankUrl } = service();
    await setFaults(bankUrl, { ...faults });
    const [alice, key] = [newCaller(), randomUUID()];
    const lost = await alice.settle(url, { key });
    expect(lost).toMatchObject({ status: 504, body: { code: "outcome_unknown", effect: "maybe" } });
    expect(Number(lost.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await alice.payments(bankUrl)).toHaveLength(paid ? 1 : 0);
    if (!paid) await setFaults(bankUrl, {});
    const { settled, onTheWay } = await untilSettled(() => alice.settle(url, { key }));
    for (const { status, body } of onTheWay) expect([status, body["code"]]).toEqual([409, "outcome_unknown"]);
    const [payment, ...more] = await alice.payments(bankUrl);
    expect(more).toEqual([]);
    expect(settled.body).toMatchObject({ status: "settled", externalReference: payment?.["id"] });
    expect(settled.headers.has("idempotent-replayed")).toBe(paid);
    expect(await rowsOf(service(), alice)).toEqual({ settled: 1 });
  });

  test.skipIf(skip)(
    "keys that cannot be used are a 400, the same every time, and nothing is kept",
    async () => {
      const { url, bankUrl, count } = service();
      const alice = newCaller();
      const records = () => count("SELECT count(*) FROM oncekey_records");
      const before = await records();
      const unusable = [null, "", "k".repeat(256), '"half', 'half"', '" "', ["one", "two"]];
      for (const key of unusable) {
        const send = () => (Array.isArray(key) ? settleRaw(url, alice, key) : alice.settle(url, { key }));
        const [first, second] = [await send(), await send()];
        expect(first, String(key)).toMatchObject({ status: 400, text: second.text });
      }
      expect(await alice.settle(url, { key: "k".repeat(255) })).toMatchObject({ status: 201 });
      expect(await records()).toBe(before + 1);
      expect(await alice.payments(bankUrl)).toHaveLength(1);
    },
  );
});

function expectCopy(copy: Answered, first: Answered | undefined): void {
  expect({ status: copy.status, text: copy.text }).toEqual({ status: first?.status, text: first?.text });
  expect(copy.headers.get("idempotent-replayed")).toBe("true");
  for (const header of ["content-type", "location"]) {
    expect(copy.headers.get(header)).toBe(first?.headers.get(header));
  }
}

/** How many settlements of a caller's there are of each status. */
async function rowsOf({ count }: Place, { principal }: Caller): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const status of ["pending", "settled", "declined", "abandoned"]) {
    const query = `SELECT count(*) FROM settlements WHERE status = '${status}' AND owner = '${principal}'`;
    const rows = await count(query);
    if (rows > 0) found[status] = rows;
  }
  return found;
}

async function untilSettled(send: () => Promise<Answered>) {
  const onTheWay: Answered[] = [];
  let last = await send();
  await until(
    async () => {
      if (last.status === 201) return true;
      onTheWay.push(last);
      last = await send();
      return false;
    },
    { withinMs: 30_000, everyMs: 50 },
  );
  return { settled: last, onTheWay };
}

/** `fetch` would join the lines of a header into one. */
async function settleRaw(url: string, { token, order }: Caller, keys: readonly string[]) {
  const lines = { "content-type": "application/json", "idempotency-key": [...keys] };
  const headers = { authorization: `Bearer ${token}`, ...lines };
  const sent = request(`${url}/settlements`, { method: "POST", headers });
  sent.end(JSON.stringify(order));
  const [response] = await once(sent, "response");
  const chunks: Buffer[] = await response.toArray();
  const status: number = response.statusCode;
  return { status, text: Buffer.concat(chunks).toString() };
}
