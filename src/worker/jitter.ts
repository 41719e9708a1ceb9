/** A fifth less to a fifth more, as chance (0 to 1) will have it, so that rivals drift apart. */
export function jittered(ms: number, random: number): number {
  return Math.round(ms * (0.8 + 0.4 * random));
}
