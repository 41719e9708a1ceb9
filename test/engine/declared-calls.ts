import type { KeyRecord, Step } from "../../src/core/record.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Ran, RunRequest } from "../../src/engine/run.ts";
import type { DeclaredAttempt, DeclaredRequest } from "../../src/engine/run-declared.ts";
import type { Settling, Store } from "../../src/stores/store.ts";
import { until } from "../support/processes.ts";

export const REPEATABLE = { provider: "repeatable", keyTtl: "24h" } as const;
export const BLIND = { provider: "blind" } as const;

/** A call of the checkout that every test here makes. */
export function checkout(key: string, rest: Partial<RunRequest> = {}): DeclaredRequest {
  return { operation: "checkout", principal: "alice", key, effects: "declared", ...rest };
}

/** Runs the checkout as `work`; what it throws is a value. */
export async function ran<Tx, T>(
  engine: Engine<Tx, Settling>,
  request: DeclaredRequest,
  work: (attempt: DeclaredAttempt) => Promise<T>,
): Promise<Ran<T> | { readonly kind: "threw"; readonly error: unknown }> {
  try {
    return await engine.attemptRun(request, work);
  } catch (error) {
    return { kind: "threw", error };
  }
}

/** What stands for a checkout. */
export async function checkedOut(store: Store, { key }: RunRequest): Promise<KeyRecord> {
  const identity = { kind: "run", principal: "alice", operation: "checkout", key } as const;
  const { record } = await store.read(identity);
  if (record === null) throw new Error("There is no record.");
  return record;
}

export async function stepOf(store: Store, request: RunRequest, name = "charge"): Promise<Step | undefined> {
  return (await checkedOut(store, request)).steps.get(name);
}

export async function becomes(store: Store, request: RunRequest, state: KeyRecord["state"]): Promise<void> {
  await until(async () => (await checkedOut(store, request)).state === state);
}

/** A provider that charges a key once, however often it is asked under it. */
export function openTill() {
  const asked: string[] = [];
  const charges = new Map<string, { readonly id: number }>();
  const charge = async (key: string) => {
    asked.push(key);
    const made = charges.get(key) ?? { id: charges.size + 1 };
    charges.set(key, made);
    return made;
  };
  return { asked, charges, charge };
}
