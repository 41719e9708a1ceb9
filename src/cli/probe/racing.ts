import type { WireAnswer } from "./answer-reader.ts";
import { linesOf, shown } from "./answers.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, joined, notShown, passed } from "./finding.ts";
import type { First } from "./first.ts";
import { difference, type Trial } from "./trial.ts";

/** Copies at one moment, round by round until one shows a fault. */
export const racing: Examination = {
  ids: ["race", "in-progress"],
  async examine(trial, first) {
    const rounds: Round[] = [];
    for (let number = 1; number <= trial.settings.rounds; number += 1) {
      const round = await raced(trial, first);
      rounds.push(round);
      if (runsOnce(round, first).verdict === "fault") break;
    }
    const running = rounds.flatMap(({ answers }) => answers).filter((answer) => isConflict(answer, first));
    const [example] = running;
    if (example !== undefined) trial.refused("in progress", example);
    return [
      joined(
        "race",
        rounds.map((round) => runsOnce(round, first)),
        "no round was run",
      ),
      saysWhen(running, rounds, first),
    ];
  },
};

interface Round {
  readonly answers: readonly WireAnswer[];
  readonly unanswered: readonly string[];
  readonly moved: number | null;
}

async function raced(trial: Trial, { spelled }: First): Promise<Round> {
  const keys = [spelled(trial.newKey())];
  const before = await trial.count();
  const heard = await trial.sendTogether(Array.from({ length: trial.settings.copies }, () => ({ keys })));
  const moved = difference(before, await trial.count());
  return {
    answers: heard.flatMap((each) => (each.kind === "answer" ? [each.answer] : [])),
    unanswered: heard.flatMap((each) => (each.kind === "none" ? [each.reason] : [])),
    moved,
  };
}

function runsOnce({ answers, unanswered, moved }: Round, first: First): Finding {
  const came = `${tallied(answers)}${moved === null ? "" : `, the count went up by ${moved}`}`;
  const [silent] = unanswered;
  if (moved !== null && moved !== first.unit) {
    return fault("race", `${came}; one run makes it ${first.unit}`);
  }
  const done = answers.filter(({ status }) => status === first.answer.status);
  if (moved === null && first.distinct && differingRuns(done, first) > 1)
    return fault("race", `${came}; answers of their own differ`);
  const failed = answers.find(({ status }) => status >= 500);
  if (failed !== undefined) return fault("race", `${came}; a copy was told that the server failed`);
  if (silent !== undefined) return fault("race", `${came}; ${unanswered.length} got no answer: ${silent}`);
  if (done.length === 0) return fault("race", `${came}; none of them was told that it is done`);
  if (moved === null) return notShown("race", `${came}; how often it ran shows with --count-url only`);
  return passed("race", came);
}

/** Answers that differ and do not say that they are replays, whose likeness is another promise. */
function differingRuns(done: readonly WireAnswer[], { isReplay }: First): number {
  return new Set(done.filter((answer) => !isReplay(answer)).map(({ body }) => body.toString("latin1"))).size;
}

/** How many got what: `201 ×1, 409 ×9`. */
function tallied(answers: readonly WireAnswer[]): string {
  const numbers = new Map<number, number>();
  for (const { status } of answers) numbers.set(status, (numbers.get(status) ?? 0) + 1);
  const said = [...numbers].sort(([one], [other]) => one - other);
  return said.map(([status, number]) => `${status} ×${number}`).join(", ");
}

function isConflict({ status }: WireAnswer, { answer }: First): boolean {
  return status === 409 && answer.status !== 409;
}

function saysWhen(running: readonly WireAnswer[], rounds: readonly Round[], first: First): Finding {
  const odd = rounds
    .flatMap(({ answers }) => answers)
    .find(({ status }) => status >= 400 && status < 500 && status !== 409 && status !== first.answer.status);
  if (odd !== undefined) return fault("in-progress", `a copy got ${shown(odd)} instead of 409`);
  if (running.length === 0) {
    return notShown(
      "in-progress",
      "no copy met a running one; a request that takes longer, or more --copies, may show it",
    );
  }
  const without = running.find((answer) => !isWholeSeconds(linesOf(answer, "retry-after")));
  if (without === undefined) {
    const [example] = running;
    const after = example === undefined ? "" : linesOf(example, "retry-after").join(", ");
    return passed("in-progress", `409 ×${running.length}, Retry-After: ${after}`);
  }
  const said = linesOf(without, "retry-after");
  const what = said.length === 0 ? "without Retry-After" : `with Retry-After: ${said.join(", ")}`;
  return fault("in-progress", `409 ${what}`);
}

function isWholeSeconds(values: readonly string[]): boolean {
  return values.length === 1 && /^[1-9]\d{0,8}$/.test(values[0] ?? "");
}
