import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresIsHere } from "../support/databases.ts";
import { freePort, type StartedProcess, startProcess, until } from "../support/processes.ts";
import { startTill } from "../support/till.ts";
import { type DatabaseKind, type EffectsDatabase, freshEffectsDatabase } from "./support/effects-database.ts";

const SERVER = fileURLToPath(new URL("support/declared-server.mjs", import.meta.url));

/** Where the server is killed, and how often the provider is asked in the end. */
const POINTS = [
  ["before the mark", 1],
  ["after the mark, before the call", 1],
  ["after the provider has committed, before it replies", 2],
  ["after the reply, before the result is kept", 2],
  ["after the result is kept, before the answer is kept", 1],
  ["after the answer is kept, before it is sent", 1],
] as const;

const FORMS: readonly (readonly [form: string, kind: DatabaseKind])[] = [
  ["sqlite", "SQLite"],
  ["postgres", "PostgreSQL"],
];

/** A dead attempt's lease is 4 s. */
const TAKEN_OVER_WITHIN_MS = 60_000;

describe.each(FORMS)("a declared effect on %s whose server is killed", (form, kind) => {
  let database: EffectsDatabase;
  beforeAll(async () => {
    if (kind === "SQLite" || postgresIsHere()) database = await freshEffectsDatabase(kind);
  });
  afterAll(() => database?.remove());

  test.skipIf(kind === "PostgreSQL" && !postgresIsHere()).each(POINTS)(
    "KP1-4, MM-02 %s is resumed by the next retry: one charge, one answer",
    { timeout: 2 * TAKEN_OVER_WITHIN_MS },
    async (point, timesAsked) => {
      const till = await startTill();
      const port = await freePort();
      const key = point.replaceAll(/\W+/g, "-");
      const env = { FORM: form, DATABASE_URL: database.url, PORT: String(port), TILL_URL: till.url };
      const dying = await start({ ...env, DIES_AT: point });
      const cut = ask(port, key).then(
        () => "answered",
        () => "cut",
      );
      if (timesAsked === 2) await until(async () => (await till.charged()).charges.length === 1);
      if (point.startsWith("after the provider")) dying.kill("SIGKILL");
      expect([await cut, await dying.exited]).toEqual(["cut", { code: null, signal: "SIGKILL" }]);

      const living = await start({ ...env, DIES_AT: undefined });
      let answer: Answer | undefined;
      await until(
        async () => {
          answer = await ask(port, key);
          if (answer.status !== 201) expect([answer.status, codeOf(answer)]).toEqual([409, "in_progress"]);
          return answer.status === 201;
        },
        { withinMs: TAKEN_OVER_WITHIN_MS, everyMs: 200 },
      );
      expect(await ask(port, key)).toEqual({ ...answer, replayed: "true" });
      const { charges, asked } = await till.charged();
      expect(charges).toEqual([{ id: "ch_1", amount: 5 }]);
      expect(answer?.body).toBe('{"charge":"ch_1"}');
      expect([asked.length, new Set(asked).size]).toEqual([timesAsked, 1]);
      expect((await database.found([key])).states.get(key)).toBe("completed");
      living.kill("SIGKILL");
      await living.exited;
    },
  );
});

interface Answer {
  readonly status: number;
  readonly replayed: string | null;
  readonly body: string;
}

function start(env: Readonly<Record<string, string | undefined>>): Promise<StartedProcess> {
  const full = { NODE_ENV: undefined, ...env };
  return startProcess({ command: process.execPath, args: [SERVER], env: full, readyWhen: /http:/ });
}

async function ask(port: number, key: string): Promise<Answer> {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const url = `http://127.0.0.1:${port}/orders`;
  const response = await fetch(url, { method: "POST", headers, body: '{"amount":5}' });
  const replayed = response.headers.get("idempotent-replayed");
  return { status: response.status, replayed, body: await response.text() };
}

function codeOf({ body }: Answer): unknown {
  return JSON.parse(body).code;
}
