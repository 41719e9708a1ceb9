import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "oncekey";
import { migrate, sqliteStore } from "oncekey/sqlite";
import { versionOf } from "./circumstances.mjs";
import { preparedForms } from "./keyed.mjs";
import { DOMAIN_TABLE, smallest, writtenCalls } from "./sqlite-domain.mjs";
import { sqliteFlows } from "./sqlite-flows.mjs";
import { bytesIn, NAIVE_TABLE, plainRow } from "./sqlite-naive.mjs";
import { TRANSFER_TABLES } from "./sqlite-transfer.mjs";

/** SQLite, as a file in a folder that is gone afterwards. */
export async function openSqlite() {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-"));
  const { DatabaseSync, driver } = await sqliteDriver();
  const connect = () => {
    const connection = new DatabaseSync(join(folder, "bench.db"));
    // FULL after WAL: some drivers fall back to NORMAL with the switch, which loses acknowledged commits.
    connection.exec("pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 50");
    return connection;
  };
  const raw = connect();
  const store = sqliteStore({ connect });
  const close = async () => {
    await store.close();
    raw.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const subject = await prepared({ raw, store });
    const { version } = raw.prepare("select sqlite_version() as version").get();
    const about = { database: `SQLite ${version} (WAL, synchronous FULL)`, driver, notes: subject.notes };
    return { store: "SQLite", loads: (asked) => asked, ...subject, about, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepared({ raw, store }) {
  await migrate(raw);
  raw.exec(DOMAIN_TABLE);
  raw.exec(TRANSFER_TABLES);
  raw.exec(NAIVE_TABLE);
  // Patient, so that a machine with much else to do makes slow calls and not failed ones.
  const engine = createEngine({ store, storeTimeout: "20s" });
  const forms = await preparedForms(engine, smallest);
  const recordBytes = bytesIn(raw, "oncekey_records");
  const { select, bytes } = plainRow(raw, recordBytes);
  return {
    notes: `a record of ${recordBytes} bytes, the row of the select ${bytes}`,
    flows: (inFlight) => sqliteFlows({ engine, raw, forms, select, inFlight }),
    written: async (first) => writtenCalls(raw, first),
  };
}

/** Node's own where this Node has it, else the same from npm. */
async function sqliteDriver() {
  const own = process.getBuiltinModule("node:sqlite");
  if (own !== undefined) return { DatabaseSync: own.DatabaseSync, driver: "node:sqlite" };
  const name = "@photostructure/sqlite";
  const { DatabaseSync } = await import("@photostructure/sqlite");
  return { DatabaseSync, driver: `${name} ${versionOf(name)}` };
}
