import type { Mutant } from "./mutant.ts";
import { edit } from "./protocol.ts";

/** What running, calling and answering may get wrong. */
export const workMutants: readonly Mutant[] = [
  {
    name: "answers before it is kept",
    fault: "a function's value is told before it is on record",
    foundOn: "undeclared",
    edits: [
      edit(
        "engine/run",
        "const ended = await attempt.complete(ending.answer);",
        'void attempt.complete(ending.answer); if (error === null) return { kind: "first", value: ran.value }; const ended = { kind: "unkept" };',
      ),
    ],
  },
  {
    name: "answers with its own",
    fault: "an attempt that lost its key tells its own value",
    foundOn: "undeclared",
    edits: [
      edit(
        "engine/run",
        "const ended = await attempt.complete(ending.answer);",
        'const ended = await attempt.complete(ending.answer); if (error === null) return { kind: "first", value: ran.value };',
      ),
    ],
  },
  {
    name: "unkept is kept",
    fault: "a value that could not be kept in time is told all the same",
    foundOn: "undeclared",
    edits: [
      edit(
        "engine/run",
        "const ended = await attempt.complete(ending.answer);",
        'const ended = await attempt.complete(ending.answer); if (ended.kind === "unkept") return { kind: "first", value: ran.value };',
      ),
    ],
  },
  {
    name: "a throw is a no",
    fault: "a function that threw is released, though it declares nothing",
    foundOn: "undeclared",
    edits: [
      edit(
        "core/ending",
        'return judgeDeath(attempt, "The handler failed without saying whether it had done anything.");',
        'return { kind: "release" };',
      ),
    ],
  },
  {
    name: "a broken call is a no",
    fault: "a call whose connection broke counts as not made",
    foundOn: "declared query",
    edits: [
      edit(
        "engine/effects",
        "if (doubted || !(error instanceof NotPerformed || neverSent(error)))",
        "if (doubted)",
      ),
    ],
  },
  {
    name: "a second no for a first yes",
    fault: "that a repeated call was not sent says that the first was not made either",
    foundOn: "declared repeatable",
    edits: [
      edit(
        "engine/effects",
        "if (doubted || !(error instanceof NotPerformed || neverSent(error)))",
        "if (!(error instanceof NotPerformed || neverSent(error)))",
      ),
    ],
  },
  {
    name: "an operation's second no",
    fault: "an operation that was not performed this time was not performed before either",
    foundOn: "operation repeatable",
    edits: [
      edit(
        "engine/execute",
        "if (ran.error instanceof NotPerformed && !hasInherited(attempt.record()))",
        "if (ran.error instanceof NotPerformed)",
      ),
    ],
  },
  {
    name: "calls before it marks",
    fault: "a call goes out while its mark is still on its way",
    foundOn: "declared query",
    edits: [
      edit(
        "engine/effects",
        "await opened(performing, doubted);",
        "void opened(performing, doubted).catch(() => {});",
      ),
    ],
  },
  {
    name: "calls without a mark",
    fault: "a call leaves no mark",
    foundOn: "declared query",
    edits: [edit("engine/effects", "await opened(performing, doubted);", "")],
  },
  {
    name: "keeps no result",
    fault: "what a call brought is not kept on its mark",
    foundOn: "declared blind",
    edits: [edit("engine/effects", 'await learnt(performing, { kind: "finished", result });', "")],
  },
  {
    name: "no deadline for the provider",
    fault: "a call names no time after which it is to be refused",
    foundOn: "declared query",
    edits: [
      edit(
        "engine/effects",
        "const validUntil = validForMs === null ? null : new Date(attempt.record().claimedAt + validForMs);",
        "const validUntil = null;",
      ),
    ],
  },
  {
    name: "hears only its timers",
    fault: "an attempt's end is told by timers alone, which a process that stood still hears last",
    foundOn: "declared repeatable",
    within: 6_000,
    edits: [edit("engine/aborting", "if (aborted === null)", "if (aborted === undefined)")],
  },
  {
    name: "forgets that calls take time",
    fault: "a key is called again as long as its provider knows it, though the call goes out later",
    equivalent:
      "not equivalent, and not found in 12,000 schedules: it takes a takeover in the last moments of the provider's memory, by a process that stands still just then",
    foundOn: "operation repeatable",
    edits: [
      edit(
        "engine/operation",
        "keyTtlMs - (request.maxRunMs ?? context.policy.requestTimeoutMs)",
        "keyTtlMs",
      ),
    ],
  },
  {
    name: "a memory without end",
    fault: "a repeatable provider is called again however long ago it first was",
    foundOn: "declared repeatable",
    edits: [
      edit(
        "core/decide",
        "open.length > 0 && now < repeatableUntil(open)",
        "open.length > 0 && repeatableUntil(open) > 0",
      ),
    ],
  },
  {
    name: "a failed finish is a no",
    fault: "an operation whose last transaction fails is released",
    foundOn: "operation query",
    edits: [
      edit(
        "engine/settling",
        "return yield* keepResult(context, held, result);",
        'return yield* abandonFlow(context, settler, held, "nothing_sent");',
      ),
    ],
  },
  {
    name: "a result is dropped",
    fault: "a provider's word is not kept where the last transaction fails",
    foundOn: "operation query",
    edits: [edit("engine/settling", "evidence: { reason, result },", "evidence: { reason, result: null },")],
    equivalent:
      "the reconciler asks the provider again, who says the same; where nobody can be asked a person has to",
  },
  {
    name: "gives back another's doubt",
    fault: "a process that shuts down releases what an earlier attempt left in doubt",
    foundOn: "operation repeatable",
    edits: [edit("engine/disclaim", "if (!hasInherited(record))", "if (record !== null)")],
  },
  {
    name: "takes no claim back",
    fault: "a claim of which nobody heard is left to lapse",
    foundOn: "local",
    edits: [edit("engine/begin", "context.disclaim(asked, undo);", "")],
    equivalent:
      "the sweeper judges it like any attempt that died: it takes longer, and an undeclared one needs a person",
  },
  {
    name: "takes any claim back",
    fault: "a claim that was given up is taken back whoever holds it by then",
    foundOn: "local",
    edits: [
      edit("engine/disclaim", "if (!ownedStill(record, asked.claim))", 'if (record.state !== "in_progress")'),
    ],
  },
  {
    name: "ends over its own calls",
    fault: "an attempt ends without waiting for what its calls still write",
    foundOn: "declared query",
    edits: [edit("engine/gate", "while (pending.size > 0)", "while (pending.size < 0)")],
    equivalent:
      "an attempt's writes go one after another, so that its ending sees what its calls have written",
  },
  {
    name: "no heartbeat",
    fault: "a lease is never renewed",
    foundOn: "local",
    edits: [
      edit(
        "engine/heartbeat",
        "let cancelBeat = runtime.after(policy.heartbeatMs, beats);",
        "let cancelBeat = () => {};",
      ),
    ],
    equivalent:
      "an attempt that is not renewed lapses and is fenced: work that takes longer than its lease is in doubt, not wrong",
  },
  {
    name: "no sweeper",
    fault: "nobody judges attempts that died",
    foundOn: "undeclared",
    edits: [edit("worker/sweeper", "if (records.length === 0)", "if (records.length >= 0)")],
  },
  {
    name: "no reconciler",
    fault: "nobody asks a provider",
    foundOn: "operation query",
    edits: [edit("worker/reconciling", "if (records.length === 0)", "if (records.length >= 0)")],
  },
];
