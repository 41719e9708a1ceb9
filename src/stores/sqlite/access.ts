import { type Duration, parseDuration } from "../../core/policy.ts";
import { ConfigurationError } from "../../errors.ts";
import type { SqliteConnection } from "./connection.ts";
import { isBusy, translated } from "./faults.ts";
import { type Session, session } from "./session.ts";
import { turns } from "./turns.ts";
import { runUnit, type Unit } from "./unit.ts";

type Work<T> = (connection: SqliteConnection) => T;

/** The ways to the file; each fails only with errors that mean something to the store's users. */
export interface Access {
  /** One look at what is committed. */
  read<T>(work: Work<T>): Promise<T>;
  /** One short transaction, after those asked for before it; run again while others hold the lock. */
  write<T>(work: Work<T>): Promise<T>;
  /** One short transaction before those in line, or `instead` when others hold the lock longer than short writes do. */
  tryWrite<T>(work: Work<T>, instead: Work<T>): Promise<T>;
  /** One unit of the user's, on a connection that nothing else uses. */
  unit<T>(work: Unit<T>): Promise<T>;
  close(): Promise<void>;
}

export interface AccessOptions {
  readonly connect: () => SqliteConnection;
  readonly storeTimeout: Duration;
  readonly random: () => number;
}

/** Reads and short writes share one connection, units have the other; all writes share one line of turns. */
export function access({ connect, storeTimeout, random }: AccessOptions): Access {
  const { take, skip } = turns({ timeoutMs: milliseconds(storeTimeout), random });
  const verbs = session(connect);
  const units = session(connect);
  const ask = <T>(work: Work<T>): T => work(verbs.open());
  const commit = <T>(work: Work<T>): T =>
    verbs.immediately((connection) => ({ kind: "commit", value: work(connection) }));
  return {
    read: (work) => meaningful(verbs, () => skip(() => ask(work))),
    write: (work) => meaningful(verbs, () => take(() => commit(work))),
    tryWrite: (work, instead) =>
      meaningful(verbs, () =>
        orWhenBusy(
          () => skip(() => commit(work), SHORT_WRITES_MS),
          () => skip(() => ask(instead)),
        ),
      ),
    unit: async (work) => {
      const ran = await meaningful(units, () => take(() => runUnit(units, work)));
      if (ran.kind === "threw") throw ran.error;
      return ran.value;
    },
    close: () =>
      take(() => {
        verbs.close();
        units.close();
      }),
  };
}

/**
 * SQLite locks the whole file and no row: a lock that is gone within this time was most likely a short write of another
 * record, and says nothing about the one at hand.
 */
const SHORT_WRITES_MS = 300;

function milliseconds(storeTimeout: Duration): number {
  const parsed = parseDuration(storeTimeout);
  if (parsed.kind === "bad") throw new ConfigurationError("storeTimeout", `must be ${parsed.reason}`);
  return parsed.ms;
}

async function orWhenBusy<T>(work: () => Promise<T>, instead: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isBusy(error)) return instead();
    throw error;
  }
}

async function meaningful<T>(through: Session, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error, through.current());
  }
}
