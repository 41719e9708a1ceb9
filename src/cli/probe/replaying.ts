import type { WireAnswer } from "./answer-reader.ts";
import { isBinary, isMarked, linesOf, lostHeaders, shown } from "./answers.ts";
import type { CheckId } from "./checks.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, joined, notShown, passed, told } from "./finding.ts";
import type { First } from "./first.ts";
import { printable } from "./problem.ts";
import type { Target } from "./settings.ts";
import type { Seen, Trial } from "./trial.ts";

/** A retry after the answer, on the target and on every further URL. */
export const replaying: Examination = {
  ids: [
    ...["replay-once", "replay-status", "replay-body", "replay-headers", "replay-marked"],
    ...["replay-framing", "empty-answers", "binary-answers", "error-answers"],
  ] as const satisfies readonly CheckId[],
  async examine(trial, first) {
    const repeats = [await repeatedFirst(trial, first)];
    for (const at of trial.settings.also) repeats.push(await repeated(trial, first, at));
    const of = (...kinds: readonly Kind[]) => repeats.filter(({ kind }) => kinds.includes(kind));
    const kept = repeats.filter((repeat) => isKept(repeat));
    const every = <Judged>(judge: (repeat: Repeat) => Judged, chosen: readonly Repeat[]) =>
      chosen.map((repeat) => judge(repeat));
    const forged = await forgedMark(trial, first);
    return [
      joined("replay-once", every(ranOnce("replay-once"), of("text", "binary")), NONE),
      joined("replay-status", every(sameStatus, of("text", "binary")), NONE),
      joined("replay-body", every(sameBody("replay-body"), of("text")), `${NONE} text`),
      joined("replay-headers", every(sameHeaders, kept), "no answer was kept"),
      joined("replay-marked", [...every(marked, kept), forged], "no answer was kept"),
      joined("replay-framing", every(framed, repeats), NONE),
      joined("empty-answers", every(keptEmpty, of("empty")), `${NONE} no body; ${ALSO}`),
      joined("binary-answers", every(sameBody("binary-answers"), of("binary")), `${NONE} no text; ${ALSO}`),
      joined("error-answers", every(sameRefusal, of("error")), `${NONE} an error; ${ALSO}`),
    ];
  },
};

const NONE = "no URL that was given answers with";
const ALSO = "give one by --also";

type Kind = "text" | "binary" | "empty" | "error";

interface Repeat {
  readonly path: string;
  readonly kind: Kind;
  readonly first: WireAnswer;
  /** Effects of the first request. */
  readonly unit: number | null;
  readonly retry: Seen;
}

async function repeatedFirst(trial: Trial, { key, answer, unit, spelled }: First): Promise<Repeat> {
  const retry = await trial.retried({ keys: [spelled(key)] });
  return { path: trial.settings.target.url.pathname, kind: kindOf(answer), first: answer, unit, retry };
}

async function repeated(trial: Trial, { spelled }: First, at: Target): Promise<Repeat> {
  const ask = { at, keys: [spelled(trial.newKey())] };
  const { answer, moved } = await trial.seen(ask);
  const retry = await trial.retried(ask);
  return { path: at.url.pathname, kind: kindOf(answer), first: answer, unit: moved, retry };
}

function kindOf(answer: WireAnswer): Kind {
  if (answer.status >= 400) return "error";
  if (answer.body.length === 0) return "empty";
  return isBinary(answer) ? "binary" : "text";
}

/** Another run, where that can be seen, owes nothing of a replay; nor does a refusal that is not final. */
function isKept({ kind, first, retry }: Repeat): boolean {
  if (retry.moved !== null && retry.moved > 0) return false;
  return kind !== "error" || isFinal(first) || isMarked(retry.answer);
}

function isFinal({ status }: WireAnswer): boolean {
  return [402, 409, 410, 422].includes(status);
}

function ranOnce(id: CheckId): (repeat: Repeat) => Finding {
  return ({ path, unit, retry: { moved } }) => {
    if (moved === null) return notShown(id, `${path}: how often it ran shows with --count-url only`);
    if (moved !== 0) return fault(id, `${path}: the count went up by ${moved} with the retry`);
    if (unit === 0) return notShown(id, `${path}: the count does not go up with its first request`);
    return passed(id, `${path}: the count stayed as it was`);
  };
}

function sameStatus({ path, first, retry: { answer } }: Repeat): Finding {
  const came = `${path}: first ${first.status}, then ${shown(answer)}`;
  if (first.status !== answer.status) return fault("replay-status", came);
  return passed("replay-status", `${path}: ${first.status} both times`);
}

function sameBody(id: CheckId): (repeat: Repeat) => Finding {
  return ({ path, first, retry: { answer } }) => {
    if (first.body.equals(answer.body)) return passed(id, `${path}: ${first.body.length} equal bytes`);
    return fault(id, `${path}: ${differing(first.body, answer.body)}`);
  };
}

function differing(first: Buffer, then: Buffer): string {
  let at = 0;
  while (at < first.length && first[at] === then[at]) at += 1;
  const around = (bytes: Buffer) => bytes.subarray(at, at + 8).toString("hex") || "the end";
  return `${first.length} bytes and then ${then.length}; from byte ${at} on ${around(first)} and then ${around(then)}`;
}

function sameHeaders({ path, first, retry: { answer } }: Repeat): Finding {
  const lost = lostHeaders(first, answer);
  if (lost.length > 0) return fault("replay-headers", `${path}: ${lost.join(", ")}`);
  return passed("replay-headers", `${path}: the same`);
}

function marked({ path, first, retry: { answer } }: Repeat): Finding {
  if (isMarked(first)) return fault("replay-marked", `${path}: the first answer was marked as well`);
  if (!isMarked(answer)) return fault("replay-marked", `${path}: the retry bore no mark`);
  return passed("replay-marked", `${path}: only the retry was marked`);
}

async function forgedMark(trial: Trial, { answer: plain, spelled }: First): Promise<Finding> {
  const answer = await trial.send({
    keys: [spelled(trial.newKey())],
    extra: [["Idempotent-Replayed", "true"]],
  });
  if (isMarked(answer) && !isMarked(plain)) {
    return fault("replay-marked", "a first request that brought the mark was answered with it");
  }
  return passed("replay-marked", "a mark that the request brought was not believed");
}

function framed({ path, first, retry }: Repeat): Finding {
  const faults = [
    ...first.framing.map((each) => `${path}: of the first answer ${each}`),
    ...retry.answer.framing.map((each) => `${path}: of the retry's ${each}`),
  ];
  if (faults.length > 0) return fault("replay-framing", faults.join("; "));
  return passed("replay-framing", `${path}: first ${framing(first)}, then ${framing(retry.answer)}`);
}

function framing(answer: WireAnswer): string {
  const [length] = linesOf(answer, "content-length");
  if (length !== undefined) return `Content-Length ${printable(length)}`;
  return linesOf(answer, "transfer-encoding").length > 0 ? "chunked" : "no length";
}

function keptEmpty(repeat: Repeat): Finding {
  const { path, first, retry } = repeat;
  const { status, body } = retry.answer;
  const once = ranOnce("empty-answers")(repeat);
  if (once.verdict === "fault" || (status === first.status && body.length === 0)) return once;
  return fault("empty-answers", `${path}: first ${shown(first)}, then ${shown(retry.answer)}`);
}

function sameRefusal(repeat: Repeat): Finding {
  const { path, first, unit, retry } = repeat;
  const { answer, moved } = retry;
  const came = `${path}: first ${shown(first)}, then ${shown(answer)}`;
  if (first.status !== answer.status) {
    if (isFinal(first) || isMarked(answer)) return fault("error-answers", came);
    return told("error-answers", `${came}; ${first.status} was not final`);
  }
  if (moved !== null && moved > 0 && unit !== null && unit > 0) {
    return fault("error-answers", `${came}; the count went up by ${moved} with the retry`);
  }
  if (!isFinal(first) && !isMarked(answer)) return told("error-answers", `${came}; it may have run again`);
  if (!first.body.equals(answer.body)) return fault("error-answers", `${came}; the bodies differ`);
  return passed("error-answers", came);
}
