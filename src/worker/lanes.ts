/** Waits until every lane has ended, so that none works on behind the tick's back, and throws the failure of the first. */
export async function allEnded(lanes: readonly Promise<void>[]): Promise<void> {
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === "rejected") throw lane.reason;
}
