import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { CALLERS, type Caller, newCaller } from "./support/calls.ts";
import { sharedService } from "./support/launch.ts";
import { databases } from "./support/places.ts";

describe.for(databases)("accounts and transfers on $name", ({ name, skip }) => {
  const service = sharedService({ name, skip }, CALLERS);

  test.skipIf(skip)("an account is opened once per key and shown to its owner alone", async () => {
    const { url } = service();
    const [alice, bob] = [newCaller(), newCaller()];
    const given = { key: randomUUID(), body: { currency: "EUR", balance: "100" } };
    const opened = await alice.call(url, "POST /accounts", given);
    const { id } = opened.body;
    expect(opened.status).toBe(201);
    expect(opened.body).toEqual({ id, owner: alice.principal, currency: "EUR", balance: "100.00" });
    expect(opened.headers.get("location")).toBe(`/accounts/${id}`);
    const again = await alice.call(url, "POST /accounts", given);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.text).toBe(opened.text);
    expect((await alice.call(url, `GET /accounts/${id}`)).body).toEqual(opened.body);
    for (const path of [
      `/accounts/${id}`,
      "/accounts/nobody",
      "/accounts/%00",
      "/accounts/%ff",
      "/transfers/%00",
    ]) {
      expect(await bob.call(url, `GET ${path}`), path).toMatchObject({
        status: 404,
        body: { code: "not_found" },
      });
    }
    expect(await open(url, alice, "JPY", "0")).toMatchObject({ balance: "0" });
    expect(await open(url, alice, "KWD", "0.5")).toMatchObject({ balance: "0.500" });
  });

  test.skipIf(skip)("a transfer moves the money once per key, in two entries that cancel out", async () => {
    const { url, count } = service();
    const [alice, bob] = [newCaller(), newCaller()];
    const [from, to] = [await open(url, alice, "EUR", "10.00"), await open(url, bob, "EUR", "1.00")];
    const body = transferOf(from, to, "2.50");
    const key = randomUUID();
    const made = await alice.call(url, "POST /transfers", { key, body });
    const { id } = made.body;
    expect(made.status).toBe(201);
    expect(made.body).toEqual({ id, ...body });
    expect(made.headers.get("location")).toBe(`/transfers/${id}`);
    const again = await alice.call(url, "POST /transfers", { key, body });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.text).toBe(made.text);
    expect(await balances(url, from, to)).toEqual(["7.50", "3.50"]);
    expect((await alice.call(url, `GET /transfers/${id}`)).body).toEqual(made.body);
    expect(await bob.call(url, `GET /transfers/${id}`)).toMatchObject({ status: 404 });
    expect(await count(`SELECT count(*) FROM entries WHERE transfer_id = '${id}'`)).toBe(2);
    expect(await count(`SELECT sum(amount) FROM entries WHERE transfer_id = '${id}'`)).toBe(0);
  });

  test.skipIf(skip)("a transfer that cannot be made is a 422 that is kept, and moves nothing", async () => {
    const { url, count } = service();
    const [alice, bob] = [newCaller(), newCaller()];
    const mine = await open(url, alice, "EUR", "10.00");
    const also = await open(url, alice, "EUR", "1.00");
    const dollars = await open(url, alice, "USD", "10.00");
    const dinars = await open(url, alice, "KWD", "1");
    const full = await open(url, alice, "KWD", "999999999999999.999");
    const others = await open(url, bob, "EUR", "9.00");
    const refusals: readonly (readonly [code: string, field: string, change: object])[] = [
      ["insufficient_funds", "amount", { amount: "10.01" }],
      ["unknown_account", "from", { from: randomUUID() }],
      ["unknown_account", "from", { from: others.id }],
      ["unknown_account", "to", { to: randomUUID() }],
      ["currency_mismatch", "currency", { to: dollars.id }],
      ["currency_mismatch", "currency", { currency: "USD" }],
      ["balance_too_large", "amount", { from: dinars.id, to: full.id, amount: "0.001", currency: "KWD" }],
    ];
    for (const [code, field, change] of refusals) {
      const given = { key: randomUUID(), body: { ...transferOf(mine, also, "5.00"), ...change } };
      const refused = await alice.call(url, "POST /transfers", given);
      expect(refused, code).toMatchObject({ status: 422, body: { code, field, effect: "none" } });
      expect(refused.headers.get("content-type")).toBe("application/problem+json");
      const again = await alice.call(url, "POST /transfers", given);
      expect(again.headers.get("idempotent-replayed"), code).toBe("true");
      expect(again.text).toBe(refused.text);
    }
    expect(await balances(url, mine, also, full)).toEqual(["10.00", "1.00", "999999999999999.999"]);
    expect(await count(`SELECT count(*) FROM transfers WHERE owner = '${alice.principal}'`)).toBe(0);
    expect(await count(`SELECT count(*) FROM entries WHERE account_id = '${mine.id}'`)).toBe(0);
  });

  test.skipIf(skip)("opposite transfers at the same moment are all made, and no money is lost", async () => {
    const { url, count } = service();
    const alice = newCaller();
    const [one, two] = [await open(url, alice, "EUR", "100.00"), await open(url, alice, "EUR", "100.00")];
    const orders = Array.from({ length: 30 }, (_, index) => {
      const amount = index < 15 ? "2.00" : "1.00";
      return index % 2 === 0 ? transferOf(one, two, amount) : transferOf(two, one, amount);
    });
    const made = await Promise.all(orders.map((body) => alice.call(url, "POST /transfers", { body })));
    expect(made.map(({ status }) => status)).toEqual(Array(30).fill(201));
    expect(await balances(url, one, two)).toEqual(["99.00", "101.00"]);
    expect(await count(`SELECT count(*) FROM entries WHERE account_id IN ('${one.id}', '${two.id}')`)).toBe(
      60,
    );
  });

  test.skipIf(skip)("an account that is emptied by many at once never goes below zero", async () => {
    const { url, execute } = service();
    const alice = newCaller();
    const [from, to] = [await open(url, alice, "EUR", "5.00"), await open(url, alice, "EUR", "0")];
    const body = transferOf(from, to, "1.00");
    const made = await Promise.all(
      Array.from({ length: 12 }, () => alice.call(url, "POST /transfers", { body })),
    );
    expect(made.filter(({ status }) => status === 201)).toHaveLength(5);
    expect(made.filter(({ status }) => status === 422)).toHaveLength(7);
    expect(await balances(url, from, to)).toEqual(["0.00", "5.00"]);
    await expect(execute("UPDATE accounts SET balance = -1")).rejects.toThrow(/check constraint/i);
  });
});

interface Opened {
  readonly id: string;
  readonly owner: Caller;
  readonly balance: unknown;
}

async function open(url: string, owner: Caller, currency: string, balance: string): Promise<Opened> {
  const { status, body } = await owner.call(url, "POST /accounts", { body: { currency, balance } });
  expect(status).toBe(201);
  return { id: String(body["id"]), owner, balance: body["balance"] };
}

function transferOf(from: Opened, to: Opened, amount: string) {
  return { from: from.id, to: to.id, amount, currency: "EUR" };
}

async function balances(url: string, ...accounts: readonly Opened[]): Promise<readonly unknown[]> {
  const shown = accounts.map(({ id, owner }) => owner.call(url, `GET /accounts/${id}`));
  return (await Promise.all(shown)).map(({ body }) => body["balance"]);
}
