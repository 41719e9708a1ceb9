import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { HeaderLine, WireAnswer } from "./answer-reader.ts";
import { countEffects } from "./counting.ts";
import { CannotProbeError, NoAnswerError, OutOfTimeError } from "./refusal.ts";
import type { ProbeSettings, Target } from "./settings.ts";
import { dial, exchange, type Heard, type WireLimits, type WireRequest } from "./wire.ts";

/** One request of a check; what is left out is that of the settings. */
export interface Ask {
  /** Values of the key header as they stand on the wire, one for each line. */
  readonly keys: readonly string[];
  readonly principal?: "first" | "other";
  readonly method?: string;
  readonly at?: Target;
  readonly body?: Buffer;
  readonly extra?: readonly HeaderLine[];
}

/** An answer, and how many effects came about with it; null where that cannot be seen. */
export interface Seen {
  readonly answer: WireAnswer;
  readonly moved: number | null;
}

/** A server on trial: what checks send by, bounded in time, in bytes and in number. */
export interface Trial {
  readonly settings: ProbeSettings;
  /** Throws a `NoAnswerError` where no answer came, an `OutOfTimeError` once the time of the probe is over. */
  readonly send: (ask: Ask) => Promise<WireAnswer>;
  /** Sends all at one moment, on connections that stand before. */
  readonly sendTogether: (asks: readonly Ask[]) => Promise<readonly Heard[]>;
  readonly seen: (ask: Ask) => Promise<Seen>;
  /** Sends again while the answer is 409, for a moment: a server may keep an answer just after it was sent. */
  readonly retried: (ask: Ask) => Promise<Seen>;
  readonly count: () => Promise<number | null>;
  readonly wait: (ms: number) => Promise<void>;
  readonly newKey: () => string;
  /** How often an answer was asked for. */
  readonly asked: () => number;
  /** Remembers a refusal, for what it says of itself. */
  readonly refused: (situation: string, answer: WireAnswer) => void;
  readonly refusals: readonly Refusal[];
}

export interface Refusal {
  readonly situation: string;
  readonly answer: WireAnswer;
}

/** An answer longer than this is cut off. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** For an answer that is kept just after it was sent. */
const RETRY_PAUSES_MS: readonly number[] = [20, 100, 400, 1_000];

export function createTrial(settings: ProbeSettings): Trial {
  const limits = limitsOf(settings);
  const limitsFor = ({ at = settings.target }: Ask) => ({ ...limits(), mayLeave: at.mayLeave });
  const refusals: Refusal[] = [];
  let asked = 0;
  const send = async (ask: Ask): Promise<WireAnswer> => {
    asked += 1;
    const heard = await exchange(requestOf(settings, ask), limitsFor(ask));
    if (!isWhole(heard)) limits(); // no blame for what the end of the time cut off
    if (heard.kind === "answer") return heard.answer;
    throw new NoAnswerError(heard.reason);
  };
  const count = async () =>
    settings.counting === null ? null : await countEffects(settings.counting, limits());
  return {
    settings,
    send,
    ...measuring(send, count),
    count,
    refusals,
    newKey: () => randomUUID(),
    asked: () => asked,
    refused: (situation, answer) => void refusals.push({ situation, answer }),
    wait: async (ms) => void (await pause(Math.min(ms, limits().timeoutMs))),
    sendTogether: async (asks) => {
      asked += asks.length;
      const heard = await together(asks.map((ask) => [requestOf(settings, ask), limitsFor(ask)] as const));
      if (!heard.every(isWhole)) limits();
      return heard;
    },
  };
}

function isWhole(heard: Heard): boolean {
  return heard.kind === "answer" && heard.answer.framing.length === 0;
}

/** What is left for one request; throws an `OutOfTimeError` once nothing is. */
function limitsOf({ timeLimitMs, requestTimeoutMs }: ProbeSettings): () => Omit<WireLimits, "mayLeave"> {
  const until = performance.now() + timeLimitMs;
  return () => {
    const left = Math.ceil(until - performance.now());
    if (left <= 0) throw new OutOfTimeError(`the ${timeLimitMs} ms of --time-limit were over.`);
    return { timeoutMs: Math.min(requestTimeoutMs, left), maxBytes: MAX_ANSWER_BYTES };
  };
}

function measuring(send: Trial["send"], count: Trial["count"]): Pick<Trial, "seen" | "retried"> {
  const measured = async (asked: () => Promise<WireAnswer>): Promise<Seen> => {
    const before = await count();
    const answer = await asked();
    return { answer, moved: difference(before, await count()) };
  };
  return {
    seen: async (ask) => await measured(() => send(ask)),
    retried: async (ask) =>
      await measured(async () => {
        let answer = await send(ask);
        for (const ms of RETRY_PAUSES_MS) {
          if (answer.status !== 409) break;
          await pause(ms);
          answer = await send(ask);
        }
        return answer;
      }),
  };
}

/** How far a count has moved; null where there is none. */
export function difference(before: number | null, after: number | null): number | null {
  return before === null || after === null ? null : after - before;
}

async function together(asks: readonly (readonly [WireRequest, WireLimits])[]): Promise<readonly Heard[]> {
  const lines = await Promise.all(asks.map(([request, limits]) => dial(request.url, limits)));
  const refused = lines.find((line) => line.kind === "none");
  if (refused !== undefined) {
    for (const line of lines) if (line.kind === "line") line.hangUp();
    throw new CannotProbeError(
      `${lines.length} connections at once could not be opened: ${refused.reason}. Lower --copies.`,
    );
  }
  return await Promise.all(
    asks.map(async ([request], index) => {
      const line = lines[index];
      return line?.kind === "line" ? await line.ask(request) : NEVER_SENT;
    }),
  );
}

const NEVER_SENT: Heard = { kind: "none", reason: "it was never sent" };

function requestOf(settings: ProbeSettings, ask: Ask): WireRequest {
  const { method = settings.method, at = settings.target, body = settings.body, extra = [] } = ask;
  const keys = ask.keys.map((value): HeaderLine => [settings.keyHeader, value]);
  const headers = ask.principal === "other" ? headersOfOther(settings) : settings.headers;
  return { method, url: at.url, headers: [...headers, ...keys, ...extra], body };
}

function headersOfOther({ headers, otherHeaders }: ProbeSettings): readonly HeaderLine[] {
  const others = otherHeaders ?? [];
  const replaced = new Set(others.map(([name]) => name.toLowerCase()));
  return [...headers.filter(([name]) => !replaced.has(name.toLowerCase())), ...others];
}
