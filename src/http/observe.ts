import type { BeginRequest, Begun } from "../engine/begin.ts";
import { concludedBy } from "../engine/concluded.ts";
import type { Context } from "../engine/context.ts";
import type { Engine } from "../engine/engine.ts";
import type { Settling } from "../engine/returned.ts";
import { OncekeyError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller, Guard } from "./guard.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Host } from "./route.ts";
import { withoutAttempt } from "./unprotected.ts";

/**
 * Runs the handler for every request as if nothing stood before it, and lets the listeners hear what a protected route
 * would have made of the key. The record is claimed and ended beside the handler: no answer waits for the store, is
 * changed by it, or is kept in it.
 */
export async function observed<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  guard: Guard,
  caller: Caller,
  host: Host<Tx, Settles>,
): Promise<Outgoing> {
  const { context } = engine;
  const asked = await askedOf(context, guard, host.exchange, caller);
  if (asked === null) return await host.unprotected(withoutAttempt(), []);
  const beginning = engine.begin({ ...asked, effects: "none", runsAnyway: true, observed: true });
  // Heard at once, so that it is never unhandled while the handler runs.
  const begun = beginning.catch((error: unknown) => told(context, error));
  return await host.unprotected(withoutAttempt(), [], (status) => void ended(context, begun, status));
}

/** What would be claimed; `null` where nothing would, which the listeners have heard. */
async function askedOf<Tx>(
  context: Context<Tx>,
  guard: Guard,
  exchange: Exchange,
  caller: Caller,
): Promise<Omit<BeginRequest, "effects"> | null> {
  try {
    const admission = await guard.admit(exchange, caller);
    if (admission.kind === "admit") return admission.request;
    if (admission.kind === "refuse" && !COUNTED.has(admission.code))
      told(context, new OncekeyError(admission.code, "Protected, the route would refuse this request."));
  } catch (error) {
    told(context, error);
  }
  return null;
}

/** The guard tells these itself. */
const COUNTED: ReadonlySet<string> = new Set(["key_missing", "key_invalid"]);

/** Ends the record by what the handler answered. Its answer is not kept: it may have been another for every copy. */
async function ended<Tx>(
  context: Context<Tx>,
  beginning: Promise<Begun<Tx> | null>,
  status: number | null,
): Promise<void> {
  const begun = await beginning;
  if (begun?.kind !== "proceed") return;
  try {
    const answer = status === null ? null : { status, headers: [], body: null };
    await concludedBy(begun.attempt, answer === null ? { kind: "threw" } : { kind: "answered", answer });
  } catch (error) {
    told(context, error);
  }
}

/** No client hears of what goes wrong here. */
function told<Tx>({ emit }: Context<Tx>, error: unknown): null {
  emit({ type: "failure", what: "observing a request", error });
  return null;
}
