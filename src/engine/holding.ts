import type { InProgress, RecordWrite } from "../core/record.ts";
import { LeaseLost } from "../errors.ts";
import { type Aborting, createAborting } from "./aborting.ts";
import type { Context } from "./context.ts";
import { type Held, type Written, writeFlow } from "./ending.ts";
import { createQueue, type Queue } from "./queue.ts";

/** An attempt's hold on its record: the version it wrote last, its writes one after another, and what it learns of a loss. */
export interface Holding {
  readonly held: () => Held;
  readonly aborting: Aborting;
  /** Everything that writes the record goes through here, so that a heartbeat never makes a completion look stale. */
  readonly serially: Queue;
  /** Writes the next version, until the lease ends or for `withinMs`; call it inside `serially`. */
  readonly write: (next: (record: Held) => RecordWrite, withinMs?: number) => Promise<Written>;
  readonly lose: (reason: string) => void;
  /** Until when the attempt may believe that it owns its key, on our own monotonic clock. */
  readonly leaseEndMs: () => number;
  readonly extendLease: (sentMs: number) => void;
}

export function createHolding<Tx>(context: Context<Tx>, record: InProgress, startedMs: number): Holding {
  const { driver, policy, runtime, emit } = context;
  const { identity, operation, attempt } = record;
  const aborting = createAborting();
  let held: Held = record;
  let leaseEndMs = startedMs + policy.leaseMs;
  let lost = false;

  const lose = (reason: string) => {
    if (lost) return;
    lost = true;
    emit({ type: "lease_lost", operation, identity, attempt });
    aborting.abort(new LeaseLost(reason));
  };
  const write: Holding["write"] = async (next, withinMs) => {
    const untilMs =
      withinMs === undefined ? leaseEndMs : Math.min(leaseEndMs, runtime.monotonicMs() + withinMs);
    const budget = { untilMs, tries: UNLIMITED };
    const written = await driver.drive(writeFlow(held, next, budget));
    if (written.kind === "lost") lose("Another attempt or a worker has taken this key over.");
    else if (written.record.state === "in_progress" || written.record.state === "unknown")
      held = written.record;
    return written;
  };
  return {
    held: () => held,
    aborting,
    serially: createQueue(),
    write,
    lose,
    leaseEndMs: () => leaseEndMs,
    extendLease: (sentMs) => {
      leaseEndMs = sentMs + policy.leaseMs;
    },
  };
}

/** The lease bounds an attempt's writes, not their number. */
const UNLIMITED = Number.POSITIVE_INFINITY;
