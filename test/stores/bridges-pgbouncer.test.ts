import { drizzle } from "drizzle-orm/node-postgres";
import knexOf from "knex";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { Pool } from "pg";
import postgres from "postgres";
import { describe } from "vitest";
import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPg,
  fromPostgresJs,
} from "../../src/stores/postgres/index.ts";
import { pgbouncerIsHere, pooled } from "../support/databases.ts";
import { unitLaws } from "./bridges-laws.ts";
import { givenBy, layer, type OpenedLayer, type Tables } from "./bridges-layers.ts";
import { unitTests } from "./bridges-units.ts";
import { verdictTests } from "./bridges-verdicts.ts";

describe.skipIf(!pgbouncerIsHere())("behind PgBouncer in transaction mode, a unit opened by", () => {
  const laws = unitLaws();
  const all = <Tx>(given: () => OpenedLayer<Tx>) => {
    laws(given);
    unitTests(given);
    verdictTests(given);
  };
  // As many sessions as the store and the layer have connections would hide whether a session matters.
  const way = (url: string) => pooled({ url, poolSize: 5 });
  describe("pg", () => all(givenBy(onPg, true, way)));
  describe("postgres.js", () => all(givenBy(onPostgresJs, true, way)));
  describe("Kysely", () => all(givenBy(onKysely, true, way)));
  describe("Drizzle on pg", () => all(givenBy(onDrizzle, true, way)));
  describe("Knex", () => all(givenBy(onKnex, true, way)));
});

function poolOn(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: 6 });
  pool.on("connect", (client) => void client.on("error", () => {}));
  pool.on("error", () => {});
  return pool;
}

function onPg(url: string) {
  const pool = poolOn(url);
  return layer(
    fromPg(pool),
    (tx, text) => tx.query(text),
    () => pool.end(),
  );
}

function onKysely(url: string) {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOn(url) }) });
  const statement = (tx: Pick<typeof db, "executeQuery">, text: string) =>
    tx.executeQuery(CompiledQuery.raw(text));
  return layer(fromKysely(db), statement, () => db.destroy());
}

function onPostgresJs(url: string) {
  const sql = postgres(url, { max: 6, prepare: false, onnotice: () => {} });
  return layer(
    fromPostgresJs(sql),
    (tx, text) => tx.unsafe(text),
    () => sql.end({ timeout: 1 }),
  );
}

function onDrizzle(url: string) {
  const pool = poolOn(url);
  return layer(
    fromDrizzle(drizzle(pool)),
    (tx, text) => tx.execute(text),
    () => pool.end(),
  );
}

function onKnex(url: string) {
  const knex = knexOf({ client: "pg", connection: url, pool: { min: 0, max: 6 } });
  return layer(
    fromKnex(knex),
    (tx, text) => tx.raw(text),
    () => knex.destroy(),
  );
}
