import { describe, expect, onTestFinished, test } from "vitest";
import { following } from "../../src/engine/command.ts";
import type { Awaitable } from "../../src/stores/store.ts";
import { afterwards } from "../stores/mutants/mutant.ts";
import { postgresIsHere, sqliteDriver } from "../support/databases.ts";
import { openBank, order, paying, payment } from "./bank.ts";
import { sqlEngineOn } from "./engines.ts";
import { openPostgres, openSqlite, type Sql } from "./stores.ts";

/** A table whose rows refer to their record, once and deferred, as a cautious programmer would write it. */
const table = (bytes: "BLOB" | "BYTEA") => `CREATE TABLE children (
  name TEXT NOT NULL PRIMARY KEY,
  record_id ${bytes} UNIQUE REFERENCES oncekey_records (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED
)`;

interface Parent<Tx> {
  readonly sql: Sql<Tx>;
  readonly adopt: (tx: Tx, name: string, recordId: Uint8Array) => Awaitable<void>;
  /** The names of the rows that refer to a record which is there. */
  readonly children: () => Promise<readonly unknown[]>;
}

const CHILDREN = "SELECT name FROM children JOIN oncekey_records ON id = record_id ORDER BY name";

describe("the record's id is its primary key for a foreign key of the user's", () => {
  describe("on SQLite", () =>
    refers(async () => {
      const sql = await openSqlite();
      onTestFinished(sql.close);
      const connection = new (sqliteDriver())(sql.url.replace("sqlite:", ""));
      connection.exec(`PRAGMA busy_timeout = 5000; ${table("BLOB")}`);
      onTestFinished(() => connection.close());
      return {
        sql,
        adopt: (tx, name, id) => void tx.prepare("INSERT INTO children VALUES (?, ?)").run(name, id),
        children: async () => connection.prepare(CHILDREN).all().map(nameOf),
      };
    }));
  describe.skipIf(!postgresIsHere())("on PostgreSQL", () =>
    refers(async () => {
      const sql = await openPostgres();
      onTestFinished(sql.close);
      const ask = (text: string) =>
        sql.store.transaction<readonly unknown[]>(async (tx) => ({
          kind: "commit",
          value: (await tx.query(text)).rows,
        }));
      await ask(table("BYTEA"));
      return {
        sql,
        adopt: async (tx, name, id) =>
          void (await tx.query("INSERT INTO children VALUES ($1, $2)", [name, id])),
        children: async () => (await ask(CHILDREN)).map(nameOf),
      };
    }),
  );
});

function refers<Tx>(open: () => Promise<Parent<Tx>>): void {
  test("in an operation's open and finish", async () => {
    const { sql, adopt, children } = await open();
    const bank = openBank();
    const { engine } = sqlEngineOn(sql.store);
    const plain = payment(sql, bank);
    const { pay } = paying(engine, sql, bank, {
      open: (tx, given) => {
        const opened = () => plain.open(tx, given);
        return afterwards(adopt(tx, "opened", given.attempt.recordId), opened);
      },
      finish: (tx, given) => {
        expect(given.attempt.recordId).toEqual(sql.store.recordId(order("key").identity));
        return plain.finish(tx, given);
      },
    });
    expect(await pay(order("key"))).toMatchObject({ kind: "settled", answer: { status: 201 } });
    expect(await children()).toEqual(["opened"]);
  });

  test.each(["two", "one"] as const)("in runInTransaction, of %s commits", async (commits) => {
    const { sql, adopt, children } = await open();
    const { engine } = sqlEngineOn(sql.store);
    const request = { operation: "adopt", principal: "alice", key: "key", commits };
    const run = () =>
      engine.runInTransaction(request, (tx, { recordId }) =>
        following(adopt(tx, commits, recordId), () => commits),
      );
    expect([await run(), await run()]).toEqual([commits, commits]);
    expect(await children()).toEqual([commits]);
  });
}

function nameOf(row: unknown): unknown {
  return typeof row === "object" && row !== null && "name" in row ? row.name : undefined;
}
