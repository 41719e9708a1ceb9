import type { WireAnswer } from "./answer-reader.ts";
import { isMarked, shown } from "./answers.ts";
import { CannotProbeError, NoAnswerError } from "./refusal.ts";
import { difference, type Seen, type Trial } from "./trial.ts";

/** What an ordinary request of this server looks like; everything else is held against it. */
export interface First {
  readonly key: string;
  readonly answer: WireAnswer;
  /** Effects of one run; null where none can be seen. */
  readonly unit: number | null;
  /** Answers to different keys differ in their bodies, so that a body tells whose answer it is. */
  readonly distinct: boolean;
  /** The key as this server takes it: bare, or quoted where it takes no other. */
  readonly spelled: (key: string) => string;
  readonly quoted: boolean;
  /** Whether an answer says that it is a replay; never, where first answers say so too. */
  readonly isReplay: (answer: WireAnswer) => boolean;
  /** Whether an answer is the kept one of the first request; null where that cannot be told from a run of its own. */
  readonly isMine: (seen: Seen) => boolean | null;
}

/** Sends two ordinary requests; throws a `CannotProbeError` where they do not succeed. */
export async function firstRequests(trial: Trial): Promise<First> {
  const key = trial.newKey();
  const { answer, moved, quoted } = await succeeding(trial, key);
  const spelled = quoted ? inQuotes : (each: string) => each;
  const control = await reached(trial.seen({ keys: [spelled(trial.newKey())] }));
  if (control.answer.status !== answer.status) {
    throw new CannotProbeError(
      `Two requests with keys of their own were answered ${answer.status} and ${shown(control.answer)}; a probe needs a request that can be done many times.`,
    );
  }
  if (moved !== control.moved) {
    throw new CannotProbeError(
      `The count went up by ${moved} for one request and by ${control.moved} for another: somebody else is using the server, or effects come after the answer (--count-settle).`,
    );
  }
  const distinct = !control.answer.body.equals(answer.body);
  const isReplay = isMarked(answer) ? () => false : isMarked;
  const isMine = (seen: Seen): boolean | null => {
    if (isReplay(seen.answer)) return true;
    if (seen.answer.status !== answer.status || !seen.answer.body.equals(answer.body)) return false;
    if (distinct) return true;
    return seen.moved === null ? null : seen.moved <= 0;
  };
  return { key, answer, unit: moved, distinct, spelled, quoted, isReplay, isMine };
}

export function inQuotes(key: string): string {
  return `"${key}"`;
}

async function succeeding(trial: Trial, key: string): Promise<Seen & { readonly quoted: boolean }> {
  const bare = await counted(trial, key);
  if (succeeded(bare)) return { ...bare, quoted: false };
  if (bare.answer.status === 400) {
    const quoted = await counted(trial, inQuotes(key));
    if (succeeded(quoted)) return { ...quoted, quoted: true };
  }
  throw new CannotProbeError(
    `An ordinary request was answered ${shown(bare.answer)}. Give what it needs by --header and --body.`,
  );
}

/** Looks again where nothing was counted: an effect may come a moment after its answer. */
async function counted(trial: Trial, value: string): Promise<Seen> {
  const before = await trial.count();
  const answer = await reached(trial.send({ keys: [value] }));
  let moved = difference(before, await trial.count());
  if (answer.status < 400 && moved === 0) {
    await trial.wait(FIRST_COUNT_MS);
    moved = difference(before, await trial.count());
    if (moved === null || moved <= 0) {
      throw new CannotProbeError(
        "The count at --count-url does not go up with a request that succeeds; it has to count what the request does.",
      );
    }
  }
  return { answer, moved };
}

const FIRST_COUNT_MS = 500;

function succeeded({ answer }: Seen): boolean {
  return answer.status >= 200 && answer.status < 400;
}

/** Where not even an ordinary request is answered nothing can be said. */
async function reached<Value>(asked: Promise<Value>): Promise<Value> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    throw new CannotProbeError(`An ordinary request got no answer: ${error.message}.`);
  }
}
