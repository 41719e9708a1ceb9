import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { until } from "../../../test/support/processes.ts";
import { ledger, setFaults, settle } from "./support/calls.ts";
import { type Service, startService } from "./support/launch.ts";
import { type DatabaseName, databases, freshPlace, type Place } from "./support/places.ts";

/** Short enough that a killed process is judged within the test, long enough for a loaded machine. */
const SHORT = {
  ...{ REQUEST_TIMEOUT: "6s", LEASE: "6500ms", BANK_TIMEOUT: "5s" },
  ...{ SWEEP_GRACE: "100ms", SWEEP_INTERVAL: "100ms", RECONCILE_INTERVAL: "100ms" },
};

/** Which tries of a finish meet contention: those of four settlements, one of them more than the one before. */
const UP_TO_FOUR = "x.xx.xxx.xxxx.";
const ALL_FIVE = "xxxxx";

describe.for(databases)("the finishing transaction of a settlement on $name", ({ name, skip }) => {
  test.skipIf(skip)(
    "that gives way up to four times is tried again, and no caller sees anything of it",
    async () => {
      const place = await freshPlace(name);
      const { url, bankUrl } = await startContended(name, place, UP_TO_FOUR);
      for (let settled = 1; settled <= 4; settled++) {
        expect(await settle(url)).toMatchObject({ status: 201, body: { status: "settled" } });
        expect(await ledger(bankUrl)).toHaveLength(settled);
      }
      expect(await place.count("SELECT count(*) FROM settlements WHERE status = 'settled'")).toBe(4);
      if (name === "PostgreSQL")
        expect(await place.count("SELECT last_value FROM tries")).toBe(UP_TO_FOUR.length);
    },
  );

  test.skipIf(skip)(
    "that always gives way is a 504, and is ended with what the bank had said, without asking it",
    async () => {
      const place = await freshPlace(name);
      const service = await startContended(name, place, ALL_FIVE, { RECONCILE_INTERVAL: "1s" });
      const key = randomUUID();
      const lost = await settle(service.url, { key });
      await setFaults(service.bankUrl, { down: true });
      expect(lost).toMatchObject({ status: 504, body: { code: "outcome_unknown", effect: "maybe" } });
      await settledByWorkers(service, key);
      await oneSettlement(service, place);
    },
  );

  test.skipIf(skip)(
    "that always gives way, in a process that is killed then, is ended by the next process",
    async () => {
      const place = await freshPlace(name);
      const killed = await startContended(name, place, ALL_FIVE, { ...SHORT, RECONCILE_INTERVAL: "30s" });
      const key = randomUUID();
      expect(await settle(killed.url, { key })).toMatchObject({ status: 504 });
      killed.kill("SIGKILL");
      await killed.exited;
      const service = await startService({ ...place.environment, ...SHORT });
      await settledByWorkers(service, key);
      await oneSettlement(service, place);
    },
  );

  test.skipIf(skip)(
    "in whose middle its process is killed leaves nothing of itself, and the sweeper's doubt ends in the bank's truth",
    async () => {
      const place = await freshPlace(name);
      const killed = await startService({ ...place.environment, ...SHORT, ...faulty("kill") });
      const key = randomUUID();
      await expect(settle(killed.url, { key })).rejects.toThrow("fetch failed");
      expect(await killed.exited).toEqual({ code: null, signal: "SIGKILL" });
      expect(await place.count("SELECT count(*) FROM settlements WHERE status = 'pending'")).toBe(1);
      const service = await startService({ ...place.environment, ...SHORT });
      await settledByWorkers(service, key);
      await oneSettlement(service, place);
    },
  );
});

/** A service whose first finishing transactions are rolled back by its database as if others had been in the way. */
async function startContended(
  name: DatabaseName,
  place: Place,
  plan: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Service> {
  if (name === "SQLite")
    return await startService({ ...place.environment, ...environment, ...faulty(`busy ${plan}`) });
  const service = await startService({ ...place.environment, ...environment });
  await place.execute(givingWay(plan));
  return service;
}

function faulty(fault: string): Readonly<Record<string, string>> {
  const preload = fileURLToPath(new URL("./support/finish-fault.mjs", import.meta.url));
  return { NODE_OPTIONS: `--import=${preload}`, FINISH_FAULT: fault };
}

/** A sequence is not rolled back, so that it counts the tries. */
function givingWay(plan: string): string {
  return `CREATE SEQUENCE tries;
    CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE tried BIGINT;
    BEGIN
      IF NEW.external_reference IS NULL THEN RETURN NEW; END IF;
      tried := nextval('tries');
      IF substr('${plan}', tried::int, 1) <> 'x' THEN RETURN NEW; END IF;
      IF tried % 3 = 1 THEN RAISE deadlock_detected; END IF;
      IF tried % 3 = 2 THEN RAISE serialization_failure; END IF;
      RAISE lock_not_available;
    END $$;
    CREATE TRIGGER give_way BEFORE UPDATE ON settlements FOR EACH ROW EXECUTE FUNCTION give_way()`;
}

/** Waits until a copy gets the truth; on the way it is told nothing but that there is none yet. */
async function settledByWorkers({ url }: Service, key: string): Promise<void> {
  await until(
    async () => {
      const { status, body, headers } = await settle(url, { key });
      if (status !== 201) expect([status, body["effect"]]).toEqual([409, "maybe"]);
      else expect(headers.get("idempotent-replayed")).toBe("true");
      return status === 201;
    },
    { withinMs: 30_000, everyMs: 50 },
  );
}

/** Fails unless one payment was made and one settlement says so. */
async function oneSettlement({ bankUrl }: Service, { count }: Place): Promise<void> {
  const [payment, ...more] = await ledger(bankUrl);
  expect(more).toEqual([]);
  expect(await count("SELECT count(*) FROM settlements")).toBe(1);
  const query = `SELECT count(*) FROM settlements WHERE status = 'settled' AND external_reference = '${payment?.["id"]}'`;
  expect(await count(query)).toBe(1);
}
