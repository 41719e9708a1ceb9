import type { Fault } from "../../support/fault-link.ts";
import type { Passage, Rule } from "../../support/fault-rules.ts";
import type { PostgresStatement } from "../../support/postgres-wire.ts";
import type { SeededRandom } from "../../support/seed.ts";

/** Where a message is cut off: it never arrives, nobody waits for its answer, or its answer is dropped. */
export const CUTS = ["cut_before", "cut_after", "swallow_reply"] as const;

export type Cut = (typeof CUTS)[number];

export interface Cutting {
  readonly random: SeededRandom;
  /** Of a hundred messages so many are cut, in one weather and the next. */
  readonly hundredths: readonly number[];
  /** The messages that may be. */
  readonly at: (passage: Passage<PostgresStatement>) => boolean;
}

/** After so many messages the weather is drawn anew. */
const STRETCH = 25;

/** Rules of a proxy that leave most messages alone; what becomes of one is drawn once. */
export function cutting({ random, hundredths, at }: Cutting): readonly Rule<PostgresStatement>[] {
  const drawn = new WeakMap<object, Cut | "none">();
  let messages = 0;
  let cutInHundred = 0;
  const next = () => {
    if (messages++ % STRETCH === 0) cutInHundred = random.pick(hundredths);
    return random.below(100) < cutInHundred ? random.pick(CUTS) : "none";
  };
  const fate = (passage: Passage<PostgresStatement>) => {
    const known = drawn.get(passage);
    if (known !== undefined) return known;
    const kind = at(passage) ? next() : "none";
    drawn.set(passage, kind);
    return kind;
  };
  return CUTS.map((kind) => ({ when: (passage) => fate(passage) === kind, fault: faultOf(kind) }));
}

function faultOf(kind: Cut): Fault {
  return kind === "swallow_reply" ? { kind, cutAfterMs: 10 } : { kind };
}
