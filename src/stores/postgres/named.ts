import type { RawRow } from "./connector.ts";

/**
 * A row that is read by the names of its columns as our SQL wrote them, whatever a layer's taste made of them:
 * `made_attempt` finds `madeAttempt` and `MADE_ATTEMPT`, too.
 */
export function named(columns: Iterable<readonly [name: string, value: unknown]>): RawRow {
  const values = new Map<string, unknown>();
  for (const [name, value] of columns) values.set(plain(name), value);
  return new Proxy<Record<string, unknown>>(
    {},
    { get: (_, name) => (typeof name === "string" ? values.get(plain(name)) : undefined) },
  );
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}
