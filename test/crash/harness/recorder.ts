import { setTimeout as sleep } from "node:timers/promises";
import type { Identity, KeyRecord } from "../../../src/core/record.ts";
import { StoreUnavailable } from "../../../src/errors.ts";
import type { Store } from "../../../src/stores/store.ts";
import { type Received, send } from "../../support/settlement.ts";
import { nowMs } from "./clock.ts";
import { absent, isFinal, problemIn } from "./history/cases.ts";
import type { Call, Look, Standing, Told, Whose } from "./history/history.ts";
import type { Wanted } from "./wanted.ts";

/** Sends copies of requests, and notes whatever came of them. */
export interface Recorder {
  /** Sends one copy; it is given up, and still noted, when its answer takes longer than a client waits. */
  readonly ask: (wanted: Wanted, url: string) => Promise<Told>;
  /** Sends something else under its key. */
  readonly askOther: (wanted: Wanted, url: string) => Promise<Told>;
  readonly calls: readonly Call[];
  readonly looks: readonly Look[];
  /** Resolves when nothing is under way any more. */
  readonly quiet: () => Promise<void>;
}

/** A client goes to another server after `patienceMs`, while the first one may still be at work. */
export function openRecorder(store: Store, patienceMs: number): Recorder {
  const calls: Call[] = [];
  const looks: Look[] = [];
  const underWay = new Set<Promise<unknown>>();
  const noting = <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work);
    return work.finally(() => underWay.delete(work));
  };
  const look = async (whose: Whose) => {
    const fromMs = nowMs();
    const standing = await standingOf(store, whose).catch(onlyOutage);
    if (standing !== null) looks.push({ ...standing, fromMs, toMs: nowMs() });
  };
  const called = async (wanted: Wanted, url: string): Promise<Told> => {
    const { principal, key, path, body, intent } = wanted;
    const fromMs = nowMs();
    const told = toldBy(await send(`${url}${path}`, { key, token: principal, body }));
    calls.push({ principal, key, intent, fromMs, toMs: nowMs(), told });
    if (told.kind === "answer" && isFinal(told)) await noting(look(wanted));
    return told;
  };
  const ask = (wanted: Wanted, url: string) =>
    Promise.race([noting(called(wanted, url)), sleep(patienceMs, INTERRUPTED)]);
  return {
    ...{ ask, calls, looks },
    askOther: (wanted, url) => {
      const body = { ...wanted.body, mark: "something else" };
      return ask({ ...wanted, body, intent: JSON.stringify(body) }, url);
    },
    quiet: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/** The record of a key as it is committed. */
export async function standingOf(store: Store, { principal, key }: Whose): Promise<Standing> {
  const identity: Identity = { kind: "http", principal, key };
  const { record } = await store.read(identity);
  return record === null ? absent({ principal, key }) : { principal, key, ...versionOf(record) };
}

/** True where a client need not ask again: the answer is final, or a person must decide. */
export function isEnough(told: Told): boolean {
  return told.kind === "answer" && (isFinal(told) || problemIn(told)?.retry === "never");
}

const INTERRUPTED: Told = { kind: "interrupted" };

function onlyOutage(error: unknown): null {
  if (error instanceof StoreUnavailable) return null;
  throw error;
}

function versionOf(record: KeyRecord) {
  const { state, attempt, revision } = record;
  const disposition = record.state === "unknown" ? record.disposition : null;
  const answer =
    "answer" in record
      ? { status: record.answer.status, body: Buffer.from(record.answer.body ?? []).toString("latin1") }
      : null;
  return { state, attempt, revision, disposition, answer };
}

/** Those that any other exchange would have, too. */
const OF_THE_EXCHANGE: ReadonlySet<string> = new Set([
  ...["date", "connection", "keep-alive", "transfer-encoding", "content-length", "retry-after"],
  ...["idempotent-replayed", "idempotency-expires"],
]);

function toldBy(received: Received | null): Told {
  if (received === null) return INTERRUPTED;
  const { status, headers, body } = received;
  const own = Object.entries(headers).filter(([name]) => !OF_THE_EXCHANGE.has(name));
  return {
    kind: "answer",
    status,
    headers: own.map(([name, value]) => [name, String(value)] as const).sort(),
    body: body.toString("latin1"),
    replayed: headers["idempotent-replayed"] === "true",
    retryAfter: headers["retry-after"]?.toString() ?? null,
  };
}
