/**
 * Makes a call for each number with `inFlight` of them under way; resolves to the milliseconds for each. A call is in
 * flight from when its function is called until its promise settles, the wait for a connection included; as one settles
 * its successor begins.
 */
export async function inFlightOf(ids, inFlight, call) {
  const rest = ids.values();
  const lane = async () => {
    for (const id of rest) await call(id);
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return (performance.now() - startedMs) / ids.length;
}

/**
 * Makes the calls in bursts of `size`, all of one burst at once and the next when the last of it is settled. `burst`
 * begins the calls of these numbers; each resolves to whatever is wanted of it.
 */
export async function inBurstsOf(ids, size, burst) {
  const results = [];
  const startedMs = performance.now();
  for (let from = 0; from < ids.length; from += size) {
    results.push(...(await Promise.all(burst(ids.slice(from, from + size)))));
  }
  return { ms: (performance.now() - startedMs) / ids.length, results };
}

/** How many bursts that are. */
export function burstsIn(calls, size) {
  return Math.ceil(calls / size);
}

/** Resolves to the milliseconds that a promise took to settle well, from now on. */
export async function timed(promise) {
  const startedMs = performance.now();
  await promise;
  return performance.now() - startedMs;
}
