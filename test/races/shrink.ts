import { listedChoices, recorded, seededChoices } from "./choices.ts";
import type { Violation } from "./judge.ts";
import type { Kind } from "./kinds.ts";
import type { Library } from "./library.ts";
import { played } from "./play.ts";
import type { Trial } from "./schedule.ts";
import { drawnSetup } from "./swarm.ts";

/** A schedule that broke a promise, as the list of its choices. */
export interface Broken {
  readonly choices: readonly number[];
  readonly violation: Violation;
}

type Breaking = Pick<Trial, "flaw" | "storeOnTrial"> & {
  readonly library: Library;
  readonly kinds: readonly Kind[];
};

/** The schedule of a seed once more, with its choices written down; `null` where it breaks nothing. */
export function brokenBy(seed: number, breaking: Breaking): Broken | null {
  const choices: number[] = [];
  const violation = violationOf(breaking, recorded(seededChoices(seed), choices));
  return violation === null ? null : { choices, violation };
}

/** Tells a schedule line by line. */
export function told(choices: readonly number[], breaking: Breaking): readonly string[] {
  const lines: string[] = [];
  violationOf(breaking, listedChoices(choices), (line) => lines.push(line));
  return lines;
}

function violationOf(
  { kinds, ...breaking }: Breaking,
  choices: Trial["choices"],
  trace: Trial["trace"] = null,
): Violation | null {
  const setup = drawnSetup(choices, kinds);
  trace?.(
    `${setup.kind}: ${setup.clients.length} clients, ${setup.servers} servers, ${setup.workers} workers`,
  );
  return played(setup, { ...breaking, choices, trace }).violation;
}

/**
 * A plainer schedule that breaks the same promise: choices are left out, or made the plainest, as long as it still does.
 * Since 0 is the plainest choice everywhere, fewer and smaller numbers are fewer clients, faults and steps.
 */
export function shrunk(broken: Broken, breaking: Breaking, most = 4_000): Broken {
  const { invariant } = broken.violation;
  let best = broken;
  let tries = 0;
  const better = (choices: readonly number[]): boolean => {
    tries += 1;
    const violation = violationOf(breaking, listedChoices(choices));
    if (violation?.invariant !== invariant) return false;
    best = { choices, violation };
    return true;
  };
  for (let length = best.choices.length; length >= 1 && tries < most; length = Math.floor(length / 2)) {
    for (let at = 0; at < best.choices.length && tries < most; ) {
      const { choices } = best;
      const [before, after] = [choices.slice(0, at), choices.slice(at + length)];
      const plain = choices.slice(at, at + length).some((choice) => choice > 0);
      if (better([...before, ...after])) continue;
      if (plain) better([...before, ...choices.slice(at, at + length).map(() => 0), ...after]);
      at += length;
    }
  }
  return best;
}
