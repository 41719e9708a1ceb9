/** Where a process is told to die: places in the scripts of `child`, on the way of a request and of the workers. */
const POINTS = [
  ...["before claim", "claim sent", "claim done", "in open", "open sent", "open done"],
  ...["before perform", "bank committed", "reply got", "in finish", "finish sent", "finish done"],
  ...["in transfer", "transfer sent", "transfer done", "answer half written", "answer written"],
  ...["renewal sent", "sweeper mid batch", "before look", "found by look", "cancelled", "abandon sent"],
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

/** A statement leaves a process only where the database is another one. */
export function pointsOn(database: "SQLite" | "PostgreSQL"): readonly string[] {
  return database === "PostgreSQL" ? POINTS : POINTS.filter((point) => !point.endsWith(" sent"));
}
