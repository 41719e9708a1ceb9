import { picked } from "./choices.ts";
import type { Database } from "./database.ts";
import type { Library } from "./library.ts";
import type { Blocked } from "./open-tx.ts";
import {
  happens,
  hearing,
  late,
  meet,
  type Process,
  type StoreFate,
  underWay,
  type Waiting,
  type World,
} from "./world.ts";

/** What a call stands on. */
export interface Wire {
  readonly world: World;
  readonly database: Database;
  readonly process: Process;
  readonly library: Library;
}

/** A reply reaches a process that stands still only when it goes on. */
export function replies({ world, process }: Wire, what: string, reply: () => void): void {
  if (process.state === "live") reply();
  else if (process.state === "paused") happens(world, `reply to ${what}`, process, reply);
}

export function fateOf({ world }: Wire, fits: (fate: StoreFate) => boolean): StoreFate | "done" {
  const { rates, choices } = world;
  if (!choices.flag(rates.store)) return "done";
  const fates = rates.storeFates.filter(fits);
  if (fates.length === 0) return "done";
  const fate = picked(choices, fates);
  meet(world, `store: ${fate}`);
  return fate;
}

export function unavailable({ library }: Wire, what: string): Error {
  return new library.StoreUnavailable(`It is unknown what became of ${what}.`);
}

/** One call of one statement. */
export function sent<T>(wire: Wire, what: string, perform: () => T | Blocked): Promise<T> {
  const { world, process } = wire;
  return new Promise((resolve, reject) => {
    const waiting = hearing<T>(world, process, what, { resolve, reject });
    underWay(world, what, process, () => arrives(wire, what, perform, waiting));
  });
}

/** Shorter than any retention: no network delivers a copy of a call after its record was forgotten. */
const OLDEST_MS = 15_000;

function arrives<T>(wire: Wire, what: string, perform: () => T | Blocked, waiting: Waiting<T>): void {
  const { world, process } = wire;
  const fate = fateOf(wire, (each) => each !== "contention");
  world.trace?.(`  ${process.name} ${what}${fate === "done" ? "" : `: ${fate}`}`);
  const fail = () => replies(wire, what, () => waiting.reject(unavailable(wire, what)));
  const sentMs = world.nowMs;
  const later = () => {
    if (world.nowMs - sentMs < OLDEST_MS) applied(wire, what, perform, () => {});
  };
  switch (fate) {
    case "not applied":
      fail();
      return;
    case "reply lost":
      applied(wire, what, perform, fail);
      return;
    case "late":
      late(world, what, later);
      fail();
      return;
    case "silent":
      if (world.choices.flag(0.5)) late(world, what, later);
      return;
    case "slow":
      applied(wire, what, perform, (value) => {
        happens(world, `reply to ${what}`, process, () => waiting.resolve(value));
      });
      return;
    case "twice":
      late(world, what, later);
      applied(wire, what, perform, (value) => replies(wire, what, () => waiting.resolve(value)));
      return;
    case "done":
    case "contention":
      applied(wire, what, perform, (value) => replies(wire, what, () => waiting.resolve(value)));
      return;
  }
}

/** Happens now, or once the transaction has ended that is in the way. */
export function applied<T>(
  { world, process }: Wire,
  what: string,
  perform: () => T | Blocked,
  then: (value: T) => void,
): void {
  const attempted = () => {
    const result = perform();
    if (!isBlocked(result)) return then(result);
    const happening = underWay(world, `${what}, after a lock`, process, attempted);
    happening.blockedBy = result.by;
  };
  attempted();
}

export function isBlocked<T>(result: T | Blocked): result is Blocked {
  return typeof result === "object" && result !== null && "kind" in result && result.kind === "blocked";
}
