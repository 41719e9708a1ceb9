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
    "CL-02 %s is resumed by the next retry: one charge, one answer",
    { timeout: 2 * TAKEN_OVER_WITHIN_MS },
    async (point, timesAsked) => {
      const till = await startTill();
      const port = await freePort();
      const key = point.replaceAll(/\W+/g, "-");
      const env = { FORM: form, DATABASE_URL: database.url, PORT: String(port), TILL_URL: till.url };
      const dying = await start({ ...env, DIES_AT: point });
      const cut = cutOff(ask(port, key));
      if (timesAsked === 2) await until(async () => (await till.charged()).charges.length === 1);
      if (point.startsWith("after the provider")) dying.kill("SIGKILL");
      expect([await cut, await dying.exited]).toEqual(["cut", { code: null, signal: "SIGKILL" }]);

      const living = await start({ ...env, DIES_AT: undefined });
      const answer = await resumed(() => ask(port, key));
      expect(await ask(port, key)).toEqual({ ...answer, replayed: "true" });
      const { charges, asked } = await till.charged();
      expect(charges).toEqual([{ id: "ch_1", amount: 5 }]);
      expect(answer.body).toBe('{"charge":"ch_1"}');
      expect([asked.length, new Set(asked).size]).toEqual([timesAsked, 1]);
      expect((await database.found([key])).states.get(key)).toBe("completed");
      living.kill("SIGKILL");
      await living.exited;
    },
  );

  test.skipIf(kind === "PostgreSQL" && !postgresIsHere())(
    "TX-07 after its first step, and again after its second, goes on where it stopped: each is made once",
    { timeout: 3 * TAKEN_OVER_WITHIN_MS },
    async () => {
      const till = await startTill();
      const port = await freePort();
      const env = { FORM: form, DATABASE_URL: database.url, PORT: String(port), TILL_URL: till.url };
      const send = () => ask(port, "cart", "/carts");
      const first = await start({ ...env, DIES_AT: "after charge" });
      expect([await cutOff(send()), (await first.exited).signal]).toEqual(["cut", "SIGKILL"]);
      const second = await start({ ...env, DIES_AT: "after order" });
      await until(async () => (await cutOff(send())) === "cut", { withinMs: TAKEN_OVER_WITHIN_MS });
      expect((await second.exited).signal).toBe("SIGKILL");
      const living = await start({ ...env, DIES_AT: undefined });
      expect(await resumed(send)).toMatchObject({ status: 201, body: '{"made":["ch_1","ch_2","ch_3"]}' });
      const { charges, asked } = await till.charged();
      expect([charges.length, asked.length, new Set(asked).size]).toEqual([3, 3, 3]);
      living.kill("SIGKILL");
      await living.exited;
    },
  );
});

async function cutOff(asked: Promise<Answer>): Promise<string> {
  return await asked.then(
    () => "answered",
    () => "cut",
  );
}

/** Asks until the dead attempt's lease is over and the answer is there; nothing else may be said in between. */
async function resumed(send: () => Promise<Answer>): Promise<Answer> {
  let answer = await send();
  await until(
    async () => {
      if (answer.status === 201) return true;
      expect([answer.status, codeOf(answer)]).toEqual([409, "in_progress"]);
      answer = await send();
      return false;
    },
    { withinMs: TAKEN_OVER_WITHIN_MS, everyMs: 200 },
  );
  return answer;
}

interface Answer {
  readonly status: number;
  readonly replayed: string | null;
  readonly body: string;
}

function start(env: Readonly<Record<string, string | undefined>>): Promise<StartedProcess> {
  const full = { NODE_ENV: undefined, ...env };
  return startProcess({ command: process.execPath, args: [SERVER], env: full, readyWhen: /http:/ });
}

async function ask(port: number, key: string, path = "/orders"): Promise<Answer> {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const url = `http://127.0.0.1:${port}${path}`;
  const response = await fetch(url, { method: "POST", headers, body: '{"amount":5}' });
  const replayed = response.headers.get("idempotent-replayed");
  return { status: response.status, replayed, body: await response.text() };
}

function codeOf({ body }: Answer): unknown {
  return JSON.parse(body).code;
}
