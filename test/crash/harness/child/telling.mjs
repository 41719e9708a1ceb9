// What a process says of itself, one line of JSON each. A pipe takes a line at once, so that nothing said is lost by a kill.
import { AsyncLocalStorage } from "node:async_hooks";

/** The clock that all processes of a machine share, in milliseconds. */
export function nowMs() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

export function tell(what) {
  process.stdout.write(`${JSON.stringify({ atMs: nowMs(), ...what })}\n`);
}

/** The request that is being served: `{ arrivedMs }`. */
export const serving = new AsyncLocalStorage();

/** Says that an attempt's work begins. */
export function tellRun({ principal, key }, attempt) {
  const { arrivedMs } = serving.getStore();
  tell({ kind: "ran", principal, key, attempt, arrivedMs });
}

/** Passes on what an engine says, as far as a history needs it. */
export function tellEvent(event) {
  switch (event.type) {
    case "transition": {
      const { by, identity, attempt, from, to } = event;
      return tell({ kind: "moved", by, principal: identity.principal, key: identity.key, attempt, from, to });
    }
    case "lease_lost":
      return tell({ kind: "lost", attempt: event.attempt });
    case "failure":
      return tell({ kind: "failure", what: event.what, error: String(event.error) });
    case "record_corrupt":
      return tell({ kind: "corrupt", error: String(event.error) });
  }
}

/** Fractions from a seed. */
export function fractionsFrom(seed) {
  let state = (seed ^ 0x9e37_79b9) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
}
