import type { Engine, EngineEvent, Settling } from "oncekey";
import { Counter, Registry } from "prom-client";
import { addGauges, type GaugeParts } from "./gauges.ts";

/** Counts what the engine tells, and shows what its store holds, for Prometheus; no key and no principal is in a label. */
export function createMetrics<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  { tell, everyMs = 30_000 }: Pick<GaugeParts, "tell"> & Partial<GaugeParts>,
): Registry {
  const registry = new Registry();
  addGauges(engine, { registry, everyMs, tell });
  const counters = countersIn(registry);
  engine.subscribe((event) => countingOf(counters, event)());
  return registry;
}

type Counters = ReturnType<typeof countersIn>;

function countersIn(registry: Registry) {
  const counter = <Label extends string>(name: string, help: string, ...labelNames: readonly Label[]) =>
    new Counter({ name: `oncekey_${name}_total`, help, labelNames, registers: [registry] });
  return {
    requests: counter("requests", "Keyed requests, by what their key came to", "operation", "outcome"),
    transitions: counter("transitions", "Records moved, by whom", "by", "operation", "from", "to"),
    lost: counter("lease_lost", "Attempts that found their key taken from them", "operation"),
    corrupt: counter("records_corrupt", "Records that could not be read", "operation"),
    contradictions: counter("contradictions", "Effects that were disproved and happened", "operation"),
    unused: counter("transactions_unused", "Handlers that never called transaction", "operation"),
    outside: counter("writes_outside_transaction", "Writes that went round their transaction", "operation"),
    overridden: counter(
      "ambiguity_overridden",
      "Outcomes that nobody knew and a policy decided",
      "operation",
      "policy",
    ),
    unheard: counter(
      "finality_refused",
      "Words of a route about an answer that could not be taken",
      "operation",
    ),
    withheld: counter("replays_refused", "Answers that a caller might not have any more", "operation"),
    unattended: counter("no_upkeep", "Processes that claimed keys where no worker was seen"),
    failures: counter("failures", "Failures that no caller was waiting for"),
  };
}

/** What is to be counted for an event; a function, so that no kind of event can be left out. */
function countingOf(counters: Counters, event: EngineEvent): () => void {
  switch (event.type) {
    case "request":
      return () => counters.requests.inc({ operation: event.operation, outcome: outcomeOf(event) });
    case "mismatch":
      return () => {}; // its request is counted, and names of members are no labels
    case "transition": {
      const { by, operation, from, to } = event;
      return () => counters.transitions.inc({ by, operation, from, to });
    }
    case "lease_lost":
      return () => counters.lost.inc({ operation: event.operation });
    case "record_corrupt":
      return () => counters.corrupt.inc({ operation: event.operation });
    case "contradiction":
      return () => counters.contradictions.inc({ operation: event.operation });
    case "transaction_unused":
      return () => counters.unused.inc({ operation: event.operation });
    case "write_outside_transaction":
      return () => counters.outside.inc({ operation: event.operation });
    case "ambiguity_overridden":
      return () => counters.overridden.inc({ operation: event.operation, policy: event.policy });
    case "finality_refused":
      return () => counters.unheard.inc({ operation: event.operation });
    case "replay_refused":
      return () => counters.withheld.inc({ operation: event.operation });
    case "no_upkeep":
      return () => counters.unattended.inc();
    case "failure":
      return () => counters.failures.inc();
  }
}

/** What an observed route would have said is told apart from what a protected one did. */
function outcomeOf({ outcome, observed }: Extract<EngineEvent, { readonly type: "request" }>): string {
  return observed === true ? `observed_${outcome}` : outcome;
}
