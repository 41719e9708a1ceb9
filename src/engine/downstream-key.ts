import { createHash } from "node:crypto";
import { lengthPrefixed } from "../core/key.ts";
import type { KeyRecord } from "../core/record.ts";

/**
 * The key that we send to an external provider: the same on every attempt, another one per principal, key, step and
 * generation, and never the inbound key itself. Holds no secret.
 */
export function downstreamKey(namespace: string, record: KeyRecord, step: string): string {
  const { identity, operation } = record;
  const generation = record.steps.get(step)?.generation ?? 0;
  const parts = [
    namespace,
    identity.kind,
    identity.principal,
    operation,
    identity.key,
    step,
    String(generation),
  ];
  return createHash("sha256").update(lengthPrefixed(parts)).digest("hex");
}
