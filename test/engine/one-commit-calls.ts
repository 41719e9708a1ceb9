import type { Identity, KeyRecord } from "../../src/core/record.ts";
import type { BeginRequest } from "../../src/engine/begin.ts";
import { following } from "../../src/engine/command.ts";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { EngineEvent, Outcome } from "../../src/engine/events.ts";
import type { TransactionRequest } from "../../src/engine/run.ts";
import type { Worked } from "../../src/engine/transaction.ts";
import type { Awaitable, Settling, Store, TransactionalStore } from "../../src/stores/store.ts";
import { type Fault, faultySqlStore } from "../support/faulty-store.ts";
import { answerOf, ofType, requestFor, sqlEngineOn } from "./engines.ts";
import { rowOf, type Sql } from "./stores.ts";

/** A call of a function whose claim is in its effect's own commit. */
export function called(key: string, rest: Partial<TransactionRequest> = {}): TransactionRequest {
  return { operation: "transfer", principal: "alice", key, commits: "one", ...rest };
}

/** A request of the same kind, as a host makes it. */
export function local(key: string, rest: Parameters<typeof requestFor>[1] = {}): BeginRequest {
  return requestFor(key, { effects: "transaction", commits: "one", ...rest });
}

/** Under which a call's record stands. */
export function identityOf(key: string): Identity {
  return { kind: "run", principal: "alice", operation: "transfer", key };
}

/** What stands for a call or a request. */
export async function recordOf(store: Store, identity: Identity): Promise<KeyRecord | null> {
  return (await store.read(identity)).record;
}

/** How the requests were counted, one by one. */
export function outcomesOf(events: readonly EngineEvent[]): readonly Outcome[] {
  return ofType(events, "request").map(({ outcome }) => outcome);
}

/** Work that adds a row, counts its runs and ends as it is told. */
export function working<Tx>({ put }: Sql<Tx>, key: string) {
  let runs = 0;
  const work =
    <T>(end: (run: number) => T) =>
    (tx: Tx) => {
      runs += 1;
      const run = runs;
      return following(put(tx, rowOf(key)), () => end(run));
    };
  return { work, runs: () => runs };
}

/** The same for an attempt's own transaction: adds a row and keeps this answer. */
export function paying<Tx>(sql: Sql<Tx>, key: string, answer = "kept") {
  const { work, runs } = working(sql, key);
  const pay: (tx: Tx) => Awaitable<Worked<string>> = work(
    (): Worked<string> => ({ kind: "keep", state: "completed", answer: answerOf(answer), value: "mine" }),
  );
  return { pay, runs };
}

/** An engine whose transactions go wrong one after the other, as planned. */
export function failing<Tx>(
  store: TransactionalStore<Tx, Settling>,
  faults: readonly Fault["kind"][],
  settings: EngineSettings = {},
) {
  const faulty = faultySqlStore(store);
  for (const [index, fault] of faults.entries()) faulty.plan("transaction", index + 1, fault);
  return { faulty, ...sqlEngineOn(faulty.store, settings) };
}

/** Holds work back until it is opened. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
