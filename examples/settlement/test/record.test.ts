import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { until } from "../../../test/support/processes.ts";
import { SCHEMA, STEPS_TABLE } from "../src/database/schema.ts";
import { call, ledger, order, setFaults, settle } from "./support/calls.ts";
import { startService } from "./support/launch.ts";
import { type DatabaseName, databases, freshPlace, type Place } from "./support/places.ts";

describe.for(databases)("on $name a settlement", ({ name, skip }) => {
  test.skipIf(skip)("names the record of its key, and a later attempt under it names the same", async () => {
    const place = await freshPlace(name);
    const { url, bankUrl } = await startService(place.environment);
    const key = randomUUID();
    await setFaults(bankUrl, { unavailable: true });
    expect(await settle(url, { key })).toMatchObject({ status: 503 });
    expect(await naming(place)).toEqual({ rows: 1, named: 1 });
    await setFaults(bankUrl, {});
    expect(await settle(url, { key })).toMatchObject({ status: 201 });
    expect(await naming(place)).toEqual({ rows: 1, named: 1 });
    expect(await settle(url, { token: "demo-bob", key })).toMatchObject({ status: 201 });
    expect(await naming(place)).toEqual({ rows: 2, named: 2 });
    const again = "UPDATE settlements SET record_id = (SELECT max(record_id) FROM settlements)";
    await expect(place.execute(again)).rejects.toThrow(/unique/i);
  });

  test.skipIf(skip)("outlives its record, whose key is then as good as new", async () => {
    const place = await freshPlace(name);
    const { url, bankUrl } = await startService({
      ...place.environment,
      ...{ RETENTION: "1500ms", SWEEP_INTERVAL: "100ms" },
    });
    const key = randomUUID();
    const first = await settle(url, { key });
    expect(first.status).toBe(201);
    await until(async () => (await naming(place)).named === 0);
    const second = await settle(url, { key });
    expect(second.status).toBe(201);
    expect(second.body["id"]).not.toBe(first.body["id"]);
    expect((await call(url, `GET /settlements/${first.body["id"]}`)).body).toEqual(first.body);
    expect(await place.count("SELECT count(*) FROM settlements")).toBe(2);
    // The bank deduplicates by our key for longer than we remember it.
    expect(await ledger(bankUrl)).toHaveLength(1);
  });

  test.skipIf(skip)(
    "of an earlier release is kept, without a record, when the tables are brought up to date",
    async () => {
      const place = await freshPlace(name);
      await place.execute(`${STEPS_TABLE}; ${firstStep(name)}; INSERT INTO settlement_schema (version) VALUES (1);
      INSERT INTO settlements (id, owner, status, amount, currency, debtor, creditor, reference, external_reference)
      VALUES ('of-old', 'alice', 'settled', 1250, 'EUR', 'Alice', 'Bert', 'invoice 7', 'bank-1')`);
      const { url } = await startService(place.environment);
      const old = { id: "of-old", status: "settled", ...order, externalReference: "bank-1" };
      expect((await call(url, "GET /settlements/of-old")).body).toEqual(old);
      expect(await settle(url)).toMatchObject({ status: 201 });
      expect(await naming(place)).toEqual({ rows: 2, named: 1 });
    },
  );
});

/** How many settlements there are, and how many of them name a record that is there. */
async function naming({ count }: Place) {
  const rows = await count("SELECT count(*) FROM settlements");
  const named = await count(
    "SELECT count(*) FROM settlements s JOIN oncekey_records r ON r.id = s.record_id",
  );
  return { rows, named };
}

function firstStep(name: DatabaseName): string {
  const step = SCHEMA.find(({ version }) => version === 1);
  return (name === "SQLite" ? step?.sqlite : step?.postgres) ?? "";
}
