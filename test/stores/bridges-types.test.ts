import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import knexOf, { type Knex } from "knex";
import { Kysely, PostgresDialect, type Transaction } from "kysely";
import { Pool, type PoolClient } from "pg";
import postgres from "postgres";
import { expectTypeOf, test } from "vitest";
import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPg,
  fromPostgresJs,
  postgresStore,
} from "../../src/stores/postgres/index.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import type { Tables } from "./bridges-layers.ts";

/** The handle that the units of a store are given. */
type HandleOf<Store> = Store extends TransactionalStore<infer Tx, "async"> ? Tx : never;

/** What a Drizzle database gives to the function of its `transaction`. */
type DrizzleTx<Db extends { transaction: (work: never) => unknown }> = Parameters<
  Parameters<Db["transaction"]>[0] extends infer Work extends (...given: never[]) => unknown ? Work : never
>[0];

test("units get the transaction type of their layer, without a word of the user's about types", async () => {
  const pool = new Pool({ max: 1 });
  const sql = postgres({ max: 1 });
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const [drizzle, drizzleJs] = [drizzleOnPg(pool), drizzleOnPostgresJs(sql)];
  const stores = {
    own: postgresStore<PoolClient>({ pool }),
    js: postgresStore({ sql }),
    pg: postgresStore({ sql, transactions: fromPg(pool) }),
    postgresJs: postgresStore({ pool, transactions: fromPostgresJs(sql) }),
    kysely: postgresStore({ pool, transactions: fromKysely(kysely) }),
    knex: postgresStore({ pool, transactions: fromKnex(knexOf({ client: "pg" })) }),
    drizzle: postgresStore({ pool, transactions: fromDrizzle(drizzle) }),
    drizzleJs: postgresStore({ pool, transactions: fromDrizzle(drizzleJs) }),
  };
  expectTypeOf(stores.own).toEqualTypeOf<TransactionalStore<PoolClient, "async">>();
  expectTypeOf(stores.pg).toEqualTypeOf<TransactionalStore<PoolClient, "async">>();
  expectTypeOf<HandleOf<typeof stores.js>>().toExtend<postgres.ReservedSql>();
  expectTypeOf<HandleOf<typeof stores.postgresJs>>().toExtend<postgres.ReservedSql>();
  expectTypeOf<HandleOf<typeof stores.kysely>>().toEqualTypeOf<Transaction<Tables>>();
  expectTypeOf<HandleOf<typeof stores.knex>>().toEqualTypeOf<Knex.Transaction>();
  expectTypeOf<HandleOf<typeof stores.drizzle>>().toEqualTypeOf<DrizzleTx<typeof drizzle>>();
  expectTypeOf<HandleOf<typeof stores.drizzleJs>>().toEqualTypeOf<DrizzleTx<typeof drizzleJs>>();
});
