import type { Edit, Mutant } from "./mutant.ts";

/** What deciding, claiming, judging and fencing may get wrong: a text of the built engine that is another one. */
export const protocolMutants: readonly Mutant[] = [
  {
    name: "everybody runs",
    fault: "whoever finds a running record runs too",
    foundOn: "undeclared",
    edits: [edit("core/decide", "const own = record.owner === owner;", "const own = true;")],
  },
  {
    name: "takes over a live lease",
    fault: "a duplicate takes every running attempt for a dead one",
    foundOn: "local",
    edits: [edit("core/decide", "const lapsed = record.leaseUntil <= now;", "const lapsed = true;")],
  },
  {
    name: "a lapsed claim is run",
    fault: "an attempt begins to run under a claim of its own that has lapsed",
    foundOn: "undeclared",
    edits: [edit("core/decide", "if (own && !lapsed)", "if (own)")],
    equivalent:
      "the lease ends on its own clock too, which an attempt is told before it begins; every write is fenced",
  },
  {
    name: "forgets too early",
    fault: "a finished record counts as forgotten before its retention is over",
    foundOn: "local",
    edits: [edit("core/decide", "record.retainUntil <= now;", "record.retainUntil <= now + 10_000;")],
  },
  {
    name: "the same to everybody",
    fault: "the fingerprint is not compared",
    foundOn: "local",
    edits: [
      edit(
        "engine/begin",
        "match: (record) => matchFingerprint(fingerprint, record.fingerprint),",
        'match: () => "same",',
      ),
    ],
  },
  {
    name: "one principal for all",
    fault: "the identity holds no principal",
    foundOn: "local",
    edits: [
      edit(
        "engine/run",
        'principal: usable("principal", "principal_unresolved", checkPrincipal(principal)),',
        'principal: "everybody",',
      ),
    ],
  },
  {
    name: "tells another's answer",
    fault: "an attempt that lost its key is told what is kept, whoever it is for",
    foundOn: "local",
    within: 12_000,
    edits: [edit("engine/attempt", 'record === null || record.state === "released"', "record !== undefined")],
  },
  {
    name: "sweeps without grace",
    fault: "the sweeper does not wait for the grace",
    foundOn: "local",
    edits: [edit("worker/sweeper", "const { sweepGraceMs: graceMs } = policy;", "const graceMs = 0;")],
  },
  {
    name: "sweeps what lives",
    fault: "the sweeper judges attempts whose lease lasts",
    foundOn: "declared query",
    edits: [edit("worker/sweeper", "const { sweepGraceMs: graceMs } = policy;", "const graceMs = -5_000;")],
  },
  {
    name: "sweeps into released",
    fault: "the sweeper releases every dead attempt, whatever it may have done",
    foundOn: "undeclared",
    edits: [edit("worker/sweeper", 'if (verdict.kind === "release")', "if (verdict.kind !== undefined)")],
  },
  {
    name: "silence is a no",
    fault: "an open mark counts as a call that was not made",
    foundOn: "declared query",
    edits: [edit("core/verdict", "if (open.length === 0)", "if (open.length >= 0)")],
  },
  {
    name: "undeclared means none",
    fault: "an attempt that declares nothing counts as one that did nothing",
    foundOn: "undeclared",
    edits: [edit("core/verdict", "return hasBegun(record) ?", "return !hasBegun(record) ?")],
  },
  {
    name: "reconciles without taking over",
    fault: "the reconciler looks under the name of the attempt that it looks after",
    equivalent:
      "every write names the revision, too, so that of an attempt and its reconciler one wins, and the provider is asked for one truth; a new owner ends the other's work sooner",
    foundOn: "operation keyed",
    edits: [
      edit(
        "core/transition",
        '{ ...keptUnknown(record, change), owner: change.owner, attempt: "next", nextLookAt }',
        "{ ...keptUnknown(record, change), nextLookAt }",
      ),
    ],
  },
  {
    name: "not found is a no",
    fault: 'a provider\'s first "not found" is believed',
    foundOn: "operation query",
    edits: [
      edit("core/silence", "if (askedAt > validUntil)", "if (askedAt !== validUntil)"),
      edit("core/silence", "return looks > 0 ?", "return looks >= 0 ?"),
    ],
  },
  {
    name: "a first look is enough",
    fault: 'a "not found" is believed on the first look after the deadline',
    foundOn: "operation query",
    edits: [edit("core/silence", "return looks > 0 ?", "return looks >= 0 ?")],
    equivalent:
      "this provider shows all that it has accepted by its deadline; the second look is for one that is slower",
  },
  {
    name: "before the deadline",
    fault: 'a "not found" is believed on the second look, before the deadline',
    foundOn: "operation query",
    edits: [edit("core/silence", "if (askedAt > validUntil)", "if (askedAt !== validUntil)")],
  },
  {
    name: "not found is a cancel",
    fault: "the reconciler releases what was not found, and does not ask to cancel it",
    foundOn: "operation keyed",
    edits: [
      edit(
        "worker/sighting",
        "if (!silent || cancel === null)",
        'if (silent && cancel !== null) return { sighted: { kind: "cancelled" }, record };\n    if (!silent || cancel === null)',
      ),
    ],
  },
  {
    name: "a key for each attempt",
    fault: "the downstream key holds the attempt's number",
    foundOn: "operation repeatable",
    edits: [
      edit("engine/downstream-key", "String(generation),", "String(generation), String(record.attempt),"),
    ],
  },
  {
    name: "the generation stays",
    fault: "a key that the provider has cancelled is used again",
    foundOn: "operation keyed",
    edits: [edit("core/transition", "(change.cancelled?.has(name) ? 1 : 0)", "0")],
  },
  {
    name: "the mark begins anew",
    fault: "a call that is made again counts the provider's memory from itself",
    foundOn: "operation repeatable",
    edits: [
      edit(
        "core/transition",
        'if (earlier.state === "finished" || earlier.state === "open")',
        'if (earlier.state === "finished")',
      ),
    ],
  },
  {
    name: "one instant for two",
    fault: "a mark of the same millisecond passes for the claim's own",
    foundOn: "operation repeatable",
    within: 6_000,
    edits: [edit("engine/claim", "markedBefore(decision.record, now)", "decision.record")],
  },
  {
    name: "finished steps are forgotten",
    fault: "a takeover carries no finished step on",
    foundOn: "declared blind",
    edits: [
      edit(
        "core/transition",
        'const earlier = body === "same" ? standing : withoutRefusals(standing);',
        "const earlier = new Map();",
      ),
    ],
  },
  {
    name: "a refusal for every body",
    fault: "a corrected request is told what another body was refused",
    foundOn: "declared keyed",
    within: 12_000,
    edits: [edit("core/transition", 'body === "same" ? standing : withoutRefusals(standing)', "standing")],
  },
  {
    name: "writes over whoever stands",
    fault: "an attempt's late write goes over the version of whoever took its key",
    foundOn: "undeclared",
    edits: [edit("engine/ending", "return record.owner === held.owner && (", "return (")],
  },
  {
    name: "a reply lost is a write done",
    fault: "a write whose reply was lost counts as applied",
    foundOn: "undeclared",
    edits: [
      edit(
        "engine/ending",
        'const replaced = yield* persist(budget, () => replace(seen(current), write, "wait"));',
        'let replaced; try { replaced = yield* replace(seen(current), write, "wait"); } catch { return { kind: "written", record: { ...current, ...write, revision: current.revision + 1, attempt: current.attempt, retainUntil: 0 } }; }',
      ),
    ],
  },
];

export function edit(module: string, from: string, to: string): Edit {
  return { file: `${module}.js`, from, to };
}
