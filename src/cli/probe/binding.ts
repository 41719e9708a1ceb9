import type { WireAnswer } from "./answer-reader.ts";
import { linesOf, shown } from "./answers.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, notShown, passed, told } from "./finding.ts";
import type { First } from "./first.ts";
import { difference, type Seen, type Trial } from "./trial.ts";

/** What a key belongs to: its principal, its body, its path. */
export const binding: Examination = {
  ids: ["principal", "other-body", "other-path"],
  examine: async (trial, first) => [
    await ofPrincipal(trial, first),
    await ofBody(trial, first),
    await ofPath(trial, first),
  ],
};

/** What belongs to the one exchange and not to the answer; wants a second to have gone by. */
export const exchanging: Examination = {
  ids: ["exchange-headers"],
  examine: async (trial, first) => [await ofExchange(trial, first)],
};

async function ofPrincipal(trial: Trial, first: First): Promise<Finding> {
  const id = "principal";
  if (trial.settings.otherHeaders === null) return notShown(id, "a second principal needs --other-header");
  const own = await trial.seen({ principal: "other", keys: [first.spelled(trial.newKey())] });
  if (own.answer.status !== first.answer.status) {
    return notShown(
      id,
      `the second principal got ${shown(own.answer)} for a key of its own; it must be allowed the same request`,
    );
  }
  const crossed = await trial.seen({ principal: "other", keys: [first.spelled(first.key)] });
  const { answer, moved } = crossed;
  const came = `the second principal got ${shown(answer)}`;
  const mine = first.isMine(crossed);
  if (mine === true) return fault(id, `${came}: the first one's answer`);
  if (answer.status !== first.answer.status) return fault(id, `${came}: it was blocked`);
  if (moved === 0) return fault(id, `${came}, and nothing was done`);
  if (mine === null) {
    return notShown(
      id,
      `${came}; whose answer that is cannot be told, since all answers are alike: needs --count-url`,
    );
  }
  return (await together(trial, first)) ?? passed(id, `${came}, as with a key of its own`);
}

/** Null where both were served. */
async function together(trial: Trial, { spelled, answer, unit }: First): Promise<Finding | null> {
  const keys = [spelled(trial.newKey())];
  const before = await trial.count();
  const heard = await trial.sendTogether([{ keys }, { keys, principal: "other" }]);
  const moved = difference(before, await trial.count());
  for (const each of heard) {
    const came = each.kind === "answer" ? shown(each.answer) : each.reason;
    if (each.kind === "none" || each.answer.status !== answer.status) {
      return fault("principal", `both at one moment with one key: one of them got ${came}`);
    }
  }
  if (moved === null || unit === null || moved === 2 * unit) return null;
  return fault("principal", `both at one moment with one key: the count went up by ${moved}`);
}

async function ofBody(trial: Trial, first: First): Promise<Finding> {
  const id = "other-body";
  const { otherBody: body } = trial.settings;
  if (body === null) return notShown(id, "no other body could be made of this one: give --other-body");
  const own = await trial.seen({ body, keys: [first.spelled(trial.newKey())] });
  if (own.answer.status !== first.answer.status) {
    return notShown(
      id,
      `the other body got ${shown(own.answer)} under a key of its own: give one that is as good by --other-body`,
    );
  }
  const reused = await trial.retried({ body, keys: [first.spelled(first.key)] });
  const { answer, moved } = reused;
  const came = `the other body got ${shown(answer)}`;
  if (answer.status === 422) trial.refused("other body", answer);
  if (moved !== null && moved > 0) return fault(id, `${came} and was done under the same key`);
  if (answer.status !== 422) return fault(id, came);
  if (moved === null) return notShown(id, `${came}; whether something was done shows with --count-url only`);
  return passed(id, came);
}

async function ofPath(trial: Trial, first: First): Promise<Finding> {
  const id = "other-path";
  const { otherPath: at } = trial.settings;
  const reused = await trial.seen({ at, keys: [first.spelled(first.key)] });
  const { answer } = reused;
  const came = `${at.url.pathname}${at.url.search} got ${shown(answer)}`;
  if (answer.status === 422) trial.refused("other path", answer);
  const mine = first.isMine(reused);
  if (mine === true) return fault(id, `${came}: the first one's answer`);
  if (answer.status === 404 || answer.status === 405) {
    return notShown(id, `${came}; give a path that is served by --other-path`);
  }
  if (mine === null) {
    return notShown(id, `${came}; whose answer that is cannot be told: needs --count-url`);
  }
  return passed(id, came);
}

/** A Date has whole seconds. */
const DATE_MS = 1_100;

async function ofExchange(trial: Trial, first: First): Promise<Finding> {
  const id = "exchange-headers";
  await trial.wait(DATE_MS);
  const fresh = await trial.send({ keys: [first.spelled(trial.newKey())] });
  const retry = await trial.retried({ keys: [first.spelled(first.key)] });
  const [was] = linesOf(first.answer, "date");
  const [then] = linesOf(retry.answer, "date");
  if (was !== undefined && then === was && linesOf(fresh, "date")[0] !== was) {
    return fault(id, `the retry had the Date of the first answer, ${was}`);
  }
  const cookies = linesOf(first.answer, "set-cookie").filter(
    (cookie) => !linesOf(fresh, "set-cookie").includes(cookie),
  );
  return (
    (await handedOver(trial, first, cookies)) ??
    (cookies.some((cookie) => hasCookie(retry, cookie))
      ? told(id, "the retry brought the first answer's Set-Cookie, to the principal it was made for")
      : passed(id, was === undefined ? "no answer had a Date" : "the Date was that of the retry"))
  );
}

/** A fault where another principal got a cookie that was made for the first exchange. */
async function handedOver(
  trial: Trial,
  { key, spelled }: First,
  cookies: readonly string[],
): Promise<Finding | null> {
  if (cookies.length === 0 || trial.settings.otherHeaders === null) return null;
  const answer = await trial.send({ principal: "other", keys: [spelled(key)] });
  if (!linesOf(answer, "set-cookie").some((cookie) => cookies.includes(cookie))) return null;
  return fault("exchange-headers", "another principal got the Set-Cookie of the first answer");
}

function hasCookie(
  { answer }: Pick<Seen, "answer"> & { readonly answer: WireAnswer },
  cookie: string,
): boolean {
  return linesOf(answer, "set-cookie").includes(cookie);
}
