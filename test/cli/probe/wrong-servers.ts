import type { CheckId } from "../../../src/cli/probe/checks.ts";
import { type Kept, RIGHT, type Rules } from "./keyed-server.ts";

/** One planted fault each, and the one check that it is found by. */
export const WRONG_SERVERS: readonly (readonly [fault: string, found: CheckId, rules: Partial<Rules>])[] = [
  ["looks before it claims", "race", { looksFirst: true }],
  ["says 409 without Retry-After", "in-progress", refusing("in_progress", without("retry-after"))],
  [
    "says 409 with a Retry-After of 0",
    "in-progress",
    refusing("in_progress", withHeader("retry-after", "0")),
  ],
  [
    "says 409 with an HTTP date as Retry-After",
    "in-progress",
    refusing("in_progress", withHeader("retry-after", "Wed, 01 Jan 2031 00:00:00 GMT")),
  ],
  ["tells a copy 425 instead of 409", "in-progress", refusing("in_progress", withStatus(425))],
  ["tells a copy that it failed", "race", refusing("in_progress", withStatus(500))],
  ["runs again and tells nobody", "replay-once", { runsAgain: ({ status }) => status === 200 }],
  ["replays 201 as 200", "replay-status", { keep: when(({ status }) => status === 201, withStatus(200)) }],
  [
    "writes JSON anew",
    "replay-body",
    {
      keep: when(isJsonOrder, (answer) => ({
        ...answer,
        body: Buffer.from(JSON.stringify(JSON.parse(answer.body.toString()), null, 1)),
      })),
    },
  ],
  ["loses Location", "replay-headers", { keep: without("location") }],
  ["loses a header of its own", "replay-headers", { keep: without("x-version") }],
  ["does not mark replays", "replay-marked", { replayHeaders: {} }],
  [
    "takes the mark from the client",
    "replay-marked",
    {
      firstHeaders: (request) =>
        request.headers["idempotent-replayed"] === undefined ? {} : { "idempotent-replayed": "true" },
    },
  ],
  [
    "keeps a Content-Length that does not fit",
    "replay-framing",
    { keep: when(isJsonOrder, withHeader("content-length", "900")) },
  ],
  ["does not keep 204", "empty-answers", { keep: (answer) => (answer.status === 204 ? null : answer) }],
  [
    "replays 204 as a text",
    "empty-answers",
    {
      keep: when(
        ({ status }) => status === 204,
        (answer) => ({ ...answer, status: 200, body: Buffer.from("null") }),
      ),
    },
  ],
  [
    "mangles what is no text",
    "binary-answers",
    { keep: (answer) => ({ ...answer, body: Buffer.from(answer.body.toString("utf8")) }) },
  ],
  [
    "replays a refusal as a success",
    "error-answers",
    { keep: when(({ status }) => status === 402, withStatus(200)) },
  ],
  [
    "replays the Date",
    "exchange-headers",
    { keep: (answer) => withHeader("date", new Date().toUTCString())(answer) },
  ],
  ["leaves the principal out", "principal", { identity: (_, key) => key }],
  [
    "blocks another's key",
    "principal",
    { identity: (_, key) => key, fingerprint: (asked) => asked.principal + RIGHT.fingerprint(asked) },
  ],
  ["ignores the body", "other-body", { fingerprint: ({ method, path }) => `${method} ${path}` }],
  ["refuses another body with 409", "other-body", refusing("key_reused", withStatus(409))],
  [
    "ignores the path",
    "other-path",
    { fingerprint: ({ method, body }) => `${method} ${body.toString("latin1")}` },
  ],
  [
    "keeps quoted and bare keys apart",
    "quoted-key",
    {
      keyIn: (lines) => {
        const found = RIGHT.keyIn(lines);
        return typeof found === "string" ? found : { key: lines.join() };
      },
    },
  ],
  ["takes a blank key", "key-blank", accepting(([line]) => line !== undefined && /^"? *"?$/.test(line))],
  [
    "takes a blank key for none",
    "key-blank",
    { keyIn: (lines) => (lines[0] === "" ? "missing" : RIGHT.keyIn(lines)) },
  ],
  ["cuts a long key", "key-long", accepting(([line = ""]) => line.length > 255)],
  ["takes the first of two keys", "key-two-lines", accepting((lines) => lines.length > 1)],
  ["takes broken quoting for a bare key", "key-quoting", accepting(([line = ""]) => /^"[^"]+$/.test(line))],
  ["stores the answer of a GET", "get-key", { protectsGet: true }],
  [
    "refuses in plain text",
    "problem-json",
    { refuse: (code) => withHeader("content-type", "text/plain")(RIGHT.refuse(code)) },
  ],
  [
    "refuses without a code",
    "problem-json",
    {
      refuse: (code) => ({
        ...RIGHT.refuse(code),
        body: Buffer.from('{"type":"about:blank","title":"No."}'),
      }),
    },
  ],
  ["has one record for all who send no key", "missing-key", { keyForNone: "null" }],
];

function isJsonOrder({ status }: Kept): boolean {
  return status === 201;
}

function when(applies: (answer: Kept) => boolean, change: (answer: Kept) => Kept): Rules["keep"] {
  return (answer) => (applies(answer) ? change(answer) : answer);
}

function withStatus(status: number): (answer: Kept) => Kept {
  return (answer) => ({ ...answer, status });
}

function withHeader(name: string, value: string): (answer: Kept) => Kept {
  return (answer) => ({ ...answer, headers: { ...answer.headers, [name]: value } });
}

function without(name: string): (answer: Kept) => Kept {
  return ({ headers, ...answer }) => ({
    ...answer,
    headers: Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name)),
  });
}

function refusing(code: string, change: (answer: Kept) => Kept): Partial<Rules> {
  return {
    refuse: (each) => (each === code ? change(RIGHT.refuse(each)) : RIGHT.refuse(each)),
  };
}

function accepting(which: (lines: readonly string[]) => boolean): Partial<Rules> {
  return { keyIn: (lines) => (which(lines) ? { key: `taken ${lines[0]}` } : RIGHT.keyIn(lines)) };
}
