/** So many pieces of work in a row; then others get their turn. */
const AT_ONCE = 100;

/**
 * Does pieces of work outside of any promise, where microtasks can be run at will: `piece` says whether there is more to
 * do. What it throws ends the work.
 */
export function inTurns(piece: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const turn = () => {
      const { stackTraceLimit } = Error;
      Error.stackTraceLimit = 0; // hundreds of errors in each schedule, and nobody reads where they were made
      try {
        for (let done = 0; done < AT_ONCE; done += 1) if (!piece()) return resolve();
        setImmediate(turn);
      } catch (error) {
        reject(error);
      } finally {
        Error.stackTraceLimit = stackTraceLimit;
      }
    };
    setImmediate(turn);
  });
}

/** A whole number of the environment. */
export function numberOf(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  if (!/^\d{1,10}$/.test(text)) throw new Error(`${name} must be a whole number, not "${text}".`);
  return Number(text);
}
