import { onTestFinished } from "vitest";
import type { Answer, KeyRecord } from "../../src/core/record.ts";
import type { Attempt } from "../../src/engine/attempt.ts";
import type { BeginRequest, Begun } from "../../src/engine/begin.ts";
import { createEngine, type Engine, type EngineSettings } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import { nodeRuntime, type Runtime } from "../../src/engine/runtime.ts";
import type { Settling, Store, TransactionalStore } from "../../src/stores/store.ts";
import { until } from "../support/processes.ts";

/** An engine on a store, and what it told its listeners. */
export interface Told<Tx> {
  readonly engine: Engine<Tx, Settling>;
  readonly events: readonly EngineEvent[];
}

/** An engine whose running attempts end with the test. */
export function engineOn(store: Store, settings: EngineSettings = {}): Told<never> {
  const events: EngineEvent[] = [];
  const engine = createEngine({ store, listeners: [(event) => events.push(event)], ...settings });
  endsWithTest(engine);
  return { engine, events };
}

/** The same on a store with transactions. */
export function sqlEngineOn<Tx>(
  store: TransactionalStore<Tx, Settling>,
  settings: EngineSettings = {},
): Told<Tx> {
  const events: EngineEvent[] = [];
  const engine = createEngine({ store, listeners: [(event) => events.push(event)], ...settings });
  endsWithTest(engine);
  return { engine, events };
}

function endsWithTest<Tx>(engine: Engine<Tx, Settling>): void {
  onTestFinished(() => {
    for (const attempt of engine.context.running) void attempt.abandon("The test has ended.").catch(() => {});
  });
}

/** Attempts of such an engine are dead after so short a time, unless something keeps them alive. */
export const SHORT: EngineSettings = { requestTimeout: 25, lease: 50 };

/** A process that was stopped: its attempts are heard of no more, and it does not notice that time passes. */
export function stoppedRuntime(): Runtime {
  const never = new Promise<never>(() => {});
  const cancel = () => {};
  return {
    ...nodeRuntime(),
    monotonicMs: () => 0,
    timer: () => ({ expired: never, cancel }),
    after: () => cancel,
  };
}

/** A request with a key, in HTTP's manner; `body` is what it is about. */
export function requestFor(
  key: string,
  { body = "body", ...rest }: Partial<BeginRequest> & { readonly body?: unknown } = {},
): BeginRequest {
  return {
    identity: { kind: "http", principal: "alice", key },
    operation: "POST /payments",
    effects: "none",
    fingerprint: inputFingerprint(body),
    ...rest,
  };
}

export function answerOf(text: string, status = 201): Answer {
  return { status, headers: [["content-type", "text/plain"]], body: new TextEncoder().encode(text) };
}

export function textOf({ body }: Answer): string | null {
  return body === null ? null : new TextDecoder().decode(body);
}

/** The attempt of a begin that went on; anything else fails the test. */
export function proceeded<Tx>(begun: Begun<Tx>): Attempt<Tx> {
  if (begun.kind !== "proceed") throw new Error(`It did not proceed: ${begun.kind}.`);
  return begun.attempt;
}

/** What stands for a request. */
export async function standing(store: Store, { identity }: BeginRequest): Promise<KeyRecord> {
  const { record } = await store.read(identity);
  if (record === null) throw new Error("There is no record.");
  return record;
}

/** Waits until the lease of what stands has lapsed on the store's clock. */
export async function lapsed(store: Store, { identity }: BeginRequest): Promise<void> {
  await until(async () => {
    const { record, now } = await store.read(identity);
    return record?.state === "in_progress" && record.leaseUntil < now;
  });
}

/** An attempt that began and was heard of no more; its lease has lapsed. */
export async function died(store: Store, request: BeginRequest): Promise<Attempt<never>> {
  const { engine } = engineOn(store, { ...SHORT, runtime: stoppedRuntime() });
  const attempt = proceeded(await engine.begin(request));
  await lapsed(store, request);
  return attempt;
}

/** The events of one type. */
export function ofType<Type extends EngineEvent["type"]>(
  events: readonly EngineEvent[],
  type: Type,
): readonly Extract<EngineEvent, { readonly type: Type }>[] {
  return events.filter(
    (event): event is Extract<EngineEvent, { readonly type: Type }> => event.type === type,
  );
}
