import { type Final, isFinal, mayStayUnknown, problemIn } from "./cases.ts";
import type { Answer, Asked, Call } from "./history.ts";
import type { Rule } from "./rule.ts";

/** What clients may be told. */
export const answerRules: readonly Rule[] = [
  {
    guarantee: "G3",
    promise: "all final answers of a key have the same status, headers and bytes",
    faults: ({ finals: [first, ...later] }) =>
      first === undefined
        ? []
        : later
            .filter(({ answer }) => !sameAnswer(answer, first.answer))
            .map(({ answer }) => `was answered ${shown(first.answer)}, and then ${shown(answer)}`),
  },
  {
    guarantee: "G8",
    promise: "an answer is the answer to what its own caller asked",
    faults: ({ asked, finals }) =>
      finals
        .filter(({ answer }) => !answer.body.includes(asked.mark))
        .map(({ answer }) => `asked for ${asked.mark}, and was answered ${shown(answer)}`),
  },
  {
    guarantee: "G8",
    promise: "another request under the same key never gets the answer",
    faults: ({ others, finals }) => others.flatMap((call) => faultsOfOther(call, finals[0])),
  },
  {
    guarantee: "G12",
    promise: "whatever is no final answer says honestly why, by a code that a client knows",
    faults: ({ asked, calls }) =>
      calls.flatMap(({ told }) => (told.kind === "answer" ? dishonestIn(told, asked) : [])),
  },
  {
    guarantee: "G6",
    promise: "a client that goes on asking gets a final answer, or hears that a person must decide",
    faults: ({ asked, calls, finals, standing }) => {
      if (finals.length > 0 || calls.length === 0) return [];
      if (mayStayUnknown(asked) && standing.state === "unknown") return [];
      return [`got no answer; the last of ${calls.length} calls was told ${shownTold(calls.at(-1))}`];
    },
  },
];

function sameAnswer(one: Answer, other: Answer): boolean {
  return (
    one.status === other.status &&
    one.body === other.body &&
    JSON.stringify(one.headers) === JSON.stringify(other.headers)
  );
}

function faultsOfOther(call: Call, first: Final | undefined): readonly string[] {
  if (call.told.kind !== "answer") return [];
  const problem = problemIn(call.told);
  if (problem === null) return [`another request under the key was answered ${shown(call.told)}`];
  const isLater = first !== undefined && call.fromMs > first.call.toMs;
  const unavailable = problem.code === "store_unavailable";
  if (!isLater || unavailable || problem.code === "key_reused") return [];
  return [`another request under the key was told ${problem.code} when the first had its answer`];
}

/** The codes that a copy of the one request may meet, with their statuses. */
const HONEST: ReadonlyMap<string, readonly number[]> = new Map([
  ["in_progress", [409]],
  ["outcome_unknown", [409, 503, 504]],
  ["store_unavailable", [503]],
  ["not_performed", [503, 504]],
  ["unfinished", [503, 504]],
  ["draining", [503]],
]);

function dishonestIn(answer: Answer, asked: Asked): readonly string[] {
  const problem = problemIn(answer);
  if (isFinal(answer)) {
    const known = [...asked.done, ...asked.refused].includes(answer.status);
    return known ? [] : [`was answered ${shown(answer)}, which is no outcome of this request`];
  }
  if (problem === null || HONEST.get(problem.code)?.includes(answer.status) !== true)
    return [`was told ${shown(answer)}`];
  if (problem.retry === "never" && !mayStayUnknown(asked)) return [`was told to give up: ${shown(answer)}`];
  const isWhole = /^[1-9]\d*$/.test(answer.retryAfter ?? "");
  return problem.retry === "never" || isWhole
    ? []
    : [`was told ${problem.code}, and to come back after "${answer.retryAfter}" s`];
}

function shownTold(call: Call | undefined): string {
  if (call === undefined) return "nothing";
  return call.told.kind === "answer" ? shown(call.told) : call.told.kind;
}

function shown({ status, body }: Answer): string {
  return `${status} ${body.slice(0, LONGEST_SHOWN)}`;
}

const LONGEST_SHOWN = 300;
