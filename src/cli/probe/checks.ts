/** What a check owes its reader: the promise, how it is tried, what a breach means for a client, and what mends it. */
export interface CheckText {
  readonly promise: string;
  readonly tried: string;
  readonly means: string;
  readonly mend: string;
}

/** Each has a heading of this name in the guide. */
export type CheckId =
  | "answers"
  | "race"
  | "in-progress"
  | "replay-once"
  | "replay-status"
  | "replay-body"
  | "replay-headers"
  | "replay-marked"
  | "replay-framing"
  | "empty-answers"
  | "binary-answers"
  | "error-answers"
  | "exchange-headers"
  | "principal"
  | "other-body"
  | "other-path"
  | "quoted-key"
  | "key-blank"
  | "key-long"
  | "key-two-lines"
  | "key-quoting"
  | "get-key"
  | "problem-json"
  | "missing-key";

/** Where a check is explained; a heading for each stands in the guide. */
export function docsOfCheck(id: CheckId): string {
  return `docs/guide/probe.md#${id}`;
}

/** Every check, in the order of the report. */
export const CHECKS: Readonly<Record<CheckId, CheckText>> = {
  answers: {
    promise: "every request is answered",
    tried: "all requests of this probe, each on a connection of its own",
    means: "A client that gets no answer cannot know whether its request was done.",
    mend: "Answer refusals as well: do not hang and do not close without an answer.",
  },
  race: {
    promise: "simultaneous copies run once",
    tried: "copies of one request with one key, sent at one moment, in several rounds",
    means:
      "A client that sends again while its first request is on its way has the work done twice, or is told of a failure that was none.",
    mend: "Claim the key in one atomic write (insert, and let the unique index decide); never look first and write then.",
  },
  "in-progress": {
    promise: "a copy of a running request is told 409, and when to come again",
    tried: "what copies got while another copy ran",
    means:
      "A client cannot tell a request that is still running from one that was refused, and either gives up or asks too often.",
    mend: "Answer 409 with Retry-After in whole seconds, at least 1.",
  },
  "replay-once": {
    promise: "a retry does not run again",
    tried: "the same request with the same key, after its answer",
    means: "A client that did not get its answer and asks again has the work done twice.",
    mend: "Keep the answer under its key before it is sent, and answer a retry from there.",
  },
  "replay-status": {
    promise: "a retry gets the status of the first answer",
    tried: "the same request with the same key, after its answer",
    means: "A client takes what was done for a failure, or one status for another.",
    mend: "Keep the status that left the server, not that of a framework's object.",
  },
  "replay-body": {
    promise: "a retry gets the body of the first answer, byte for byte",
    tried: "the same request with the same key, after its answer; bytes compared off the socket",
    means: "A client gets other identifiers than the first time, and signatures of the body do not hold.",
    mend: "Keep the body as bytes, not as a document that is written anew.",
  },
  "replay-headers": {
    promise: "a retry gets the headers that belong to the answer",
    tried: "the same request with the same key, after its answer",
    means: "A client does not find what was made (Location), or reads the body wrongly (Content-Type).",
    mend: "Keep all headers but those that belong to one exchange.",
  },
  "replay-marked": {
    promise: "a replay is marked, a first answer is not, and a client cannot forge the mark",
    tried: "the headers of first answers and of retries; a first request that brings the mark itself",
    means: "Neither a client nor the people who run the server can tell a replay from a run.",
    mend: "Send Idempotent-Replayed: true with a replay, and only then; take it from no request.",
  },
  "replay-framing": {
    promise: "every answer says rightly where it ends",
    tried: "Content-Length and Transfer-Encoding of first answers and of retries against the bytes that came",
    means:
      "A client cuts the answer off, waits for ever, or takes what follows on the connection for another answer.",
    mend: "Do not keep Content-Length, Transfer-Encoding and Connection: make them anew for what is sent.",
  },
  "empty-answers": {
    promise: "an answer without a body is kept as well",
    tried: "a retry where the first answer had no body",
    means:
      "A client that asks again after a 204 has the work done twice, or gets a body that was never sent.",
    mend: "Keep an empty body as an answer, apart from having none yet.",
  },
  "binary-answers": {
    promise: "an answer that is no text comes back byte for byte",
    tried: "a retry where the first answer was no text",
    means: "A client that asks again gets a damaged file.",
    mend: "Keep bytes: no decoding to text on the way to the record, and none on the way back.",
  },
  "error-answers": {
    promise: "a final refusal stays a refusal",
    tried: "a retry where the first answer was an error",
    means: "A client takes what was refused for done, or has it done although it was told that it was not.",
    mend: "Keep the status with the body, and keep definite refusals (402, 409, 410, 422) under their key.",
  },
  "exchange-headers": {
    promise: "a replay brings no Date, and to another principal no Set-Cookie, of the first exchange",
    tried: "a retry after a second and more, and the same key by another principal",
    means: "One client is handed the session of another, or caches reckon with a wrong age.",
    mend: "Leave Date and Set-Cookie out of what is kept.",
  },
  principal: {
    promise: "a key belongs to its principal",
    tried: "the same request with the same key by another principal, afterwards and at the same moment",
    means: "A client reads another's answer, or can block another's key by guessing it.",
    mend: "Make the principal a part of what the record is found by.",
  },
  "other-body": {
    promise: "the same key with another body is refused with 422",
    tried: "the same key with another body, after the first answer",
    means: "A client that uses a key twice is told that its second request was done, and it was not.",
    mend: "Keep a fingerprint of the request and compare it, whatever state the record is in.",
  },
  "other-path": {
    promise: "the same key on another path does not get the first one's answer",
    tried: "the same key with another path or query, after the first answer",
    means: "A client is told that something was done which never ran.",
    mend: "Make method, path and query a part of the fingerprint, or of what the record is found by.",
  },
  "quoted-key": {
    promise: "a quoted and a bare key are one key",
    tried: 'the same request with key, and then with "key"',
    means: "A client whose library quotes the key on the second try has the work done twice.",
    mend: "Read the header as an RFC 9651 string where it is quoted, and take the text in the quotes for the key.",
  },
  "key-blank": {
    promise: "a blank key is refused with 400 and nothing is done",
    tried: "an empty key, three blanks, and quotes with nothing in them",
    means: "A client whose key got lost runs unprotected, or shares a record with all others like it.",
    mend: "Refuse a key that is blank.",
  },
  "key-long": {
    promise: "a key over 255 characters is refused with 400 and nothing is done",
    tried: "a key of 256 characters",
    means: "Two keys that differ behind the limit may become one, or the server fails.",
    mend: "Refuse what is longer than the column; never cut it.",
  },
  "key-two-lines": {
    promise: "two key lines are refused with 400 and nothing is done",
    tried: "one request with two key headers",
    means: "Proxy, server and client may each take another of the two for the key.",
    mend: "Refuse more than one, and a bare key with a comma, which is what two lines look like once they are joined.",
  },
  "key-quoting": {
    promise: "broken quoting is refused with 400 and nothing is done",
    tried: "a key with a quote that is never closed",
    means: "A cut key becomes another key, under which the work is done once more.",
    mend: "Refuse a key that begins with a quote and is no RFC 9651 string.",
  },
  "get-key": {
    promise: "a key on a GET is not stored",
    tried: "GET with a key twice, then the request itself with that key",
    means: "A client that sends its key with everything gets old answers, or has its real request refused.",
    mend: "Pass safe methods through without looking at the key.",
  },
  "problem-json": {
    promise: "refusals are application/problem+json with a code",
    tried: "the refusals that the other checks brought about",
    means: "A client cannot tell by program what it may do next: the same key later, or never.",
    mend: "Send RFC 9457 documents with a stable code (or type) for each case.",
  },
  "missing-key": {
    promise: "a request without a key shares nothing with others",
    tried: "equal and different requests without a key",
    means: "Clients that send no key get one another's answers.",
    mend: "A key that is not there is no value: refuse the request, or run it unprotected.",
  },
};
