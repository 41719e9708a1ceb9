/** What a schedule leaves open. Everything that is drawn comes through here, so that a list of numbers is a schedule. */
export interface Choices {
  /** A whole number, at least 0 and less than `limit`; 0 is the plainest choice. */
  readonly below: (limit: number) => number;
  /** True with this chance; false is the plainest choice. */
  readonly flag: (chance: number) => boolean;
}

/** Draws by a seed: a 32-bit xorshift, because a schedule draws several hundred times. */
export function seededChoices(seed: number): Choices {
  let state = Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b) | 1;
  const fraction = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
  for (let times = 0; times < 4; times += 1) fraction(); // seeds that are neighbours begin alike
  return {
    below: (limit) => (limit <= 1 ? 0 : Math.floor(fraction() * limit)),
    flag: (chance) => chance > 0 && fraction() < chance,
  };
}

/** The same choices, written down as they are made. */
export function recorded(choices: Choices, record: number[]): Choices {
  return {
    below: (limit) => {
      if (limit <= 1) return 0;
      const drawn = choices.below(limit);
      record.push(drawn);
      return drawn;
    },
    flag: (chance) => {
      if (chance <= 0) return false;
      const drawn = choices.flag(chance);
      record.push(drawn ? 1 : 0);
      return drawn;
    },
  };
}

/** Makes written choices again; beyond their end everything is plain. */
export function listedChoices(list: readonly number[]): Choices {
  let at = 0;
  const next = () => list[at++] ?? 0;
  return {
    below: (limit) => (limit <= 1 ? 0 : Math.min(next(), limit - 1)),
    flag: (chance) => chance > 0 && next() > 0,
  };
}

/** One of several things; the first one is the plainest. */
export function picked<Thing>(choices: Choices, things: readonly Thing[]): Thing {
  const thing = things[choices.below(things.length)];
  if (thing === undefined) throw new Error("There is nothing to pick from.");
  return thing;
}
