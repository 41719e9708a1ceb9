import { type Choices, picked } from "./choices.ts";
import { KINDS, type Kind, providerKindOf } from "./kinds.ts";
import type { Client, Disturbance, Setup } from "./schedule.ts";
import type { CallFate, Rates, StoreFate } from "./world.ts";

export const STORE_FATES: readonly StoreFate[] = [
  ...(["not applied", "reply lost", "late", "slow", "silent", "twice", "contention"] as const),
];

export const CALL_FATES: readonly CallFate[] = [
  ...(["not sent", "not arrived", "reply lost", "late", "slow", "silent", "twice", "declined"] as const),
];

export const DISTURBANCES: readonly Disturbance[] = [
  ...([
    "crash",
    "pause",
    "suspend",
    "clock ahead",
    "clock back",
    "sweep",
    "reconcile",
    "purge",
    "close",
  ] as const),
];

/** A setup of its own for each schedule: each kind of fault has a rate that is drawn, and is often left out. */
export function drawnSetup(choices: Choices, kinds: readonly Kind[] = KINDS): Setup {
  const kind = picked(choices, kinds);
  const epochs = picked(choices, [1, 1, 2, 3]);
  const clients = Array.from({ length: 2 + choices.below(4) }, (_, number) =>
    client(choices, number, epochs),
  );
  const disturbances: readonly Disturbance[] = [
    ...(["time", "time", "a lease", "resume", "resume"] as const),
    ...(epochs > 1 ? (["a retention"] as const) : []),
    ...DISTURBANCES.filter(() => choices.flag(0.6)).filter((each) => each !== "suspend" || !needsClock(kind)),
  ];
  return {
    ...{ kind, clients, disturbances, rates: drawnRates(choices) },
    ...{ servers: 1 + choices.below(3), workers: 1 + choices.below(2) },
    withheld: choices.flag(0.3),
    disturbed: picked(choices, [0.05, 0.1, 0.2, 0.35]),
    changes: picked(choices, [null, null, 2, 4]),
    steps: 60 + 40 * epochs,
  };
}

/** How long a repeatable provider will know a key is counted by each machine itself: its clock must not stand still. */
function needsClock(kind: Kind): boolean {
  return providerKindOf(kind) === "repeatable";
}

function client(choices: Choices, number: number, epochs: number): Client {
  const isOther = number > 1 && choices.flag(0.15);
  const isCorrected = number > 0 && choices.flag(0.15);
  const arrivesMs = picked(choices, [0, 1, 50, 400, 1_000, 2_500]) + 21_000 * choices.below(epochs);
  const asking = { principal: isOther ? "bob" : "alice", key: "k", input: isCorrected ? "other" : "one" };
  return { name: `client ${number}`, asking, arrivesMs, tries: 1 + choices.below(3) };
}

function drawnRates(choices: Choices): Rates {
  const rate = () => picked(choices, [0, 0.05, 0.1, 0.25, 0.5]);
  const some = <Fate>(fates: readonly Fate[]) => fates.filter(() => choices.flag(0.5));
  return {
    ...{
      store: rate(),
      storeFates: some(STORE_FATES),
      call: picked(choices, [0, 0.1, 0.25, 0.5, 0.8]),
      callFates: some(CALL_FATES),
    },
    ...{ split: rate(), hide: rate(), fail: picked(choices, [0, 0, 0.1, 0.3]) },
  };
}
