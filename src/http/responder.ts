import type { Ending } from "../core/ending.ts";
import { type Answer, isConcluded, type KeyRecord } from "../core/record.ts";
import { hasFinished, openMarks } from "../core/step.ts";
import { ABORTING } from "../engine/aborting.ts";
import type { Ended, NotOurs } from "../engine/attempt.ts";
import { passes } from "../engine/retry.ts";
import type { Settling } from "../engine/returned.ts";
import { conclude, type Running } from "./concluding.ts";
import { type Header, type Reply, STATUS_HEADER } from "./exchange.ts";
import { type Handled, type Handling, handled } from "./handling.ts";
import {
  isEventStream,
  isReserved,
  keptAnswer,
  keptPart,
  lengthOf,
  type Outgoing,
  replied,
} from "./outgoing.ts";
import { type Recorded, record } from "./recording.ts";
import * as replies from "./replies.ts";
import { createTransactionDoor } from "./transaction-door.ts";

/** A handler behind a guard, on any host. */
export interface Work<Tx, Settles extends Settling> extends Handling<Tx, Settles> {
  /** Lets the host answer an error as it always does, with these headers on it as far as the host allows. */
  readonly failed: (error: unknown, added: readonly Header[]) => Promise<Outgoing>;
}

/**
 * Runs a handler under its attempt and makes the answer that may leave: only after the outcome is kept, and only the
 * handler's own. What a handler threw goes back to its host where it says nothing, once its outcome is kept.
 */
export async function respond<Tx, Settles extends Settling>(
  begun: Omit<Running<Tx, Settles>, "door">,
  work: Work<Tx, Settles>,
): Promise<Outgoing> {
  const { attempt, guard } = begun;
  const door = createTransactionDoor<Tx, Settles>(attempt, guard);
  const running = { ...begun, door };
  const handling = await handled(attempt, door, work);
  const outcome = door.outcome();
  switch (outcome?.kind) {
    case "committed":
      if (handling.kind === "threw") tell(running, handling.error); // changes nothing, and nobody else would know
      return replied(replies.committed(outcome.answer, outcome.record));
    case "lost":
    case "answered":
      return await unable(running, outcome);
    case "refused":
      return await answered(running, work, replied(bodied(outcome.answer)));
    case undefined:
      if (handling.kind !== "responded") return await failed(running, work, handling);
      reportUnused(running, handling.outgoing);
      return await answered(running, work, handling.outgoing);
  }
}

function reportUnused<Tx, Settles extends Settling>(
  { context, attempt, door }: Running<Tx, Settles>,
  { status }: Outgoing,
): void {
  if (attempt.record().effects !== "transaction" || door.used() || status >= 400) return;
  context.emit({ type: "transaction_unused", operation: attempt.operation, identity: attempt.identity });
}

/** A body that takes longer than this flows to its client while it is recorded. */
const AT_ONCE_MS = 10;

/** Keeps what a handler answered, as far as its status says that it is an outcome, and lets its end go then. */
async function answered<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  work: Work<Tx, Settles>,
  outgoing: Outgoing,
): Promise<Outgoing> {
  const { body } = outgoing;
  if (body === null || body instanceof Uint8Array) return await whole(running, outgoing, body ?? NOTHING);
  const { ended, flow } = record(body, {
    maxBytes: isEventStream(outgoing) ? NOTHING_KEPT : running.guard.maxResponseBytes,
    length: lengthOf(outgoing),
    aborting: running.attempt[ABORTING],
  });
  const atOnce = running.context.runtime.timer(AT_ONCE_MS);
  const recorded = await Promise.race([ended, atOnce.expired]);
  atOnce.cancel();
  if (recorded?.kind === "whole") return await whole(running, outgoing, recorded.body);
  if (recorded?.kind === "broken") return await failed(running, work, brokenOff(running, recorded.error));
  const flowing = flow(async (end) => await isKept(running, outgoing, end));
  return { ...outgoing, body: flowing };
}

const NOTHING = new Uint8Array(0);

/** Not even an empty body: what it would have been, had it gone on, nobody knows. */
const NOTHING_KEPT = -1;

async function whole<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  outgoing: Outgoing,
  body: Uint8Array,
): Promise<Outgoing> {
  const answer = await keptAnswer(outgoing, body, running.guard);
  const ended = await conclude(running, { kind: "answered", answer }, outgoing);
  if (ended.kind === "unkept" && sendsUnkept(running)) return { ...outgoing, body, added: [UNRECORDED] };
  if (ended.kind !== "kept") return await unable(running, ended);
  const { record } = ended;
  return isDoubted(record) ? replied(replies.inDoubt(record)) : { ...outgoing, body, added: saidOf(record) };
}

/** A declared call is in doubt: that outweighs whatever its handler said. */
function isDoubted({ state, effects }: KeyRecord): boolean {
  return state === "unknown" && effects === "declared";
}

/** Headers that tell a first answer's client what became of its key. */
function saidOf(record: KeyRecord): readonly Header[] {
  return record.state === "unknown" ? [UNKNOWN] : replies.expires(record);
}

const UNRECORDED: Header = [STATUS_HEADER, "unrecorded"];

/** The programmer's word, of an answer and not of a call in doubt; nor of one that a transaction keeps after all. */
function sendsUnkept<Tx, Settles extends Settling>({ guard, attempt, door }: Running<Tx, Settles>): boolean {
  return (
    guard.sendsUnkept &&
    openMarks(attempt.record().steps).length === 0 &&
    door.outcome()?.kind !== "committed"
  );
}

const UNKNOWN: Header = [STATUS_HEADER, "unknown"];

/** Whether the end may leave of an answer whose head has left. */
async function isKept<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  outgoing: Outgoing,
  end: Recorded,
): Promise<boolean> {
  const ended = await conclude(running, await endingOf(running, outgoing, end), outgoing);
  if (end.kind === "broken") tell(running, end.error);
  return end.kind !== "broken" && ended.kind === "kept" && !isDoubted(ended.record);
}

async function endingOf<Tx, Settles extends Settling>(
  { guard }: Running<Tx, Settles>,
  outgoing: Outgoing,
  end: Recorded,
): Promise<Ending> {
  switch (end.kind) {
    case "whole":
      return { kind: "answered", answer: await keptAnswer(outgoing, end.body, guard) };
    case "too_long":
      return { kind: "answered", answer: await keptAnswer(outgoing, null, guard) };
    case "broken":
      return { kind: "unsettled", reason: "The handler had answered, and its answer broke off." };
  }
}

/** An answer that broke off before anything of it had left. */
function brokenOff<Tx, Settles extends Settling>(
  { attempt }: Running<Tx, Settles>,
  error: unknown,
): Exclude<Handled, { kind: "responded" }> {
  return attempt[ABORTING].isAborted() ? { kind: "unsettled" } : { kind: "threw", error };
}

async function failed<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  work: Work<Tx, Settles>,
  handling: Exclude<Handled, { kind: "responded" }>,
): Promise<Outgoing> {
  const ended = await conclude(running, endingOfFailure(running, handling));
  if (ended.kind !== "kept") return await unable(running, ended);
  const { record } = ended;
  if (isDoubted(record)) return replied(replies.inDoubt(record));
  if (handling.kind === "refused") return replied(replies.first(handling.answer, record));
  if (isConcluded(record)) {
    if (handling.kind === "threw") tell(running, handling.error); // nobody else will know what was kept as an error
    return replied(replies.first(record.answer, record));
  }
  return await undone(running, work, handling, record);
}

/** What is said where nothing was kept: whether anything was done is what the client has to know. */
async function undone<Tx, Settles extends Settling>(
  running: Running<Tx, Settles>,
  work: Work<Tx, Settles>,
  handling: Exclude<Handled, { kind: "responded" | "refused" }>,
  record: KeyRecord,
): Promise<Outgoing> {
  const released = record.state === "released";
  const partly = released && hasFinished(record);
  switch (handling.kind) {
    case "not_performed":
      tell(running, handling.error);
      return replied(partly ? replies.unfinished() : replies.notPerformed());
    case "outcome_unknown":
      if (!released) return replied(replies.inDoubt(record));
      return replied(partly ? replies.unfinished() : replies.notPerformed());
    case "unsettled":
      if (!released) return replied(replies.inDoubt(record));
      return replied(partly ? replies.unfinished(504) : replies.undoneInTime());
    case "threw": {
      if (!released) return await work.failed(handling.error, [UNKNOWN]);
      if (!passes(handling.error)) return await work.failed(handling.error, []);
      tell(running, handling.error);
      return replied(partly ? replies.unfinished() : replies.undoneByStore());
    }
  }
}

function endingOfFailure<Tx, Settles extends Settling>(
  { guard }: Running<Tx, Settles>,
  handling: Exclude<Handled, { kind: "responded" }>,
): Ending {
  switch (handling.kind) {
    case "refused": {
      return { kind: "permanent_failure", answer: keptPart(handling.answer, guard) };
    }
    case "not_performed":
    case "threw":
      return { kind: handling.kind };
    case "outcome_unknown":
      return { kind: "outcome_unknown", reason: handling.error.message };
    case "unsettled":
      return { kind: "unsettled", reason: "The handler had not ended when its time was up." };
  }
}

/** What is said in the place of an answer that is not this attempt's to give, or that nobody could keep. */
async function unable<Tx, Settles extends Settling>(
  { door, authorise }: Running<Tx, Settles>,
  ended: Exclude<Ended | NotOurs, { kind: "kept" }>,
): Promise<Outgoing> {
  const outcome = door.outcome();
  // The transaction had been committing while its handler was given up: its answer is the attempt's own.
  if (outcome?.kind === "committed") return replied(replies.committed(outcome.answer, outcome.record));
  switch (ended.kind) {
    case "lost":
      return replied(await authorise(ended.record, () => replies.replyToLoser(ended.record)));
    case "answered": {
      const { answered } = ended;
      return replied(await authorise(replies.recordOf(answered), () => replies.replyToAnswered(answered)));
    }
    case "unkept":
      return replied(replies.unkept());
  }
}

/** What no client is told, the operators are. */
function tell<Tx, Settles extends Settling>(
  { context, attempt }: Running<Tx, Settles>,
  error: unknown,
): void {
  context.emit({ type: "failure", what: `running ${attempt.operation}`, error });
}

function bodied({ status, headers, body }: Answer): Reply {
  return { status, headers: headers.filter(([name]) => !isReserved(name)), body: body ?? NOTHING };
}
