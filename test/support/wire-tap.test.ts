import { Client } from "pg";
import { expect, test } from "vitest";
import { freshPostgresDatabase, postgresIsHere } from "./databases.ts";
import { openWireTap } from "./wire-tap.ts";

test.skipIf(!postgresIsHere())(
  "a wire tap hears texts, names and complaints, however the bytes are cut, and changes nothing",
  async () => {
    const { url, drop } = await freshPostgresDatabase();
    const tap = await openWireTap(url);
    const client = new Client({ connectionString: tap.url });
    await client.connect();
    const long = `select '${"é".repeat(200_000)}' as long`;
    const { rows } = await client.query(long);
    await client.query({ text: "select $1::int as unnamed", values: [1] });
    await client.query({ text: "select $1::int as named", values: [1], name: "a name" });
    await client.query("commit");
    await client.query("select 1 / 0").catch(() => "as it should");
    await client.end();
    expect(rows).toEqual([{ long: "é".repeat(200_000) }]);
    expect(tap.texts).toEqual([
      ...[long, "select $1::int as unnamed", "select $1::int as named", "commit", "select 1 / 0"],
    ]);
    expect(tap.preparedNames).toEqual(["a name"]);
    expect(tap.complaints).toEqual(["25P01", "22012"]);
    await tap.close();
    await drop();
  },
);
