import type { Answer, Due, Identity, KeyRecord, RecordWrite, Step, StepOf } from "../../core/record.ts";
import { isSealed } from "../../core/sealed.ts";
import { OWN_MARKS } from "../../core/step.ts";
import { OncekeyError } from "../../errors.ts";
import type { Place, Ring } from "./ring.ts";

/** A record's way into a store and out of it. */
export interface Sealing {
  /** The write with everything sealed that may hold a secret; what is sealed already stays as it is. */
  readonly seal: (write: RecordWrite) => RecordWrite;
  /**
   * The record as it was before; what has lost its key stays sealed. Of the version that `written` made the answer is known
   * already.
   */
  readonly open: <Record extends KeyRecord | null>(record: Record, written?: RecordWrite) => Record;
}

/** What is larger than the store keeps anyway is refused before it is sealed. */
export function sealing(ring: Ring, maxRecordBytes: number): Sealing {
  const fitting: Ring["seal"] = (value, place) => {
    if (value.length <= maxRecordBytes) return ring.seal(value, place);
    throw tooLarge(value.length, maxRecordBytes);
  };
  const seal = (value: Uint8Array, place: Place) => (isSealed(value) ? value : fitting(value, place));
  const open = (value: Uint8Array, place: Place) => {
    if (!isSealed(value)) return value;
    const opened = ring.open(value, place);
    return opened.kind === "opened" ? opened.value : value;
  };
  return {
    seal: (write) => changed(write, seal, (answer) => sealedAnswer(fitting, write.identity, answer)),
    open: (record, written) => {
      if (record === null) return record;
      const known = written !== undefined && written.writeId === record.writeId && "answer" in written;
      return changed(record, open, (answer) =>
        known ? written.answer : openedAnswer(ring, record.identity, answer),
      );
    },
  };
}

type Turn = (value: Uint8Array, place: Place) => Uint8Array;

/** What a record and a write of one have in common here. */
interface Holding {
  readonly identity: Identity;
  readonly reference: Uint8Array | null;
  readonly steps: ReadonlyMap<string, StepOf<Due> | Step>;
  readonly answer?: Answer;
  readonly evidence?: { readonly reason: string; readonly result: Uint8Array | null };
}

/** The same with its values turned; the very same where it has none, as nearly every claim. */
function changed<Whole extends Holding>(
  whole: Whole,
  turn: Turn,
  turnAnswer: (answer: Answer) => Answer,
): Whole {
  const { identity, reference, steps, answer, evidence } = whole;
  const change: { -readonly [Name in keyof Holding]?: Holding[Name] } = {};
  if (reference !== null) change.reference = turn(reference, { identity, name: "reference" });
  if (answer !== undefined) change.answer = turnAnswer(answer);
  if (evidence !== undefined && evidence.result !== null)
    change.evidence = { ...evidence, result: turn(evidence.result, { identity, name: "evidence" }) };
  if ([...steps].some(isSecret))
    change.steps = new Map(
      [...steps].map(([name, step]) => [name, turnedStep({ identity, name, step }, turn)]),
    );
  return Object.keys(change).length === 0 ? whole : Object.assign({}, whole, change);
}

/** Our own marks hold nothing of anybody's: a request must be judged by them whatever became of the keys. */
function isSecret([name, step]: readonly [name: string, step: StepOf<Due> | Step]): boolean {
  return "result" in step && !name.startsWith(OWN_MARKS);
}

function turnedStep<AStep extends StepOf<Due> | Step>(
  { identity, name, step }: { readonly identity: Identity; readonly name: string; readonly step: AStep },
  turn: Turn,
): AStep {
  if (!("result" in step) || !isSecret([name, step])) return step;
  return { ...step, result: turn(step.result, { identity, name: `step ${step.state} ${name}` }) };
}

function tooLarge(bytes: number, most: number): OncekeyError {
  return new OncekeyError(
    "record_too_large",
    `A value of the record has ${bytes} bytes, more than the ${most} that the store keeps. Nothing was written.`,
  );
}

function sealedAnswer(seal: Ring["seal"], identity: Identity, answer: Answer): Answer {
  const { status, headers, body } = answer;
  if (body === null) return answer;
  return { status, headers, body: null, sealed: seal(body, placeOf(identity, answer)) };
}

function openedAnswer(ring: Ring, identity: Identity, answer: Answer): Answer {
  const { status, headers, sealed } = answer;
  if (sealed === undefined) return answer;
  const opened = ring.open(sealed, placeOf(identity, answer));
  return opened.kind === "opened" ? { status, headers, body: opened.value } : answer;
}

/** Status and headers stay readable, and are held together with the body: none of them is put beside another. */
function placeOf(identity: Identity, { status, headers }: Answer): Place {
  return { identity, name: `answer ${status} ${JSON.stringify(headers)}` };
}
