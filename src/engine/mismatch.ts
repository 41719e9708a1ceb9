import type { Answered, BeginRequest } from "./begin.ts";
import type { Context } from "./context.ts";
import { differingMembers } from "./fingerprint.ts";

/** Tells the listeners, and no client, what a request differs in from the first one with its key. */
export function tellMismatch<Tx>(
  { emit, keyed }: Context<Tx>,
  { operation, identity, fingerprint, observed = false }: BeginRequest,
  answered: Answered,
): void {
  if (answered.kind !== "mismatch") return;
  const { attempt, fingerprint: kept } = answered.record;
  const differing = differingMembers(keyed(fingerprint), kept);
  const { members, missing } = differing ?? { members: null, missing: 0 };
  emit({ type: "mismatch", operation, identity, attempt, members, missing, observed });
}
