import type { Configuration } from "./explore.ts";
import type { Kind } from "./kinds.ts";
import type { CallFate, StoreFate } from "./world.ts";

const LOST: readonly StoreFate[] = ["not applied", "reply lost", "late"];
const UNHEARD: readonly CallFate[] = ["not arrived", "reply lost", "late"];

/** Longer than a lease and the grace. */
const LAPSED_MS = 1_250;
/** Longer than a `query` provider takes a request. */
const INVALID_MS = 3_100;

const PLAIN: Omit<Configuration, "name" | "kind"> = {
  ...{ clients: ["one", "one"], tries: 1, ticks: [], faults: 1, storeFates: [], callFates: [] },
  ...{ disturbances: [], jumps: 0, passesMs: [LAPSED_MS], jumpsMs: [], splits: false },
};

function configuration(name: string, kind: Kind, changes: Partial<Configuration>): Configuration {
  return { ...PLAIN, ...changes, name, kind };
}

const crashed = { disturbances: ["crash"], ticks: ["sweep"], jumps: 1 } as const;
const stood = { disturbances: ["pause"], ticks: ["sweep"], jumps: 1 } as const;
const lost = { storeFates: LOST, faults: 2 } as const;
const unheard = { callFates: UNHEARD, ticks: ["reconcile"] } as const;

const deadline: Partial<Configuration> = {
  ...{
    clients: ["one"],
    callFates: UNHEARD,
    ticks: ["reconcile", "reconcile"],
    jumps: 1,
    passesMs: [INVALID_MS],
  },
};

/** Searched to the end in every run of the tests. */
export const SMALL: readonly Configuration[] = [
  configuration("a race and two lost calls", "local", lost),
  configuration("a crash and a sweeper", "local", crashed),
  configuration("a process that stands still, and a sweeper", "local", stood),
  configuration("three clients and an open transaction", "local", {
    clients: ["one", "one", "one"],
    splits: true,
  }),
  configuration("a corrected request and two lost calls", "local", { ...lost, clients: ["one", "other"] }),
  configuration("a race and two lost calls", "local, one commit", lost),
  configuration("a crash of an open transaction", "local, one commit", {
    splits: true,
    faults: 2,
    disturbances: ["crash"],
  }),
  configuration("a lost call and an unheard one", "undeclared", { ...lost, callFates: UNHEARD }),
  configuration("a process that stands still, and a sweeper", "undeclared", {
    ...stood,
    clients: ["one"],
    tries: 2,
  }),
  configuration("unheard, and called again", "declared repeatable", { callFates: UNHEARD, tries: 2 }),
  configuration("a lost call and an unheard one", "declared keyed", {
    ...unheard,
    storeFates: ["reply lost"],
  }),
  configuration("unheard, and two reconcilers", "declared keyed", {
    ...unheard,
    ticks: ["reconcile", "reconcile"],
  }),
  configuration("unheard, a deadline and two reconcilers", "declared query", deadline),
  configuration("a lost call and an unheard one", "declared blind", { ...lost, callFates: UNHEARD }),
  configuration("unheard, and called again", "operation repeatable", { callFates: UNHEARD, tries: 2 }),
  configuration("unheard, and a reconciler", "operation keyed", unheard),
  configuration("unheard, a deadline and two reconcilers", "operation query", deadline),
  configuration("a crash and a sweeper", "operation keyed", { ...crashed, clients: ["one"] }),
  configuration("a lost call and an unheard one", "operation blind", {
    callFates: UNHEARD,
    storeFates: LOST,
  }),
  configuration("a store's clock that steps back", "declared repeatable", {
    callFates: UNHEARD,
    jumps: 1,
    passesMs: [],
    jumpsMs: [-1_009, 1_003],
  }),
];

const KINDS: readonly Kind[] = [
  "local",
  "undeclared",
  "declared keyed",
  "operation query",
  "operation keyed",
];

/** Searched by a long run only: two faults, two clocks that move, a sweeper and two reconcilers. */
export const LARGE: readonly Configuration[] = KINDS.map((kind) =>
  configuration("two faults, two jumps, a sweeper and two reconcilers", kind, {
    ...{ storeFates: LOST, callFates: UNHEARD, faults: 2, disturbances: ["crash", "pause"], splits: true },
    ...{
      ticks: ["sweep", "reconcile", "reconcile"],
      jumps: 2,
      passesMs: [LAPSED_MS, INVALID_MS],
      jumpsMs: [-1_009],
    },
  }),
);
