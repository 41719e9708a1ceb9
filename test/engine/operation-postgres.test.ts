import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import { until } from "../support/processes.ts";
import { openBank, order, paying, payment } from "./bank.ts";
import { ofType, sqlEngineOn } from "./engines.ts";
import { openPostgres, type Sql } from "./stores.ts";

describe.skipIf(!postgresIsHere())("an operation on PostgreSQL", () => {
  let sql: Sql<PoolClient>;
  beforeAll(async () => {
    sql = await openPostgres();
  });
  afterAll(() => sql.close());

  /** An operation whose open waits for `goOn`. */
  function waiting(storeTimeout: number) {
    const bank = openBank();
    const told = sqlEngineOn(sql.store, { storeTimeout });
    let goOn = () => {};
    let opens = 0;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { pay } = paying(told.engine, sql, bank, {
      open: async (tx, opening) => {
        const opened = await payment(sql, bank).open(tx, opening);
        opens += 1;
        await gate;
        return opened;
      },
    });
    return { ...told, bank, pay, goOn: () => goOn(), opens: () => opens };
  }

  test("whose open outlasts the store timeout has claimed nothing, also when open ends after all", async () => {
    const { events, bank, pay, goOn, opens } = waiting(150);
    expect((await pay(order("slow open"))).kind).toBe("store_unavailable");
    goOn();
    await until(() => opens() > 0);
    await until(async () => (await pay(order("slow open"))).kind === "settled");
    expect(await sql.rows("slow open")).toMatchObject([{ state: "paid" }]);
    expect(bank.asked).toHaveLength(1);
    expect(ofType(events, "lease_lost")).toEqual([]);
  });

  test("that is just being opened makes no duplicate wait for it", async () => {
    const { bank, pay, goOn, opens } = waiting(10_000);
    const first = pay(order("being opened"));
    await until(() => opens() === 1);
    const { pay: duplicate } = paying(sqlEngineOn(sql.other).engine, sql, bank);
    expect(await duplicate(order("being opened"))).toMatchObject({ kind: "in_progress", record: null });
    goOn();
    expect(await first).toMatchObject({ kind: "settled" });
    expect(await duplicate(order("being opened"))).toMatchObject({ kind: "replay" });
  });
});
