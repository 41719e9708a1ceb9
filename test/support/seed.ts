/** Random numbers that a seed fixes. */
export type SeededRandom = {
  /** A fraction, at least 0 and less than 1. */
  fraction(): number;
  /** A whole number, at least 0 and less than `limit`. */
  below(limit: number): number;
  /** One of `choices`, which must not be empty. */
  pick<Choice>(choices: readonly Choice[]): Choice;
};

let known: number | undefined;

/** The seed of this test file: `SEED` of the environment, or a fresh one; printed the first time it is asked for. */
export function seed(): number {
  if (known === undefined) {
    const { SEED } = process.env;
    known = seedFrom(SEED);
    console.log(`seed ${known} (SEED=${known} repeats it)`);
  }
  return known;
}

function seedFrom(text: string | undefined): number {
  if (text === undefined || text === "") return Math.floor(Math.random() * 0x7fff_ffff);
  if (!/^\d{1,10}$/.test(text)) throw new Error(`SEED must be a whole number, not "${text}".`);
  return Number(text);
}

/** Draws from a 32-bit xorshift: good enough to choose moments and interleavings, not for secrets. */
export function seededRandom(start: number = seed()): SeededRandom {
  let state = (start ^ 0x9e37_79b9) | 1;
  const fraction = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    pick: (choices) => {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error("There is nothing to pick from.");
      return choice;
    },
  };
}
