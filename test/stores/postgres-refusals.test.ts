import { Client, Pool, type PoolClient } from "pg";
import { describe, expect, expectTypeOf, test } from "vitest";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import { untyped } from "../engine/untyped.ts";

describe("a PostgreSQL store", () => {
  test.each([
    ["nothing", {}, "pool"],
    ["a URL in the place of a pool", { pool: "postgres://localhost/shop" }, "pool"],
    ["a client in the place of a pool", { pool: new Client() }, "pool"],
    ["a sql that is none", { sql: {} }, "sql"],
    [
      "a layer without its bridge",
      { pool: new Pool(), transactions: { transaction: () => {} } },
      "transactions",
    ],
  ])("that is given %s says so by name when it is made", (_what, options, field) => {
    const make = () => postgresStore(untyped<{ pool: Pool }>(options));
    expect(make).toThrow(expect.objectContaining({ code: "configuration", field }));
  });

  test("knows the type of its pool's clients by itself", () => {
    const store = postgresStore({ pool: new Pool() });
    expectTypeOf(store).toEqualTypeOf<TransactionalStore<PoolClient, "async">>();
  });
});
