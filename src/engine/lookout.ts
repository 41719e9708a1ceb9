import type { Identity } from "../core/record.ts";
import type { Looked } from "../stores/store.ts";
import type { Runtime } from "./runtime.ts";

/** Where copies wait, in this process, for the end of a running request. Between two looks nothing of the store is held. */
export interface Lookout {
  readonly enter: (identity: Identity) => Post;
  /** An attempt of this process has ended, so that a look is due at once; what became of it only the store says. */
  readonly ended: (identity: Identity) => void;
  /** Returns what stops the listening. */
  readonly onClose: (listener: () => void) => () => void;
  /** Nobody is to wait any longer. */
  readonly close: () => void;
}

/** One copy's place among those that wait for one key. */
export interface Post {
  /** The next look at the record: the same one for all; `null` where the store did not answer it. */
  readonly look: () => Promise<Looked | null>;
  /** Runs `claim`, or does nothing while another who waits here is claiming: all but one would lose. */
  readonly inTurn: <T>(claim: () => Promise<T>) => Promise<T | null>;
  readonly leave: () => void;
}

interface World {
  readonly runtime: Runtime;
  readonly look: (identity: Identity) => Promise<Looked | null>;
}

export function createLookout(world: World): Lookout {
  const places = new Map<string, Place>();
  const closing = new Set<() => void>();
  return {
    enter: (identity) => {
      const name = nameOf(identity);
      const place = places.get(name) ?? createPlace(world, identity);
      places.set(name, place);
      return place.enter(() => void places.delete(name));
    },
    ended: (identity) => {
      if (places.size > 0) places.get(nameOf(identity))?.hurry();
    },
    onClose: (listener) => {
      closing.add(listener);
      return () => void closing.delete(listener);
    },
    close: () => {
      for (const listener of [...closing]) listener();
    },
  };
}

function nameOf(identity: Identity): string {
  const { kind, principal, key } = identity;
  return JSON.stringify([kind, principal, kind === "run" ? identity.operation : null, key]);
}

/** All who wait for one key. */
interface Place {
  /** `onEmpty` is called when the last one leaves. */
  readonly enter: (onEmpty: () => void) => Post;
  readonly hurry: () => void;
}

/** A short answer is not waited for much longer than it takes. */
const FIRST_PAUSE_MS = 50;

/** What a person hardly notices: two looks a second for each key and process, however many wait. */
const LONGEST_PAUSE_MS = 500;

function createPlace({ runtime, look }: World, identity: Identity): Place {
  const alarm = createAlarm(runtime);
  let [waiting, looks, claiming] = [0, 0, false];
  let next: Promise<Looked | null> | null = null;
  const lookLater = async () => {
    const upToMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** looks);
    await alarm.after(upToMs * (0.5 + runtime.random() / 2));
    looks += 1;
    return await look(identity);
  };
  const inTurn: Post["inTurn"] = async (claim) => {
    if (claiming) return null;
    claiming = true;
    return await claim().finally(() => {
      claiming = false;
    });
  };
  const shared = () => {
    next ??= lookLater().finally(() => {
      next = null;
    });
    return next;
  };
  const enter: Place["enter"] = (onEmpty) => {
    waiting += 1;
    const leave = () => {
      waiting -= 1;
      if (waiting > 0) return;
      alarm.cancel();
      onEmpty();
    };
    return { look: shared, inTurn, leave };
  };
  return { enter, hurry: alarm.ring };
}

/** A pause that can be cut short, before it has begun as well. */
function createAlarm({ after }: Runtime) {
  let rung = false;
  let [wake, cancel] = [() => {}, () => {}];
  const pause = async (ms: number) => {
    await new Promise<void>((resolve) => {
      if (rung) return resolve();
      wake = resolve;
      cancel = after(ms, resolve);
    });
    cancel();
    rung = false;
  };
  const ring = () => {
    rung = true;
    wake();
  };
  return { after: pause, ring, cancel: () => cancel() };
}
