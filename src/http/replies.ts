import { type Answer, isConcluded, type KeyRecord } from "../core/record.ts";
import type { Answered } from "../engine/begin.ts";
import type { Executed } from "../engine/execute.ts";
import { RESERVED_HEADERS } from "../engine/header-policy.ts";
import { retryOf } from "../engine/waiting.ts";
import type { EffectKnown } from "../errors.ts";
import { EXPIRES_HEADER, type Header, REPLAYED_HEADER, type Reply } from "./exchange.ts";
import { problem } from "./problems.ts";

/** What a duplicate, or a request that may not run, is told. */
export function replyToAnswered(answered: Answered): Reply {
  switch (answered.kind) {
    case "replay":
      return replay(answered.answer);
    case "response_not_stored":
      return notStored(answered.answer, answered.record);
    case "expired":
      return expired(answered.record);
    case "in_progress":
      return running(answered.record, answered.retryAfterMs);
    case "mismatch":
      return mismatch(answered.record);
    case "unverifiable":
      return problem("fingerprint_unverifiable", {
        detail:
          "The first request was recorded under a rule or a key that this server does not know. Nothing was run.",
        first: answered.record,
      });
    case "outcome_unknown":
      return unknown(409, answered.record, answered.retryAfterMs);
    case "store_unavailable":
      return problem("store_unavailable", { detail: "Nothing was run.", retryAfterMs: RETRY_MS });
    case "record_corrupt":
      return problem("record_corrupt", { detail: "A person has to look at it. Nothing was run." });
    case "draining":
      return problem("draining", { detail: "Nothing was run.", retryAfterMs: RETRY_MS });
  }
}

/** The record that an answer tells of; `null` where it tells of none, or of this request's own. */
export function recordOf(answered: Answered | Executed): KeyRecord | null {
  switch (answered.kind) {
    case "settled":
    case "not_performed":
    case "in_doubt":
    case "store_unavailable":
    case "record_corrupt":
    case "draining":
      return null;
    case "lost":
    case "replay":
    case "response_not_stored":
    case "in_progress":
    case "mismatch":
    case "unverifiable":
    case "outcome_unknown":
    case "expired":
      return answered.record;
  }
}

/** A key where nothing would heed it: rather refused than taken in silence. */
export function notSupported(): Reply {
  const detail =
    "A key counts for nothing here, and this server refuses it rather than run the request without protection.";
  return problem("idempotency_not_supported", { detail, advice: "Nothing was done." });
}

/** The caller may not be told what stands under its own key, whoever it was that said so. */
export function forbidden(): Reply {
  return problem("replay_forbidden", { detail: "Nothing was run for this request." });
}

export function unauthorised(): Reply {
  const detail = "Whether this caller may have the answer could not be found out, so it was not given.";
  return problem("authorization_failed", { detail, retryAfterMs: RETRY_MS });
}

/** What the request that ran an operation is told. */
export function replyToExecuted(executed: Executed): Reply {
  switch (executed.kind) {
    case "settled":
      return first(executed.answer, executed.record);
    case "not_performed":
      return notPerformed();
    case "in_doubt":
      return executed.record === null ? unkept() : unknown(504, executed.record, executed.retryAfterMs);
    case "lost":
      return replyToLoser(executed.record);
    case "replay":
    case "response_not_stored":
    case "expired":
    case "in_progress":
    case "mismatch":
    case "unverifiable":
    case "outcome_unknown":
    case "store_unavailable":
    case "record_corrupt":
    case "draining":
      return replyToAnswered(executed);
  }
}

/** The first answer itself, with the date until which its copies will be answered. */
export function first(answer: Answer, record: KeyRecord): Reply {
  const { status, headers, body } = answer;
  const own = headers.filter(([name]) => !RESERVED_HEADERS.includes(name));
  return { status, headers: [...own, ...expires(record)], body: body ?? NOTHING };
}

/** The answer of a commit; where its reply was lost it is read off the record, which may not have kept its body. */
export function committed(answer: Answer, record: KeyRecord): Reply {
  return answer.body === null ? replyToLoser(record) : first(answer, record);
}

export function expires(record: KeyRecord): readonly Header[] {
  if (!isConcluded(record)) return [];
  return [[EXPIRES_HEADER, new Date(record.retainUntil).toUTCString()]];
}

/** What an attempt is told that no longer owns its key: the truth of whoever owns it now. */
export function replyToLoser(record: KeyRecord | null): Reply {
  switch (record?.state) {
    case "completed":
    case "failed_permanent":
      return record.answer.body === null ? notStored(record.answer, record) : replay(record.answer);
    case "unknown":
      return inDoubt(record);
    case "in_progress":
    case "released":
    case undefined:
      return running(record ?? null, RETRY_MS);
  }
}

/** What the request itself is told whose outcome is on record as unknown. */
export function inDoubt(record: KeyRecord): Reply {
  return unknown(504, record, retryOf(record));
}

/** An error that is kept as the answer, because the route says so, although nobody knows what the work did. */
export function keptError(): Reply {
  const detail = "The work failed, and nobody knows what it had done by then.";
  return problem("outcome_unknown", { detail, status: 500, retry: "never" });
}

/** Some effects were made and are kept, others were not: the next copy goes on from there. */
export function unfinished(status = 503): Reply {
  const detail = "What was done is on record, and will not be done again.";
  return problem("unfinished", { detail, status, retryAfterMs: RETRY_MS });
}

/** Nobody knows yet what became of the effect; with a time where somebody is going to find out. */
function unknown(status: 409 | 504, record: KeyRecord, retryAfterMs: number | null): Reply {
  const detail =
    retryAfterMs === null ? "A person has to find out." : "The server is going to find out by itself.";
  const retry = retryAfterMs === null ? "never" : "same_key_later";
  return problem("outcome_unknown", { detail, status, retry, retryAfterMs, first: record });
}

/** The work is done, or may be, and its outcome could not be kept in time. */
export function unkept(): Reply {
  const detail = "The outcome could not be kept in time; the server goes on trying.";
  return problem("outcome_unknown", { detail, status: 503, retryAfterMs: RETRY_MS });
}

/** The work said that it did nothing; why is for the operators to know. */
export function notPerformed(): Reply {
  return problem("not_performed", { detail: "It may be tried again.", retryAfterMs: RETRY_MS });
}

/** The work was stopped at its time limit, and the fence keeps its transaction out for good. */
export function undoneInTime(): Reply {
  const detail = "The work did not end in time, and whatever it had begun was undone.";
  return problem("not_performed", { detail, status: 504, retryAfterMs: RETRY_MS });
}

/** The store failed while the effect was being committed, and it is proved that it was not. */
export function undoneByStore(): Reply {
  const detail = "What had been begun was undone.";
  return problem("store_unavailable", { detail, effect: "none", retryAfterMs: RETRY_MS });
}

/** Long enough for a store to come back, short enough for a person who waits. */
const RETRY_MS = 1_000;

const NOTHING = new Uint8Array(0);

function replay({ status, headers, body }: Answer): Reply {
  return { status, headers: [...headers, [REPLAYED_HEADER, "true"]], body: body ?? NOTHING };
}

/** With the headers that were kept, but for those that speak of the body. */
function notStored({ status, headers }: Answer, record: KeyRecord): Reply {
  return problem("response_not_stored", {
    detail: `It answered ${status}.`,
    first: record,
    members: { originalStatus: status },
    headers: headers.filter(([name]) => !name.startsWith("content-") && !OF_THE_BODY.has(name)),
  });
}

const OF_THE_BODY: ReadonlySet<string> = new Set([
  ...["etag", "last-modified", "accept-ranges", "digest", "repr-digest"],
]);

/** Whatever this request asks for: nothing is left of the first one that it could be compared with. */
function expired(record: KeyRecord): Reply {
  const { said, effect } = FIRST_IS[record.state];
  const came = new Date(record.createdAt).toUTCString();
  return problem("key_expired", {
    detail: `The first request with this key came on ${came} and ${said}; its answer is no longer kept. Nothing was run.`,
    advice: `Sending it again with this key will not help, and a new key means a new request: ${ANEW[effect]}.`,
    first: record,
    effect,
  });
}

const ANEW: Readonly<Record<EffectKnown, string>> = {
  none: "nothing was done by the first one, so that is safe",
  done: "the work of the first one was done, and would be done a second time",
  maybe: "the work of the first one may have been done, and would be done a second time",
};

function running(record: KeyRecord | null, retryAfterMs: number): Reply {
  return problem("in_progress", { detail: "Wait for it to end.", first: record, retryAfterMs });
}

function mismatch(record: KeyRecord): Reply {
  const { said, effect } = FIRST_IS[record.state];
  return problem("key_reused", {
    detail: `The first request with this key was another one; it ${said}.`,
    advice:
      "If this is a retry, send it exactly as the first time; if it is a new request, give it a key of its own.",
    first: record,
    effect,
    members: { firstRequest: said },
  });
}

const FIRST_IS: Readonly<
  Record<KeyRecord["state"], { readonly said: string; readonly effect: EffectKnown }>
> = {
  in_progress: { said: "is still running", effect: "maybe" },
  released: { said: "did a part of its work", effect: "maybe" },
  unknown: { said: "has an unknown outcome", effect: "maybe" },
  completed: { said: "is finished", effect: "done" },
  failed_permanent: { said: "was refused", effect: "none" },
};
