import { AsyncLocalStorage } from "node:async_hooks";
import type { Effects, Identity } from "../core/record.ts";
import { ConfigurationError } from "../errors.ts";
import type { Awaitable } from "../stores/store.ts";
import type { EngineEvent } from "./events.ts";
import { type Observer, standInForHandle } from "./stand-in.ts";
import { begins, writes } from "./statement.ts";

/** The development mode that notices writes which go round an attempt's transaction. It reports and never blocks. */
export interface Watch {
  /** A stand-in for the application's own handle, of the same type; attempts that begin from now on are watched. */
  readonly watch: <Handle extends object>(handle: Handle) => Handle;
  /** Runs the programmer's part of an attempt; until it has settled and the attempt has ended, its writes are judged. */
  readonly within: <T>(attempt: WatchedAttempt, run: () => Awaitable<T>) => Awaitable<T>;
  readonly ours: Ours;
}

/** Runs what the engine itself asks of the store; `theirs` runs the programmer's part in it, which is judged again. */
export type Ours = <T>(run: (theirs: Theirs) => Promise<T>) => Promise<T>;
export type Theirs = <T>(part: () => T) => T;

export interface WatchedAttempt {
  readonly identity: Identity;
  readonly operation: string;
  readonly effects: Effects;
  readonly hasEnded: () => boolean;
}

/** Where nobody has called `watch`, everything runs as if this were not here. */
export function createWatch(emit: (event: EngineEvent) => void): Watch {
  let watching: Watch | null = null;
  return {
    watch: (handle) => {
      refuseUnknown(handle);
      watching ??= startWatching(emit);
      return watching.watch(handle);
    },
    within: (attempt, run) => (watching === null ? run() : watching.within(attempt, run)),
    ours: (run) => (watching === null ? run((part) => part()) : watching.ours(run)),
  };
}

/** A layer over a driver sends its statements by ways that are not seen here. */
function refuseUnknown(handle: object): void {
  if (["query", "execute", "prepare", "unsafe"].some((method) => method in handle)) return;
  throw new ConfigurationError(
    "handle",
    "must be a pool or client of pg, a sql of postgres.js or a SQLite database; below a query builder or an ORM watch those",
  );
}

/** Whose statements those of an asynchronous context are. */
type Place =
  | { readonly kind: "attempt"; readonly attempt: WatchedAttempt; readonly isOver: () => boolean }
  /** The engine's own; what it is lent meanwhile is the transaction's handle until the work is done. */
  | { readonly kind: "ours"; readonly isDone: () => boolean }
  | { readonly kind: "free" };

type Places = AsyncLocalStorage<Place | undefined>;

const FREE: Place = { kind: "free" };

function startWatching(emit: (event: EngineEvent) => void): Watch {
  const places: Places = new AsyncLocalStorage();
  const standIns = new WeakMap<object, object>();
  const made = new WeakSet<object>();
  const observer = observing(places, emit, (handle) => standIns.get(handle) ?? standInFor(handle));
  const standInFor = <Handle extends object>(handle: Handle): Handle => {
    if (made.has(handle)) return handle;
    const standIn = standInForHandle(handle, observer);
    standIns.set(handle, standIn);
    made.add(standIn);
    return standIn;
  };
  return {
    watch: standInFor,
    within: (attempt, run) => runWithin(places, attempt, run),
    ours: async (run) => {
      const around = places.getStore();
      let done = false;
      try {
        const place: Place = { kind: "ours", isDone: () => done };
        return await places.run(place, () => run((part) => places.run(around, part)));
      } finally {
        done = true;
      }
    },
  };
}

function runWithin<T>(places: Places, attempt: WatchedAttempt, run: () => Awaitable<T>): Promise<T> {
  let settled = false;
  const isOver = () => settled && attempt.hasEnded();
  const place: Place = attempt.effects === "transaction" ? { kind: "attempt", attempt, isOver } : FREE;
  const running = new Promise<T>((resolve) => resolve(places.run(place, run)));
  const settle = () => {
    settled = true;
  };
  running.then(settle, settle);
  return running;
}

/** Judges each statement by the place it comes from and the handle it goes through. */
function observing(
  places: Places,
  emit: (event: EngineEvent) => void,
  standInFor: (handle: object) => object,
): Observer {
  const { lend, isLent, loanOf } = loans();
  const begun = (handle: object) => {
    const place = places.getStore();
    if (place?.kind === "ours") lend(handle, place.isDone);
  };
  return {
    begun,
    stated: (handle, text) => {
      const place = places.getStore();
      if (place?.kind === "ours" && begins(text)) begun(handle);
      if (place?.kind !== "attempt" || place.isOver() || isLent(handle) || !writes(text)) return;
      const { operation, identity } = place.attempt;
      const statement = text.trimStart().slice(0, STATEMENT_CHARACTERS);
      // A listener may well write down what it hears, with a handle that is watched.
      places.run(FREE, () => emit({ type: "write_outside_transaction", operation, identity, statement }));
    },
    lending: (from) => {
      const place = places.getStore();
      const isDone = place?.kind === "ours" ? place.isDone : loanOf(from);
      return (handle) => {
        lend(handle, isDone);
        return standInFor(handle);
      };
    },
    resumed: (callback) => {
      const place = places.getStore();
      return new Proxy(callback, {
        apply: (_, self, given) => places.run(place, () => Reflect.apply(callback, self, given)),
      });
    },
  };
}

/** Enough to find the statement by; a bulk insert may be long. */
const STATEMENT_CHARACTERS = 200;

/** Whether the work that a handle was lent for is done. */
type Loan = () => boolean;

/** The handles of our own transactions. */
function loans() {
  const lent = new WeakMap<object, Loan>();
  return {
    /** Without a loan the handle is the application's again. */
    lend: (handle: object, loan: Loan | undefined): void => {
      if (loan === undefined) lent.delete(handle);
      else lent.set(handle, loan);
    },
    loanOf: (handle: object): Loan | undefined => lent.get(handle),
    isLent: (handle: object): boolean => lent.get(handle)?.() === false,
  };
}
