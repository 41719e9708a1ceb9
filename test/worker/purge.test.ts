import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Identity, RecordWrite } from "../../src/core/record.ts";
import { renew, seen } from "../../src/core/transition.ts";
import type { Store } from "../../src/stores/store.ts";
import { purge } from "../../src/worker/tick.ts";
import { engineOn } from "../engine/engines.ts";
import { onEverySqlStore } from "../engine/stores.ts";
import { claimOf, httpIdentity } from "../stores/sample.ts";
import { sqliteDriver } from "../support/databases.ts";

const EXPIRED = 3_000;
const AT_ONCE = 200;

describe("two purges at once, beside claims,", () => {
  onEverySqlStore((given) => {
    test("take every record whose retention is over once, in bounded statements, and no other; nobody gives way", async () => {
      const { store, other, url } = given();
      await store.insert(endedAt(httpIdentity("expired"), { at: 1_000_000_000_000 }));
      const look = await crowd(url);
      const kept = await live(store);
      expect(await store.count()).toMatchObject({ endedNotPurged: EXPIRED });

      const over = { now: false };
      const claims = [store, other].map((on, n) => claiming(on, `beside ${n}`, over));
      const purges = [store, other].map((on) =>
        purge(engineOn(on).engine, { limit: AT_ONCE, forMs: 60_000 }),
      );
      const purged = await Promise.all(purges);
      over.now = true;
      const claimed = (await Promise.all(claims)).flat();

      expect(purged.reduce((sum, tick) => sum + tick.purged, 0)).toBe(EXPIRED);
      expect(claimed.length).toBeGreaterThan(0);
      for (const identity of [...kept, ...claimed])
        expect((await store.read(identity)).record, identity.key).not.toBeNull();
      expect(await store.count()).toMatchObject({ endedNotPurged: 0 });
      const { deleted, most } = await look();
      expect(deleted).toBe(EXPIRED);
      expect(most).toBeLessThanOrEqual(AT_ONCE);
    });
  });
});

/** What no purge may take: retained, running, and in doubt. */
async function live(store: Store): Promise<readonly Identity[]> {
  const identities = ["retained", "running", "long dead"].map((key) => httpIdentity(key));
  const [retained, running, dead] = identities;
  if (retained === undefined || running === undefined || dead === undefined)
    throw new Error("Three were named.");
  await store.insert(endedAt(retained, { inMs: 600_000 }));
  await store.insert(claimOf(running));
  await store.insert({ ...claimOf(dead), leaseUntil: { at: 1_000 } } as RecordWrite);
  return identities;
}

function endedAt(
  identity: Identity,
  retainUntil: { readonly at: number } | { readonly inMs: number },
): RecordWrite {
  const claim = claimOf(identity);
  if (claim.state !== "in_progress") throw new Error(claim.state);
  const { leaseUntil: _, ...rest } = claim;
  return { ...rest, state: "released", retainUntil };
}

/** Claims and renews under new keys until it is over. A deadlock would be thrown, as contention. */
async function claiming(store: Store, name: string, over: { now: boolean }): Promise<readonly Identity[]> {
  const claimed: Identity[] = [];
  while (!over.now) {
    const identity = httpIdentity(`${name} ${claimed.length}`);
    const { record } = await store.insert(claimOf(identity));
    if (record.state !== "in_progress") throw new Error(record.state);
    const renewal = renew(record, { writeId: "renewed", leaseMs: 60_000 });
    expect((await store.replace(seen(record), renewal, "wait")).kind).toBe("replaced");
    claimed.push(identity);
  }
  return claimed;
}

/** How many rows were deleted in all, and by one statement at most. */
interface Deletions {
  readonly deleted: number;
  readonly most: number;
}

/** Makes copies of the expired record until there are EXPIRED of them, and has the database itself count what goes. */
async function crowd(url: string): Promise<() => Promise<Deletions>> {
  return url.startsWith("sqlite:") ? crowdSqlite(url.slice("sqlite:".length)) : await crowdPostgres(url);
}

function crowdSqlite(path: string): () => Promise<Deletions> {
  const connection = new (sqliteDriver())(path);
  onTestFinished(() => void connection.close());
  connection.exec("PRAGMA busy_timeout = 5000");
  const columns = connection
    .prepare("SELECT name FROM pragma_table_info('oncekey_records') ORDER BY cid")
    .all()
    .map((row) => String(Object(row).name));
  const values = columns.map((name) => (name === "id" ? "randomblob(16)" : name)).join(", ");
  connection.exec(`WITH RECURSIVE n (i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < ${EXPIRED})
      INSERT INTO oncekey_records SELECT ${values} FROM oncekey_records, n WHERE key = 'expired';
    CREATE TABLE deletions (many INTEGER);
    CREATE TRIGGER counted AFTER DELETE ON oncekey_records BEGIN INSERT INTO deletions VALUES (1); END`);
  return async () => {
    const found = connection.prepare("SELECT sum(many) AS deleted, max(many) AS most FROM deletions").get();
    return { deleted: Number(Object(found).deleted), most: Number(Object(found).most) };
  };
}

async function crowdPostgres(connectionString: string): Promise<() => Promise<Deletions>> {
  const client = new Client({ connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`
    INSERT INTO oncekey_records
      SELECT (jsonb_populate_record(one, jsonb_build_object('id', '\\x' || md5(n::text)))).*
      FROM oncekey_records AS one, generate_series(2, ${EXPIRED}) AS n WHERE state = 'released' AND due_at = 1000000000000;
    CREATE TABLE deletions (many bigint);
    CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO deletions SELECT count(*) FROM gone; RETURN NULL; END';
    CREATE TRIGGER counted AFTER DELETE ON oncekey_records REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION counted()`);
  return async () => {
    const { rows } = await client.query(
      "SELECT sum(many)::int AS deleted, max(many)::int AS most FROM deletions",
    );
    return { deleted: Number(rows[0]?.deleted), most: Number(rows[0]?.most) };
  };
}
