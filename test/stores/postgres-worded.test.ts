import { randomUUID } from "node:crypto";
import type { PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { concludeClaim } from "../../src/core/transition.ts";
import { isGroundLost } from "../../src/stores/postgres/fenced-sql.ts";
import { type PostgresPool, postgresStore } from "../../src/stores/postgres/index.ts";
import { isEndedInside } from "../../src/stores/postgres/same-transaction.ts";
import { postgresIsHere } from "../support/databases.ts";
import { openTestDatabase, type TestDatabase } from "./postgres-server.ts";
import { answerOf, claimOf, httpIdentity } from "./sample.ts";

const GERMAN = "doppelter Schlüsselwert verletzt Unique-Constraint »oncekey_records_pkey«";
const FRENCH = "la valeur d'une clé dupliquée rompt la contrainte unique « oncekey_records_pkey »";

describe("what a server says in another language", () => {
  test.each([GERMAN, FRENCH])("is understood where a claim lost at the primary key: %s", (message) => {
    const said = Object.assign(new Error(message), { code: "23505" });
    expect(isGroundLost(said)).toBe(true);
    expect(isGroundLost(new Error("Failed query", { cause: said }))).toBe(true);
  });

  test("is understood where a write met another version, or another transaction", () => {
    const cast = (words: string) =>
      Object.assign(new Error(`ungültige Eingabesyntax: »${words}«`), { code: "22P02" });
    expect(isGroundLost(cast("oncekey: another version stands 0"))).toBe(true);
    expect(isEndedInside(cast("oncekey: another transaction 1796059807739123"))).toBe(true);
    expect(isEndedInside(cast("oncekey: another version stands 0"))).toBe(false);
  });

  test("is not taken from a statement that a layer quotes, whatever key its client chose", () => {
    for (const key of [
      "oncekey_records_pkey",
      "oncekey: another version stands 0",
      "oncekey: another transaction 1",
    ]) {
      const cause = Object.assign(new Error("could not serialize access"), { code: "40001" });
      const quoted = new Error(`Failed query: INSERT INTO oncekey_records VALUES ('${key}')`, { cause });
      expect([key, isGroundLost(quoted), isEndedInside(quoted)]).toEqual([key, false, false]);
    }
  });
});

describe.skipIf(!postgresIsHere())("a claim in the effect's own transaction", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  test("that loses to a copy is refused, and told what stands, where the server speaks another language", async () => {
    const { store: other } = database.open();
    const { pool } = database.open();
    const store = postgresStore({ pool: speakingGerman(pool) });
    const identity = httpIdentity("loses");
    const end = await store.fenced({ kind: "claimable", identity, seen: null }, async (_, number) => {
      await other.insert(claimOf(identity));
      const answer = answerOf(new Uint8Array(1));
      const change = {
        writeId: randomUUID(),
        attempt: number ?? 0,
        answer,
        keep: { retainMs: 60_000, tombstoneMs: null },
      };
      const write = concludeClaim(claimOf(identity), { ...change, state: "completed" });
      return { kind: "commit", write, value: null };
    });
    expect(end).toMatchObject({ kind: "refused", record: { state: "in_progress" } });
  });
});

/** A pool of a server whose complaints are worded as in `lc_messages = 'de_DE'`, which few servers have installed. */
function speakingGerman(pool: PostgresPool<PoolClient>): PostgresPool {
  const reworded = (error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "23505") error.message = GERMAN;
    throw error;
  };
  const speaking = (client: PoolClient) =>
    new Proxy(client, {
      get: (target, name) => {
        const member = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        if (name !== "query") return member.bind(target);
        return (...given: unknown[]) => Promise.resolve(Reflect.apply(member, target, given)).catch(reworded);
      },
    });
  return new Proxy(pool, {
    get: (target, name) => {
      if (name === "connect") return async () => speaking(await target.connect());
      const member = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
