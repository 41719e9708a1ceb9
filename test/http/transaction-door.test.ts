import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTransactionDoor } from "../../src/http/transaction-door.ts";
import type { SqliteConnection } from "../../src/stores/sqlite/index.ts";
import { proceeded, requestFor, sqlEngineOn } from "../engine/engines.ts";
import { openSqlite } from "../engine/stores.ts";

describe("a handler's transaction", () => {
  let sql: Awaited<ReturnType<typeof openSqlite>>;
  beforeAll(async () => {
    sql = await openSqlite();
  });
  afterAll(() => sql.close());

  test("that is begun twice without being waited for commits once, and no rejection is left unheard", async () => {
    const unheard: unknown[] = [];
    const hear = (reason: unknown) => void unheard.push(reason);
    process.on("unhandledRejection", hear);
    const { engine } = sqlEngineOn(sql.store);
    const attempt = proceeded(await engine.begin(requestFor("twice", { effects: "transaction" })));
    const door = createTransactionDoor<SqliteConnection, "sync">(attempt, {
      ...{ keeps: () => true, keepsBody: true },
    });
    for (const id of [1, 2])
      void door.transaction(() => {
        return { status: 201, json: { id } };
      });
    expect(await door.unheard()).toBeNull();
    expect(door.outcome()).toMatchObject({ kind: "committed", answer: { status: 201 } });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", hear);
    expect(unheard).toEqual([]);
  });
});
