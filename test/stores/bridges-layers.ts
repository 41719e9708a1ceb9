import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import knexOf from "knex";
import { CamelCasePlugin, CompiledQuery, Kysely, ParseJSONResultsPlugin, PostgresDialect } from "kysely";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe } from "vitest";
import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPg,
  fromPostgresJs,
  migrate,
  postgresStore,
  type TransactionSource,
} from "../../src/stores/postgres/index.ts";
import type { TransactionalStore } from "../../src/stores/store.ts";
import { freshPostgresDatabase, postgresIsHere } from "../support/databases.ts";

/** A table of the user's own, as Kysely knows it. */
export interface Tables {
  readonly effects: { readonly id: string };
}

/** A store whose units a layer opens. */
export interface OpenedLayer<Tx> {
  readonly url: string;
  readonly store: TransactionalStore<Tx, "async">;
  readonly other: TransactionalStore<Tx, "async">;
  readonly source: TransactionSource<Tx>;
  /** A store on the same records whose units this source opens. */
  readonly storeThrough: (source: TransactionSource<Tx>) => TransactionalStore<Tx, "async">;
  /** The user's own statement in a unit, as the layer sends it. */
  readonly statement: (tx: Tx, text: string) => PromiseLike<unknown>;
  /** Another store, on tables in a schema of this name. */
  readonly inSchema: (schema: string) => Promise<TransactionalStore<Tx, "async">>;
  /** A connection of the test's own. */
  readonly admin: Client;
  /** Resolves once a statement that was begun is on its way; most layers send it at once. */
  readonly untilSent: () => Promise<void>;
  /** postgres.js's `begin` (3.4) ends the process when the connection ends; Drizzle uses it. */
  readonly outlivesLoss: boolean;
  readonly effects: () => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

/** A layer on a database. */
interface Layer<Tx> {
  readonly source: TransactionSource<Tx>;
  readonly statement: OpenedLayer<Tx>["statement"];
  readonly end: () => Promise<void>;
  readonly untilSent?: () => Promise<void>;
}

/** Runs the same tests with the units of each layer. */
export function onEveryLayer(tests: <Tx>(given: () => OpenedLayer<Tx>) => void): void {
  const isMissing = !postgresIsHere();
  describe.skipIf(isMissing)("pg", () => tests(givenBy(onPg)));
  describe.skipIf(isMissing)("postgres.js", () => tests(givenBy(onPostgresJs)));
  describe.skipIf(isMissing)("Kysely", () => tests(givenBy(onKysely)));
  describe.skipIf(isMissing)("Drizzle on pg", () => tests(givenBy(onDrizzle)));
  describe.skipIf(isMissing)("Drizzle on postgres.js", () => tests(givenBy(onDrizzlePostgresJs, false)));
  describe.skipIf(isMissing)("Knex", () => tests(givenBy(onKnex)));
}

/** A sessions's default that no unit may depend on. */
const SERIALIZABLE = "-c default_transaction_isolation=serializable";

function poolOn(url: string): Pool {
  const pool = new Pool({ connectionString: url, max: 4, options: SERIALIZABLE });
  // What ends a lent connection is the layer's to hear of; not all listen.
  pool.on("connect", (client) => void client.on("error", () => {}));
  pool.on("error", () => {});
  return pool;
}

function sqlOn(url: string) {
  return postgres(url, { max: 4, connection: { options: SERIALIZABLE }, onnotice: () => {} });
}

function onPg(url: string) {
  const pool = poolOn(url);
  const source = fromPg(pool);
  return layer(
    source,
    (tx, text) => tx.query(text),
    () => pool.end(),
  );
}

function onPostgresJs(url: string) {
  const sql = sqlOn(url);
  return layer(
    fromPostgresJs(sql),
    (tx, text) => tx.unsafe(text),
    () => sql.end({ timeout: 1 }),
  );
}

function onKysely(url: string) {
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: poolOn(url) }),
    plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
  });
  const statement = (tx: Pick<typeof db, "executeQuery">, text: string) =>
    tx.executeQuery(CompiledQuery.raw(text));
  return layer(fromKysely(db), statement, () => db.destroy());
}

function onDrizzle(url: string) {
  const pool = poolOn(url);
  return layer(
    fromDrizzle(drizzleOnPg(pool)),
    (tx, text) => tx.execute(text),
    () => pool.end(),
  );
}

function onDrizzlePostgresJs(url: string) {
  const sql = sqlOn(url);
  const end = () => sql.end({ timeout: 1 });
  return layer(fromDrizzle(drizzleOnPostgresJs(sql)), (tx, text) => tx.execute(text), end);
}

function onKnex(url: string) {
  const connection = { connectionString: url, options: SERIALIZABLE };
  const knex = knexOf({
    client: "pg",
    connection,
    pool: { min: 0, max: 4 },
    postProcessResponse: inCapitals,
  });
  return layer(
    fromKnex(knex),
    (tx, text) => tx.raw(text),
    () => knex.destroy(),
  );
}

/** As mappers of names do it that are set up for all queries. */
function inCapitals(answer: { readonly rows?: readonly object[] }) {
  const rows = answer.rows?.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toUpperCase(), value])),
  );
  return { ...answer, rows };
}

/** Puts a layer together. */
export function layer<Tx>(
  source: TransactionSource<Tx>,
  statement: Layer<Tx>["statement"],
  end: () => Promise<void>,
): Layer<Tx> {
  return { source, statement, end };
}

/** Where the connections of a layer and of its store lead. */
type Way = (url: string) => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>;

const straight: Way = async (url) => ({ url, stop: async () => {} });

/** Opens a layer for the tests around it. */
export function givenBy<Tx>(
  make: (url: string) => Layer<Tx>,
  outlivesLoss = true,
  way = straight,
): () => OpenedLayer<Tx> {
  let opened: OpenedLayer<Tx> | undefined;
  beforeAll(async () => {
    opened = { ...(await open(make, way)), outlivesLoss };
  });
  afterAll(() => opened?.close());
  return () => {
    if (opened === undefined) throw new Error("The layer is open only while a test runs.");
    return opened;
  };
}

async function open<Tx>(
  make: (url: string) => Layer<Tx>,
  way: Way,
): Promise<Omit<OpenedLayer<Tx>, "outlivesLoss">> {
  const { url, drop } = await freshPostgresDatabase();
  const admin = new Client({ connectionString: url });
  await admin.connect();
  await migrate(admin);
  await admin.query("create table effects (id text primary key)");
  const through = await way(url);
  const { source, statement, end, untilSent = async () => {} } = make(through.url);
  const pool = new Pool({ connectionString: through.url, max: 6 });
  pool.on("error", () => {});
  const storeThrough = (transactions: TransactionSource<Tx>) => postgresStore({ pool, transactions });
  return {
    ...{ url, source, statement, untilSent, admin, storeThrough },
    store: storeThrough(source),
    other: storeThrough(source),
    inSchema: async (schema) => {
      await migrate(admin, { schema });
      return postgresStore({ pool, schema, transactions: source });
    },
    effects: async () => (await admin.query("select id from effects order by id")).rows.map(({ id }) => id),
    close: async () => {
      await end();
      await pool.end();
      await admin.end();
      await through.stop();
      await drop();
    },
  };
}

/** The layer, with each unit undone by a savepoint around it while its transaction commits. */
export function undoneBySavepoint<Tx>(
  source: TransactionSource<Tx>,
  statement: OpenedLayer<Tx>["statement"],
): TransactionSource<Tx> {
  return {
    ...source,
    open: (work, bounds) =>
      source.open(async (tx) => {
        await statement(tx, "savepoint outer_one");
        const value = await work(tx);
        await statement(tx, "rollback to savepoint outer_one");
        return value;
      }, bounds),
  };
}
