import { onTestFinished } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import type { RunRequest } from "../../src/engine/run.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import type { Awaitable, Settling } from "../../src/stores/store.ts";
import { answerOf, ofType, proceeded, requestFor } from "./engines.ts";

const KEPT: Worked<string> = { kind: "keep", state: "completed", answer: answerOf("kept"), value: "mine" };

export function called(key: string): RunRequest {
  return { operation: "transfer", principal: "alice", key };
}

/** The writes that were told of, and whose they were. */
export function told(events: readonly EngineEvent[]) {
  return ofType(events, "write_outside_transaction");
}

export function keysTold(events: readonly EngineEvent[]): readonly string[] {
  return told(events).map(({ identity }) => identity.key);
}

/** Runs `work` as the handler of an attempt, with a transaction after it. */
export async function attempting<Tx>(
  engine: Engine<Tx, Settling>,
  key: string,
  work: () => Awaitable<unknown>,
): Promise<void> {
  const attempt = proceeded(await engine.begin(requestFor(key, { effects: "transaction" })));
  await attempt.watched(async () => {
    await work();
    await attempt.transaction(() => KEPT);
  });
}

/** What a test waits at until it is opened. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  onTestFinished(() => open());
  return { open, opened };
}
