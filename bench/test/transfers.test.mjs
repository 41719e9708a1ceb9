import { DatabaseSync } from "@photostructure/sqlite";
import { Client } from "pg";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import * as postgres from "../postgres-domain.mjs";
import * as postgresTransfer from "../postgres-transfer.mjs";
import * as sqlite from "../sqlite-domain.mjs";
import * as sqliteTransfer from "../sqlite-transfer.mjs";
import { ACCOUNTS, checkCovered, partiesOf } from "../transfers.mjs";

test("no two calls that can be under way together share an account", () => {
  const calls = Array.from({ length: 4_000 }, (_, place) => partiesOf(100_000 + place));
  const accounts = calls.flatMap(({ debtor, creditor }) => [debtor, creditor]);
  expect(new Set(accounts).size).toBe(accounts.length);
  expect(Math.min(...accounts)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...accounts)).toBeLessThanOrEqual(ACCOUNTS);
});

test("a transfer that is not covered, or of an account that is not there, is refused", () => {
  const account = (id, balance) => ({ id: String(id), balance: String(balance) });
  expect(() => checkCovered([account(1, 10_000), account(2, 0)], 1)).not.toThrow();
  expect(() => checkCovered([account(1, 9_999), account(2, 10_000)], 1)).toThrow(/does not cover/);
  expect(() => checkCovered([account(1, 10_000)], 1)).toThrow(/1 accounts were locked/);
});

const STORES = { SQLite: sqliteSubject, PostgreSQL: postgresSubject };

describe.each(Object.keys(STORES))("transfers on %s", (store) => {
  const absent = store === "PostgreSQL" && inject("postgres").kind !== "running";

  test.skipIf(absent)("whole ones pass, each told once by the number of its call", async () => {
    const { make, written } = await STORES[store]();
    for (const call of [1, 2, 3]) await make(call);
    expect((await written(2)).toSorted()).toEqual([2, 3]);
  });

  test.skipIf(absent).each([
    ["a lost entry", "delete from entries where id = 1", /call 1, is not whole/],
    ["entries that are lost", "delete from entries", /is not whole/],
    ["an entry too many", "insert into entries (transfer, account, amount) values (1, 7, 0)", /not whole/],
    ["a debit of another amount", "update entries set amount = -1 where id = 1", /is not whole/],
    ["a credit of another amount", "update entries set amount = 1 where id = 2", /is not whole/],
    ["a transfer the wrong way", "update transfers set debtor = creditor, creditor = debtor", /not whole/],
    ["a transfer between others than its call's", "update transfers set call = 5", /call 5, is not whole/],
    ["a lost balance", "update accounts set balance = balance + 1 where id = 7", /1 balances are not/],
    ["a transfer without balances", "update accounts set balance = 100000000", /2 balances are not/],
    [
      "money that was made",
      `update accounts set balance = balance + 5 where id = 7;
       insert into entries (transfer, account, amount) values (99, 7, 5)`,
      /All balances come to/,
    ],
    ["an account that is gone", "delete from accounts where id = 7", /All balances come to/],
  ])("%s fails the round", async (_, tamper, expected) => {
    const { make, written, script } = await STORES[store]();
    await make(1);
    await expect(written(1)).resolves.toEqual([1]);
    await script(tamper);
    await expect(written(1)).rejects.toThrow(expected);
  });
});

function sqliteSubject() {
  const connection = new DatabaseSync(":memory:");
  onTestFinished(() => connection.close());
  connection.exec(sqlite.DOMAIN_TABLE);
  connection.exec(sqliteTransfer.TRANSFER_TABLES);
  return {
    make: (call) => sqlite.inTransaction(connection, () => sqliteTransfer.transfer(connection, call)),
    written: async (first) => sqlite.writtenCalls(connection, first),
    script: (text) => connection.exec(text),
  };
}

async function postgresSubject() {
  const client = new Client({ connectionString: inject("postgres").url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("set search_path to pg_temp"); // tables of this session, gone with it
  await client.query(postgres.DOMAIN_TABLE);
  await client.query(postgresTransfer.TRANSFER_TABLES);
  return {
    make: (call) => postgresTransfer.transfer(client, call),
    written: (first) => postgres.writtenCalls(client, first),
    script: (text) => client.query(text),
  };
}
