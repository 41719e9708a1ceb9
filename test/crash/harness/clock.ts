/** The clock that all processes of a machine share, in milliseconds. */
export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
