import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoreSubject, storeLaws, unmetNeeds } from "../../src/conformance/index.ts";
import { recordId } from "../../src/stores/codec.ts";
import { migrate, postgresStore } from "../../src/stores/postgres/index.ts";
import { freshPostgresDatabase, pgbouncerIsHere, pooled, postgresIsHere } from "../support/databases.ts";
import { seededRandom } from "../support/seed.ts";

const BEHIND_POOLER = "behind PgBouncer in transaction mode";

/** What users set on their `sql` that must not reach into the store. */
const flags = [
  ["as it comes", {}],
  [BEHIND_POOLER, { prepare: false }],
  [
    "with names, values and connections to another taste",
    {
      ...{ transform: postgres.camel, types: { text: shouting() } },
      ...{
        fetch_types: false,
        prepare: false,
        connection: { options: "-c default_transaction_isolation=serializable" },
      },
    },
  ],
] as const;

const here = flags.filter(([name]) => (name === BEHIND_POOLER ? pgbouncerIsHere() : postgresIsHere()));

describe.skipIf(!postgresIsHere()).each(here)(
  "the store on postgres.js, %s, keeps what the port promises",
  (name, options) => {
    let subject: StoreSubject;
    let close: () => Promise<void>;
    const random = seededRandom().fraction;
    beforeAll(async () => {
      const { url: direct, drop } = await freshPostgresDatabase();
      const pooler = name === BEHIND_POOLER ? await pooled({ url: direct, poolSize: 12 }) : undefined;
      const url = pooler?.url ?? direct;
      const [sql, other] = [postgres(url, { ...options, max: 6 }), postgres(url, { ...options, max: 6 })];
      await migrate(sql);
      const spoil = async (identity: Parameters<typeof recordId>[0]) =>
        void (await sql`update oncekey_records set tail = '[' where id = ${Buffer.from(recordId(identity))}`);
      subject = {
        ...{ store: postgresStore({ sql }), another: async () => postgresStore({ sql: other }), random },
        ...{ pause: (durationMs) => sleep(durationMs), damage: spoil },
      };
      close = async () => {
        for (const each of [sql, other]) await each.end();
        await pooler?.stop();
        await drop();
      };
    });
    afterAll(() => close());

    test("it lacks nothing and has its tables", async () => {
      expect(unmetNeeds(subject)).toEqual([]);
      await subject.store.check();
    });

    const named = storeLaws.map((law) => [law.id, law.promise, law] as const);
    test.each(named)("%s: %s", (_id, _promise, law) => law.check(subject));
  },
);

/** A parser that texts must not meet. */
function shouting() {
  return { to: 25, from: [25, 1043], serialize: String, parse: (text: string) => `${text}!` };
}
