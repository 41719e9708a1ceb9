/** How often which fault really happened; what was planned and did not happen does not count. */
export interface Tally {
  readonly add: (fault: string) => void;
  /** Counts by asking somebody else. */
  readonly follow: (fault: string, count: () => number) => void;
  readonly count: (fault: string) => number;
  /** The faults of which there were fewer than wanted. */
  readonly short: () => readonly string[];
  readonly all: () => Readonly<Record<string, number>>;
}

export function openTally(wanted: Readonly<Record<string, number>>): Tally {
  const counts = new Map(Object.keys(wanted).map((fault) => [fault, 0]));
  const followed = new Map<string, () => number>();
  const count = (fault: string) => followed.get(fault)?.() ?? counts.get(fault) ?? 0;
  return {
    count,
    add: (fault) => void counts.set(fault, count(fault) + 1),
    follow: (fault, counting) => void followed.set(fault, counting),
    short: () =>
      Object.entries(wanted).flatMap(([fault, least]) =>
        count(fault) < least ? [`${fault}: ${count(fault)} of ${least}`] : [],
      ),
    all: () =>
      Object.fromEntries([...counts.keys(), ...followed.keys()].sort().map((fault) => [fault, count(fault)])),
  };
}
