/** What a jittered time is of the one that was asked for, at most. */
export const MOST_JITTER = 1.2;

/** A fifth less to a fifth more, as chance (0 to 1) will have it, so that rivals drift apart. */
export function jittered(ms: number, random: number): number {
  return Math.round(ms * (LEAST_JITTER + (MOST_JITTER - LEAST_JITTER) * random));
}

const LEAST_JITTER = 0.8;
