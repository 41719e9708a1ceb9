/** Where a process is told to die: places in the scripts of `child`, on the way of a request and of the workers. */
const POINTS = [
  ...["before claim", "claim sent", "claim done", "in open", "open sent", "open done"],
  ...["before perform", "bank committed", "reply got", "in finish", "finish sent", "finish done"],
  ...["in transfer", "transfer sent", "transfer done", "answer half written", "answer written"],
  ...["renewal sent", "sweeper mid batch", "before look", "found by look", "cancelled", "abandon sent"],
  // A step's mark is kept and its call not sent; its call is answered, and its result not kept; that is kept.
  ...["step marked", "step answered", "step kept", "step sent"],
  "purge sent",
];

/** Those to which few requests lead, so that several are waited for at once. */
const RARE: ReadonlySet<string> = new Set([
  ...["bank committed", "renewal sent", "sweeper mid batch", "before look", "found by look", "cancelled"],
  "abandon sent",
]);

export function isRare(point: string): boolean {
  return RARE.has(point);
}

/** True for those that only a request with declared effects reaches. */
export function isOfStep(point: string): boolean {
  return point.startsWith("step ");
}

/** A statement leaves a process only where the database is another one. */
export function pointsOn(database: "SQLite" | "PostgreSQL"): readonly string[] {
  return database === "PostgreSQL" ? POINTS : POINTS.filter((point) => !point.endsWith(" sent"));
}
