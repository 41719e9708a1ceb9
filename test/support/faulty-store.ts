import { setTimeout as wait } from "node:timers/promises";
import { following } from "../../src/engine/command.ts";
import { StoreContention, StoreUnavailable } from "../../src/errors.ts";
import type {
  Awaitable,
  Fenced,
  FencedWork,
  Ground,
  Settling,
  Store,
  TransactionalStore,
  UnitEnd,
} from "../../src/stores/store.ts";

/** The calls that can be made to go wrong; a fenced unit counts as a transaction. */
export type Verb = "insert" | "replace" | "read" | "due" | "transaction";

/** What may become of one call; everything but `slow` and `silent` ends it with a typed error at once. */
export type Fault =
  /** The store did what it was asked for; nobody heard it say so. */
  | { readonly kind: "reply_lost" }
  | { readonly kind: "not_applied" }
  /** Still under way when the caller was told nothing; applied at `applyHeld`. */
  | { readonly kind: "applied_later" }
  | { readonly kind: "slow"; readonly ms: number }
  /** Applied, and never answered. */
  | { readonly kind: "silent" }
  /** The database gave way to somebody else: rolled back. */
  | { readonly kind: "contention" };

export interface Faults {
  /** Lets a call of `verb` go wrong: the n-th from now on (1 is the next), or every one until `heal`. */
  readonly plan: (verb: Verb, call: number | "every", fault: Fault["kind"] | Fault) => void;
  /** Forgets what was planned; what is held back stays so. */
  readonly heal: () => void;
  /** Applies what was held back, in the order of the calls, and tells how it went. */
  readonly applyHeld: () => Promise<readonly PromiseSettledResult<unknown>[]>;
  /** How often `verb` was called. */
  readonly calls: (verb: Verb) => number;
}

export interface FaultyStore<S> extends Faults {
  readonly store: S;
}

export interface FaultOptions {
  /** Where time is a test's own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** Wraps a real store whose calls go wrong as planned, and does everything else as it does. */
export function faultyStore(store: Store, options: FaultOptions = {}): FaultyStore<Store> {
  const { through, ...faults } = createFaults(options);
  return { ...faults, store: { ...store, ...verbs(store, through) } };
}

/** The same for a store with transactions; a unit whose commit is lost has run. */
export function faultySqlStore<Tx, Settles extends Settling>(
  store: TransactionalStore<Tx, Settles>,
  options: FaultOptions = {},
): FaultyStore<TransactionalStore<Tx, Settles>> {
  const { through, ...faults } = createFaults(options);
  const transaction = <T>(work: (tx: Tx) => Awaitable<UnitEnd<T>>): Promise<T> =>
    through(
      "transaction",
      () => store.transaction(work),
      () => store.transaction((tx) => following(work(tx), ({ value }) => ({ kind: "rollback", value }))),
    );
  const fenced = <T>(ground: Ground, work: FencedWork<Tx, T>): Promise<Fenced<T>> =>
    through(
      "transaction",
      () => store.fenced(ground, work),
      () =>
        store.fenced(ground, (tx, number) =>
          following(work(tx, number), ({ value }) => ({ kind: "rollback", value })),
        ),
    );
  return { ...faults, store: { ...store, ...verbs(store, through), transaction, fenced } };
}

/** `undone` is the same call without its effect. */
type Through = <T>(verb: Verb, call: () => Promise<T>, undone?: () => Promise<T>) => Promise<T>;

function verbs(store: Store, through: Through): Pick<Store, "insert" | "replace" | "read" | "due"> {
  return {
    insert: (write) => through("insert", () => store.insert(write)),
    replace: (seen, write, patience) => through("replace", () => store.replace(seen, write, patience)),
    read: (identity) => through("read", () => store.read(identity)),
    due: (query) => through("due", () => store.due(query)),
  };
}

function createFaults({ sleep = wait }: FaultOptions): Faults & { readonly through: Through } {
  const counts = new Map<Verb, number>();
  const once = new Map<string, Fault>();
  const always = new Map<Verb, Fault>();
  const held: (() => Promise<unknown>)[] = [];
  const calls = (verb: Verb) => counts.get(verb) ?? 0;
  const through: Through = (verb, call, undone) => {
    const count = calls(verb) + 1;
    counts.set(verb, count);
    const fault = once.get(`${verb} ${count}`) ?? always.get(verb);
    return fault === undefined ? call() : suffer(fault, { call, undone, sleep, held });
  };
  return {
    through,
    calls,
    plan: (verb, call, planned) => {
      const fault = typeof planned === "string" ? faultOf(planned) : planned;
      if (call === "every") always.set(verb, fault);
      else once.set(`${verb} ${calls(verb) + call}`, fault);
    },
    heal: () => {
      once.clear();
      always.clear();
    },
    applyHeld: async () => {
      const results = [];
      for (const call of held.splice(0)) results.push(...(await Promise.allSettled([call()])));
      return results;
    },
  };
}

interface Call<T> {
  readonly call: () => Promise<T>;
  readonly undone: (() => Promise<T>) | undefined;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly held: (() => Promise<unknown>)[];
}

async function suffer<T>(fault: Fault, { call, undone, sleep, held }: Call<T>): Promise<T> {
  switch (fault.kind) {
    case "reply_lost":
      await call();
      throw new StoreUnavailable("The reply was lost on its way (planned).");
    case "not_applied":
      await undone?.();
      throw new StoreUnavailable("The call was lost on its way (planned).");
    case "applied_later":
      held.push(call);
      throw new StoreUnavailable("The call is still under way (planned).");
    case "slow": {
      const reply = await call();
      await sleep(fault.ms);
      return reply;
    }
    case "silent":
      await call();
      return await new Promise<never>(() => {});
    case "contention":
      await undone?.();
      throw new StoreContention("The database gave way (planned).");
  }
}

function faultOf(kind: Fault["kind"]): Fault {
  return kind === "slow" ? { kind, ms: 0 } : { kind };
}
