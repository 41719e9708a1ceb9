import { setTimeout as sleep } from "node:timers/promises";
import type { SeededRandom } from "../../support/seed.ts";

/** What a copy was told; only of an `answer` it is known that a server has spoken. */
interface Heard {
  readonly kind: string;
}

export interface LoadOptions<Told extends Heard> {
  /** Sends one copy of the request under this key. */
  readonly ask: (key: string) => Promise<Told>;
  readonly clients: number;
  readonly random: SeededRandom;
  readonly ledger: {
    /** Notes what a copy was told; true where its client need not ask again. */
    readonly note: (key: string, told: Told) => boolean;
    readonly noteReplay: (key: string, told: Told) => void;
    readonly answered: () => readonly string[];
  };
  /** How long a key that has no answer is left alone, while its client goes on with others. */
  readonly asideMs?: () => number;
}

export interface Load {
  /** How many keys have their answer. */
  readonly answered: () => number;
  /** Takes no new keys; resolves when every key has its answer, and has heard it once more, or when time is up. */
  readonly finish: (options: { readonly withinMs: number }) => Promise<void>;
  /** Asks for nothing more, for a test that ends early. */
  readonly stop: () => void;
}

const ASIDE_MS = 100;
/** How long a client waits that can do nothing just now. */
const PAUSE_MS = 25;

/** Clients that send each key until it is answered; one in four is sent twice at once. */
export function startLoad<Told extends Heard>({
  ask,
  clients,
  random,
  ledger,
  asideMs = () => ASIDE_MS,
}: LoadOptions<Told>): Load {
  const aside: { readonly key: string; readonly dueMs: number }[] = [];
  const open = new Set<string>();
  let taken = 0;
  let deadlineMs: number | null = null;
  const next = (): string | null => {
    const due = aside.findIndex(({ dueMs }) => dueMs <= performance.now());
    if (due >= 0) return aside.splice(due, 1)[0]?.key ?? null;
    if (deadlineMs !== null) return null;
    const key = `key-${taken++}`;
    open.add(key);
    return key;
  };
  const isOver = () => deadlineMs !== null && (open.size === 0 || performance.now() > deadlineMs);
  /** Until a server says something about it. */
  const send = async (key: string): Promise<void> => {
    while (!isOver()) {
      const copies = random.below(4) === 0 ? [key, key] : [key];
      const told = await Promise.all(copies.map(ask));
      const finals = told.map((each) => ledger.note(key, each));
      if (finals.includes(true)) return void open.delete(key);
      if (told.some(({ kind }) => kind === "answer")) break;
      await sleep(PAUSE_MS);
    }
    aside.push({ key, dueMs: performance.now() + asideMs() });
  };
  const client = async () => {
    while (!isOver()) {
      const key = next();
      await (key === null ? sleep(PAUSE_MS) : send(key));
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {}); // `finish` tells
  return {
    answered: () => taken - open.size,
    stop: () => {
      deadlineMs = 0;
    },
    finish: async ({ withinMs }) => {
      deadlineMs = performance.now() + withinMs;
      await running;
      await repeatAll({ ask, clients, ledger });
    },
  };
}

async function repeatAll<Told extends Heard>({
  ask,
  clients,
  ledger,
}: Pick<LoadOptions<Told>, "ask" | "clients" | "ledger">): Promise<void> {
  const answered = ledger.answered().values();
  const client = async () => {
    for (const key of answered) ledger.noteReplay(key, await ask(key));
  };
  await Promise.all(Array.from({ length: clients }, client));
}
