import type { RecordWrite, Seen } from "../../src/core/record.ts";
import type {
  Awaitable,
  Fenced,
  FencedWork,
  Ground,
  Patience,
  UnitEnd,
  Within,
} from "../../src/stores/store.ts";
import type { Blocked, OpenTx } from "./open-tx.ts";
import { applied, fateOf, isBlocked, replies, unavailable, type Wire } from "./wire.ts";
import { happens, hearing, meet, taken, underWay, type Waiting } from "./world.ts";

/** The verbs inside an open transaction. */
export function within(wire: Wire, tx: OpenTx): Within {
  const { database, process } = wire;
  const by = process.name;
  return {
    tryClaim: (identity) => database.tryClaim(identity, tx),
    insert: (write: RecordWrite) => waited(wire, tx, () => database.insert(write, tx, by)),
    replace: (seen: Seen, write: RecordWrite, patience: Patience) =>
      waited(wire, tx, () => database.replace({ seen, write, patience }, tx, by)),
    read: (identity) => database.read(identity, tx),
  };
}

/** A statement of a transaction, answered at once unless it has to wait for another one. */
function waited<T>(wire: Wire, tx: OpenTx, perform: () => T | Blocked): Awaitable<T> {
  if (tx.state !== "open") throw unavailable(wire, "a statement of a transaction that has ended");
  const result = perform();
  if (!isBlocked(result)) return result;
  return new Promise((resolve, reject) => {
    const retry = () => {
      if (tx.state !== "open") return reject(unavailable(wire, "a statement that waited"));
      applied(wire, "a statement", perform, (value) => replies(wire, "a statement", () => resolve(value)));
    };
    underWay(wire.world, "a statement, after a lock", wire.process, retry).blockedBy = result.by;
  });
}

/** A unit whose last write is its own affair. */
export function transaction<T>(wire: Wire, work: (tx: OpenTx) => Awaitable<UnitEnd<T>>): Promise<T> {
  const { database, world, process } = wire;
  return new Promise((settle, fail) => {
    const { resolve, reject } = hearing<T>(world, process, "a transaction", {
      resolve: settle,
      reject: fail,
    });
    begins(wire, "a transaction", reject, () => {
      world.heard?.(process, "begun", database.digest());
      const tx = database.begin();
      whileOpen(wire, tx);
      const ended = (end: UnitEnd<T>) => {
        if (end.kind === "commit") return commits(wire, tx, { resolve: () => resolve(end.value), reject });
        database.rollback(tx);
        resolve(end.value);
      };
      works(wire, tx, () => work(tx), ended, reject);
    });
  });
}

/** A unit between the ground that it stands on and its own last write. */
export function fenced<T>(wire: Wire, ground: Ground, work: FencedWork<OpenTx, T>): Promise<Fenced<T>> {
  const { database, world, process } = wire;
  return new Promise((settle, fail) => {
    const { resolve, reject } = hearing<Fenced<T>>(world, process, "a unit", {
      resolve: settle,
      reject: fail,
    });
    begins(wire, `a unit on what is ${ground.kind}`, reject, () => {
      const tx = database.begin();
      whileOpen(wire, tx);
      const fence = () => (tx.state === "open" ? database.fence(ground, tx) : GONE);
      applied(wire, "a fence", fence, (begun) => {
        if (begun.kind === "gone")
          return replies(wire, "a fence", () => reject(unavailable(wire, "a transaction")));
        if (begun.kind !== "go") {
          database.rollback(tx);
          return replies(wire, "a fence", () => resolve(begun));
        }
        replies(wire, "a fence", () => {
          if (tx.state !== "open") return reject(unavailable(wire, "a transaction"));
          world.heard?.(process, "go", begun.number);
          works(
            wire,
            tx,
            () => work(tx, begun.number),
            (end) => concludes(wire, { tx, ground, end, resolve, reject }),
            reject,
          );
        });
      });
    });
  });
}

const GONE = { kind: "gone" } as const;

interface Concluding<T> extends Waiting<Fenced<T>> {
  readonly tx: OpenTx;
  readonly ground: Ground;
  readonly end: Awaited<ReturnType<FencedWork<OpenTx, T>>>;
}

function concludes<T>(wire: Wire, { tx, ground, end, resolve, reject }: Concluding<T>): void {
  const { database } = wire;
  if (end.kind === "rollback") {
    database.rollback(tx);
    resolve({ kind: "rolled_back", value: end.value });
    return;
  }
  applied(
    wire,
    "the last write",
    () => database.conclude(ground, end, tx),
    (done) => {
      if (done.kind === "refused") {
        database.rollback(tx);
        return replies(wire, "the last write", () => resolve(done));
      }
      const committed = { kind: "committed", record: done.record, now: done.now, value: end.value } as const;
      commits(wire, tx, { resolve: () => resolve(committed), reject });
    },
  );
}

/** The first statement on its way; a process that has meanwhile stopped begins when it goes on. */
function begins(wire: Wire, what: string, reject: (error: unknown) => void, begin: () => void): void {
  const { world, process, library } = wire;
  happens(world, what, process, () => {
    const fate = fateOf(wire, (each) => each === "not applied" || each === "contention" || each === "silent");
    world.trace?.(`  ${process.name} begins ${what}${fate === "done" ? "" : `: ${fate}`}`);
    if (fate === "done") return begin();
    if (fate === "silent") return;
    reject(
      fate === "contention"
        ? new library.StoreContention("Another one is in the way.")
        : unavailable(wire, what),
    );
  });
}

/** A server ends what its client left open. */
function whileOpen({ world, database, process }: Wire, tx: OpenTx): void {
  const rollback = underWay(world, `${process.name} left a transaction`, null, () => {
    if (tx.state !== "open") return;
    meet(world, "transaction ended by the server");
    world.trace?.(`  the server ends a transaction of ${process.name}`);
    database.rollback(tx);
  });
  rollback.onceGone = process;
  tx.waiting.push(() => taken(world, rollback));
}

function works<E>(
  wire: Wire,
  tx: OpenTx,
  work: () => Awaitable<E>,
  ended: (end: E) => void,
  reject: (error: unknown) => void,
): void {
  const failed = (error: unknown) => {
    wire.database.rollback(tx);
    reject(error);
  };
  try {
    const end = work();
    if (isPromise(end)) end.then(ended, failed);
    else ended(end);
  } catch (error) {
    failed(error);
  }
}

function isPromise<T>(value: Awaitable<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value;
}

/** The commit on its way: sent at once, or after a moment in which its process may be stopped. */
function commits(wire: Wire, tx: OpenTx, waiting: Waiting<void>): void {
  const { world, process } = wire;
  if (world.choices.flag(world.rates.split)) {
    meet(world, "transaction held open");
    happens(world, "commit", process, () => committed(wire, tx, waiting));
  } else committed(wire, tx, waiting);
}

function committed(wire: Wire, tx: OpenTx, { resolve, reject }: Waiting<void>): void {
  const { world, database, process, library } = wire;
  if (tx.state !== "open") {
    reject(unavailable(wire, "a transaction that the server ended"));
    return;
  }
  const fate = fateOf(wire, (each) => each !== "twice");
  world.trace?.(`  ${process.name} commits${fate === "done" ? "" : `: ${fate}`}`);
  const later = () => {
    if (tx.state === "open") database.commit(tx, process.name);
  };
  switch (fate) {
    case "done":
    case "twice":
      database.commit(tx, process.name);
      resolve();
      return;
    case "not applied":
      database.rollback(tx);
      reject(unavailable(wire, "a commit"));
      return;
    case "contention":
      database.rollback(tx);
      reject(new library.StoreContention("A deadlock was found."));
      return;
    case "reply lost":
      database.commit(tx, process.name);
      reject(unavailable(wire, "a commit"));
      return;
    case "late":
      underWay(world, "commit, late", null, later);
      reject(unavailable(wire, "a commit"));
      return;
    case "slow":
      database.commit(tx, process.name);
      happens(world, "reply to commit", process, resolve);
      return;
    case "silent":
      underWay(world, "commit, unheard", null, world.choices.flag(0.5) ? later : () => database.rollback(tx));
  }
}
