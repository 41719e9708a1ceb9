import fc from "fast-check";
import type { Client } from "pg";
import { Client as PgClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inlined } from "../../src/stores/postgres/literal.ts";
import { freshPostgresDatabase, postgresIsHere } from "../support/databases.ts";
import { seed } from "../support/seed.ts";

const WELL_FORMED = fc
  .string({ unit: "binary", maxLength: 60 })
  .filter((text) => !/[\0\p{Surrogate}]/u.test(text));
const NASTY = fc.constantFrom(
  "'",
  "\\",
  "\\'",
  "''",
  "$1::text",
  "?",
  ":name",
  "--",
  "/*",
  "\u00a5'",
  "E'\\x",
  ";",
);
const TEXT = fc.oneof(
  WELL_FORMED,
  fc.array(fc.oneof(NASTY, WELL_FORMED)).map((parts) => parts.join("")),
);
const BYTES = fc.uint8Array({ maxLength: 60 });

describe.skipIf(!postgresIsHere())("a parameter that is written into its statement", () => {
  let client: Client;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const database = await freshPostgresDatabase();
    drop = database.drop;
    client = new PgClient({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await drop();
  });

  test.each([
    ["as the server is set up", []],
    ["where backslashes escape", ["set standard_conforming_strings = off", "set backslash_quote = on"]],
    ["where the session speaks Shift JIS", ["set client_encoding = 'SJIS'"]],
  ] as const)("is the same value to the server, %s", async (_where, settings) => {
    for (const setting of settings) await client.query(setting);
    const same = fc.asyncProperty(TEXT, BYTES, fc.maxSafeInteger(), async (text, bytes, number) => {
      const statement = inlined({
        text: "SELECT encode(convert_to($1::text, 'UTF8'), 'hex') AS text, encode($2::bytea, 'hex') AS bytes, $3::bigint::text AS number, $4::text AS nothing",
        values: [text, bytes, number, null],
      });
      const { rows } = await client.query(statement);
      expect(rows).toEqual([
        {
          text: Buffer.from(text).toString("hex"),
          bytes: Buffer.from(bytes).toString("hex"),
          number: String(number),
          nothing: null,
        },
      ]);
    });
    await fc.assert(same, { seed: seed(), numRuns: 300 });
    await client.query("reset all");
  });

  test("leaves no sign in the statement that a session or a driver could read as anything else", () => {
    const harmless = fc.property(TEXT, BYTES, (text, bytes) => {
      const statement = inlined({ text: "$1::text $2::bytea", values: [text, bytes] });
      expect(statement).toMatch(/^[\w .,:;/+()='"{}[\]-]*$/);
      expect(statement.split("'").length % 2).toBe(1);
    });
    fc.assert(harmless, { seed: seed(), numRuns: 1_000 });
  });

  test("is refused where it is neither text, bytes, a number nor nothing", () => {
    expect(() => inlined({ text: "$1::text", values: [{}] })).toThrow(/object cannot be written/);
  });
});
