import { shown } from "./answers.ts";
import type { CheckId } from "./checks.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, joined, notShown, passed, told } from "./finding.ts";
import { type First, inQuotes } from "./first.ts";
import type { Trial } from "./trial.ts";

/** How the key header is read. */
export const keys: Examination = {
  ids: ["quoted-key", "key-blank", "key-long", "key-two-lines", "key-quoting", "get-key", "missing-key"],
  examine: async (trial, first) => [
    await ofQuotes(trial, first),
    await refusedAll(trial, "key-blank", [[""], ["   "], ['""'], ['"  "']]),
    await refusedAll(trial, "key-long", [[first.spelled(`${trial.newKey()}-`.padEnd(256, "k"))]]),
    await refusedAll(trial, "key-two-lines", [
      [first.spelled(trial.newKey()), first.spelled(trial.newKey())],
    ]),
    await refusedAll(trial, "key-quoting", [[`"${trial.newKey()}`]]),
    await ofGet(trial, first),
    await ofMissing(trial, first),
  ],
};

async function ofQuotes(trial: Trial, first: First): Promise<Finding> {
  const id = "quoted-key";
  if (first.quoted) return told(id, "only the quoted form is accepted, so that no key has two forms");
  const quoted = await trial.retried({ keys: [inQuotes(first.key)] });
  const { answer, moved } = quoted;
  const came = `the bare key had its answer; the quoted one got ${shown(answer)}`;
  if (answer.status === 400) return told(id, `${came}: only the bare form is accepted`);
  if (moved !== null && moved > 0) return fault(id, `${came}, and the work was done again`);
  if (first.isMine(quoted) === false) return fault(id, came);
  return moved === null
    ? notShown(id, `${came}; whether something was done shows with --count-url only`)
    : passed(id, came);
}

async function refusedAll(
  trial: Trial,
  id: CheckId,
  headers: readonly (readonly string[])[],
): Promise<Finding> {
  const looks: Finding[] = [];
  for (const lines of headers) looks.push(await refused(trial, id, lines));
  return joined(id, looks, "nothing was sent");
}

async function refused(trial: Trial, id: CheckId, lines: readonly string[]): Promise<Finding> {
  const { answer, moved } = await trial.seen({ keys: lines });
  const what = lines.map((line) => (line.length > 60 ? `${line.length} characters` : `[${line}]`)).join(" ");
  const came = `${what} got ${shown(answer)}`;
  if (answer.status !== 400) return fault(id, came);
  trial.refused("bad key", answer);
  if (moved === null) return notShown(id, `${came}; whether something was done shows with --count-url only`);
  return moved > 0 ? fault(id, `${came}, and the count went up by ${moved}`) : passed(id, came);
}

async function ofGet(trial: Trial, first: First): Promise<Finding> {
  const id = "get-key";
  const sent = [first.spelled(trial.newKey())];
  const get = { keys: sent, method: "GET", body: Buffer.alloc(0) };
  await trial.send(get);
  const again = await trial.send(get);
  if (first.isReplay(again)) return fault(id, `the second GET got a replay: ${shown(again)}`);
  const { answer, moved } = await trial.seen({ keys: sent });
  const came = `GET got ${again.status}, then the request itself got ${shown(answer)}`;
  if (answer.status !== first.answer.status || first.isReplay(answer)) return fault(id, came);
  if (moved === null) return notShown(id, `${came}; whether it was done shows with --count-url only`);
  return moved === 0 ? fault(id, `${came}, and nothing was done`) : passed(id, came);
}

async function ofMissing(trial: Trial, first: First): Promise<Finding> {
  const id = "missing-key";
  const { answer } = await trial.seen({ keys: [] });
  if (answer.status === 400) trial.refused("no key", answer);
  if (answer.status >= 400) return told(id, `it is refused: ${shown(answer)}`);
  const again = await trial.seen({ keys: [] });
  const same = first.distinct && again.answer.body.equals(answer.body);
  if (first.isReplay(again.answer) || same || again.moved === 0) {
    return fault(id, `a second request without a key got the first one's answer: ${shown(again.answer)}`);
  }
  const { otherBody: body } = trial.settings;
  const other = body === null ? again : await trial.seen({ keys: [], body });
  if (other.answer.status === 409 || other.answer.status === 422) {
    return fault(id, `another request without a key was held against the first: ${shown(other.answer)}`);
  }
  return told(id, `it is optional: ${shown(answer)}; such requests run unprotected`);
}
