// What a careless library would do. Each is made by wrapping sound parts; the library itself has no such switches.
import { randomUUID } from "node:crypto";
import { reached } from "./failpoints.mjs";

/** By name: `store` wraps a sound store, `sweep` is a tick, and the others change how the bank is talked to. */
export const mutants = {
  none: {},
  "effect and record in two transactions": { store: apart },
  "no fence on completion": { store: unfenced },
  "local effect after completion": { store: effectLast },
  "downstream key per attempt": { downstreamKey: (attempt) => `${attempt.downstreamKey}-${attempt.number}` },
  "sweeper that releases without asking": { sweep: releaseUnasked },
  "sweeper with a threshold below the request time": { store: hasty },
  "provider timeout taken as failure": { hearsNothing: true },
  "purge of unknown": { store: forgetful },
  "step whose result is not kept": { store: stepless },
};

/** Runs a held unit's work in a transaction of its own; `decide` says how that ends. */
async function worked(store, { work, bounds }, decide) {
  return await store.transaction(async (tx) => {
    const end = await work(tx, null);
    return { kind: end.kind === "rollback" ? "rollback" : await decide(tx, end), value: end };
  }, bounds);
}

/** Puts the units of a mutant in the place of those that stand on a version. */
function withUnits(store, unit) {
  const fenced = async (ground, work, bounds) => {
    if (ground.kind !== "held") return await store.fenced(ground, work, bounds);
    return await unit({ ground, work, bounds });
  };
  return { ...store, fenced };
}

function ended(end, replaced) {
  const { record, now } = replaced;
  return replaced.kind === "replaced"
    ? { kind: "committed", record, now, value: end.value }
    : { kind: "refused", record, now };
}

function apart(store) {
  return withUnits(store, async (unit) => {
    const end = await worked(store, unit, () => "commit");
    if (end.kind === "rollback") return { kind: "rolled_back", value: end.value };
    reached("between effect and record");
    return ended(end, await store.replace(unit.ground.seen, end.write, "wait"));
  });
}

function effectLast(store) {
  return withUnits(store, async (unit) => {
    const end = await worked(store, unit, () => "rollback");
    if (end.kind === "rollback") return { kind: "rolled_back", value: end.value };
    const replaced = await store.replace(unit.ground.seen, end.write, "wait");
    reached("between record and effect");
    if (replaced.kind === "replaced") await worked(store, unit, () => "commit");
    return ended(end, replaced);
  });
}

/** Commits whatever stands, and writes over it. */
function unfenced(store) {
  return withUnits(store, async (unit) => {
    let written;
    const end = await worked(store, unit, async (tx, { write }) => {
      do {
        const { record } = await store.within(tx).read(write.identity);
        if (record === null) return "rollback";
        written = await store.within(tx).replace(seenIn(record), write, "wait");
      } while (written.kind !== "replaced");
      return "commit";
    });
    return end.kind === "rollback" ? { kind: "rolled_back", value: end.value } : ended(end, written);
  });
}

async function releaseUnasked({ store, policy, context }) {
  const { records } = await store.due({ kind: "stale", graceMs: policy.sweepGraceMs, limit: 100 });
  for (const record of records) {
    const write = released(record, policy.releasedRetentionMs);
    const { kind } = await store.replace(seenIn(record), write, "never");
    const { operation, identity, attempt, state: from } = record;
    const move = { by: "sweeper", operation, identity, attempt, from, to: "released", reason: "It is old." };
    if (kind === "replaced") context.emit({ type: "transition", ...move });
  }
}

/** Takes for dead what has run for a tenth of a second. */
function hasty(store) {
  const due = async (query) => {
    if (query.kind !== "stale") return await store.due(query);
    const listed = await store.list({ state: "in_progress", limit: query.limit });
    return { ...listed, records: listed.records.filter(({ claimedAt }) => claimedAt + 100 < listed.now) };
  };
  return { ...store, due };
}

/** Treats an `unknown` as any other record that is old. */
function forgetful(store) {
  const purge = async (limit) => {
    const { records } = await store.list({ state: "unknown", limit });
    for (const record of records) await store.replace(seenIn(record), released(record, 1), "never");
    return await store.purge(limit);
  };
  return { ...store, purge };
}

/** Writes down that a step's call is over, and not what came of it. */
function stepless(store) {
  const forgotten = ([name, step]) => [
    name,
    step.state === "finished" ? { state: "clear", generation: step.generation } : step,
  ];
  const replace = (seen, write, patience) =>
    store.replace(seen, { ...write, steps: new Map([...write.steps].map(forgotten)) }, patience);
  return { ...store, replace };
}

function seenIn({ identity, owner, revision }) {
  return { identity, owner, revision };
}

/** The record, released, and forgotten as soon as may be. */
function released(record, retainMs) {
  const steps = new Map(
    [...record.steps].map(([name, { generation }]) => [name, { state: "clear", generation }]),
  );
  const { identity, operation, effects, fingerprint, owner, reference, correlationId, attempt } = record;
  const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
  const kept = { identity, operation, effects, fingerprint, owner, reference, correlationId, attempt };
  return {
    ...kept,
    ...times,
    steps,
    state: "released",
    writeId: randomUUID(),
    retainUntil: { inMs: retainMs },
  };
}
