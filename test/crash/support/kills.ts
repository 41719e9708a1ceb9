import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { postgresIsHere } from "../../support/databases.ts";
import { freePort, type StartedProcess, startProcess, until } from "../../support/processes.ts";
import { seededRandom } from "../../support/seed.ts";
import { askingAt } from "./asking.ts";
import { type DatabaseKind, freshEffectsDatabase } from "./effects-database.ts";
import { openLedger } from "./ledger.ts";
import { startLoad } from "./load.ts";

/** How often the server is killed: `KILLS` of the environment. */
const KILLS = killsFrom(process.env["KILLS"]);
const CLIENTS = 12;

/** Within this a server that is there answers somebody, however slow the machine. */
const ANSWERS_WITHIN_MS = 15_000;
/** What a round may take on average; it takes half a second. */
const ROUND_MS = 3_000;
/** Once the killing is over, every key must get its answer within this. */
const SETTLED_WITHIN_MS = 30_000;

const SERVER = fileURLToPath(new URL("server.mjs", import.meta.url));

export interface FormUnderKills {
  /** A name in the table of `forms.mjs`. */
  readonly form: string;
  readonly database: DatabaseKind;
}

/** Kills a server under load, again and again, at moments that chance draws, and counts what its clients were told. */
export function survivesKills({ form, database: kind }: FormUnderKills): void {
  test.skipIf(kind === "PostgreSQL" && !postgresIsHere())(
    `${form}: ${KILLS} times kill -9 under load leave one effect, one answer and a completed record for each key`,
    { timeout: 60_000 + KILLS * ROUND_MS + 2 * SETTLED_WITHIN_MS },
    async () => {
      const random = seededRandom();
      const database = await freshEffectsDatabase(kind);
      onTestFinished(database.remove);
      const port = await freePort();
      const start = () => startServer({ FORM: form, DATABASE_URL: database.url, PORT: String(port) });
      let server = await start();
      const ledger = openLedger();
      const load = startLoad({ ask: askingAt(port), clients: CLIENTS, random, ledger });
      onTestFinished(load.stop);
      for (let kill = 1; kill <= KILLS; kill++) {
        const wanted = load.answered() + 1 + random.below(CLIENTS);
        await until(() => load.answered() >= wanted, { withinMs: ANSWERS_WITHIN_MS, everyMs: 5 });
        await sleep(random.fraction() * 40);
        await killed(server);
        server = await start();
        if (kill % 20 === 0) console.log(`${form}: ${kill} kills, ${load.answered()} keys answered`);
      }
      await load.finish({ withinMs: SETTLED_WITHIN_MS });
      await killed(server);
      const keys = ledger.keys();
      const counts = ledger.counts();
      console.log(`${form}: ${KILLS} kills, ${keys.length} keys; copies: ${JSON.stringify(counts)}`);
      expect(ledger.faults(await database.found(keys))).toEqual([]);
      expect(counts.interrupted).toBeGreaterThanOrEqual(KILLS);
    },
  );
}

function startServer(env: Readonly<Record<string, string>>): Promise<StartedProcess> {
  const command = process.execPath;
  return startProcess({ command, args: [SERVER], env: { NODE_ENV: undefined, ...env }, readyWhen: /http:/ });
}

/** Kills a server that has neither ended by itself nor complained. */
async function killed(server: StartedProcess): Promise<void> {
  server.kill("SIGKILL");
  expect([await server.exited, server.stderr]).toEqual([{ code: null, signal: "SIGKILL" }, []]);
}

function killsFrom(text = "20"): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`KILLS must be a whole number from 1, not "${text}".`);
  return Number(text);
}
