import { randomUUID } from "node:crypto";
import { createEngine, type Engine, type Operation, type Settling } from "oncekey";
import { createBankClient } from "./bank-client.ts";
import type { Configuration } from "./configuration.ts";
import type { Database } from "./database/database.ts";
import { postgresDatabase } from "./database/postgres.ts";
import { sqliteDatabase } from "./database/sqlite.ts";
import type { SettlementOrder } from "./domain/settlement.ts";
import { bankTimeoutWithin } from "./durations.ts";
import { tell } from "./process.ts";
import { settlingOperation } from "./settling.ts";

/** What every process of the service has, so that whatever one of them began, any other can end. */
export interface Parts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly database: Database<Tx, Settles>;
  readonly newId: () => string;
  /** Makes settling at this bank known to the engine and its workers. */
  readonly settlingAt: (bankUrl: string) => Operation<SettlementOrder>;
}

/** Opens the database that is configured and hands what stands on it to `use`. */
export async function withParts<T>(
  { database: place, durations }: Configuration,
  use: <Tx, Settles extends Settling>(parts: Parts<Tx, Settles>) => Promise<T>,
): Promise<T> {
  const { storeTimeoutMs } = durations;
  switch (place.kind) {
    case "sqlite":
      return await use(partsOn(await sqliteDatabase({ path: place.path, storeTimeoutMs }), durations));
    case "postgres":
      return await use(partsOn(await postgresDatabase({ url: place.url, storeTimeoutMs }), durations));
  }
}

function partsOn<Tx, Settles extends Settling>(
  database: Database<Tx, Settles>,
  { engine: settings, bankTimeoutMs }: Configuration["durations"],
): Parts<Tx, Settles> {
  const engine = createEngine({ store: database.store, namespace: "settlement", ...settings });
  engine.subscribe((event) => {
    if (event.type === "failure") tell(`While ${event.what}:`, event.error);
    if (event.type === "no_upkeep")
      tell(`No ${event.missing.join(" or ")} was seen on this store. ${event.advice}`);
  });
  const timeoutMs = bankTimeoutMs ?? bankTimeoutWithin(engine.policy.requestTimeoutMs);
  const newId = randomUUID;
  const settlingAt = (url: string) =>
    settlingOperation({ engine, database, bank: createBankClient({ url, timeoutMs }), newId });
  return { engine, database, newId, settlingAt };
}
