import { gzipSync } from "node:zlib";
import type { SeededRandom } from "../../support/seed.ts";
import type { HeaderLine } from "../wire.ts";
import type { Act, Failure, Material, NativeScript, OwnScript, Piece } from "./script.ts";

/** Longer answers are not kept by the routes under test. */
export const MOST_KEPT_BYTES = 60_000;

/** Draws a handler that answers by Node's own response. */
export function nativeScript(random: SeededRandom): NativeScript {
  const fails = random.below(8) === 0;
  const body = fails ? [] : bodyActs(random);
  const acts = [...headActs(random), ...body];
  if (fails)
    return { kind: "native", settles: random.pick(["promise", "at once"]), acts: failing(acts, random) };
  const waits = acts.some(({ act }) => act === "wait");
  return {
    kind: "native",
    settles: waits ? "promise" : random.pick(["promise", "at once", "callback"]),
    acts,
  };
}

/** Draws one that answers in a way of its host. */
export function ownScript(random: SeededRandom, ways: readonly string[]): OwnScript {
  return { kind: "own", way: random.pick(ways), ...material(random) };
}

function material(random: SeededRandom): Material {
  const compressed = random.below(12) === 0;
  const plain = bytes(random, sizeOf(random));
  const length = random.below(4);
  return {
    status: random.pick(STATUSES),
    headers: [
      ...headerLines(random, random.below(5)),
      ...(compressed ? ([["Content-Encoding", "gzip"]] as const) : []),
    ],
    text: text(random),
    json: jsonValue(random),
    bytes: compressed ? new Uint8Array(gzipSync(plain)) : plain,
    pieces: Array.from({ length }, () => bytes(random, random.below(3_000))),
    waitMs: random.pick([0, 0, 0, 1, 15]),
    failure: random.below(6) === 0 ? failure(random) : null,
  };
}

function headActs(random: SeededRandom): readonly Act[] {
  const acts: Act[] = [];
  if (random.below(3) > 0)
    acts.push({
      act: "status",
      status: random.pick(NATIVE_STATUSES),
      message: random.below(4) === 0 ? random.pick(["Taken In", "", "caf\u00e9"]) : null,
    });
  for (const [name, value] of headerLines(random, random.below(5))) {
    if (isType([name, value])) acts.push({ act: "set", name, value });
    else if (random.below(3) === 0) acts.push({ act: "append", name, value });
    else acts.push({ act: "set", name, value: random.below(3) === 0 ? [value, `${value}2`] : value });
  }
  if (random.below(6) === 0) acts.push({ act: "set", name: "X-Number", value: random.below(1_000) });
  if (random.below(10) === 0) acts.push({ act: "remove", name: random.pick(["x-odd-name", "Vary", "Date"]) });
  if (random.below(12) === 0)
    acts.push({ act: "interim", form: random.pick(["continue", "processing", "hints"]) });
  return acts;
}

function bodyActs(random: SeededRandom): readonly Act[] {
  const acts: Act[] = [];
  if (random.below(3) === 0) acts.push(head(random));
  if (random.below(8) === 0) acts.push({ act: "flush" });
  if (random.below(10) === 0) acts.push({ act: "cork" });
  for (let piece = random.below(4); piece > 0; piece -= 1) {
    acts.push({ act: "write", piece: pieceOf(random), callback: random.below(4) === 0 });
    if (random.below(3) === 0) acts.push({ act: "wait", ms: random.pick([1, 5, 15]) });
    if (random.below(12) === 0) acts.push({ act: "late" });
  }
  if (acts.some(({ act }) => act === "cork")) acts.push({ act: "uncork" });
  if (random.below(10) === 0) acts.push({ act: "trailers", headers: [["X-Sum", String(random.below(9))]] });
  if (random.below(8) === 0)
    acts.push({ act: "pipe", pieces: Array.from({ length: 1 + random.below(4) }, () => pieceOf(random)) });
  else
    acts.push({
      act: "end",
      piece: random.below(3) === 0 ? null : pieceOf(random),
      callback: random.below(4) === 0,
    });
  return acts;
}

function head(random: SeededRandom): Act {
  return {
    act: "head",
    form: random.pick(["status", "object", "message", "list"]),
    status: random.pick(NATIVE_STATUSES),
    headers: headerLines(random, random.below(4)),
  };
}

function failing(acts: readonly Act[], random: SeededRandom): readonly Act[] {
  const begun: readonly Act[] =
    random.below(4) > 0
      ? []
      : random.pick<readonly Act[]>([
          [{ act: "write", piece: { form: "text", text: "half of it", encoding: null }, callback: false }],
          [{ act: "flush" }],
          [head(random)],
        ]);
  const failed = begun.length > 0 ? ({ kind: "none", message: "secret" } as const) : failure(random);
  return [...acts, ...begun, { act: "throw", failure: failed }];
}

function failure(random: SeededRandom): Failure {
  const chance = random.below(10);
  if (chance < 5)
    return { kind: "status", status: random.pick(FAILURES), message: random.pick(["no", "so: \u00fc"]) };
  if (chance < 8) return { kind: "none", message: "secret" };
  return { kind: random.pick(["not_performed", "outcome_unknown", "permanent"] as const) };
}

function headerLines(random: SeededRandom, count: number): readonly HeaderLine[] {
  const lines = Array.from({ length: count }, (): HeaderLine => {
    const [name, ...values] = random.pick(HEADERS);
    return [name, random.pick(values)];
  });
  const repeated = random.below(3) === 0 ? [...lines, ...lines.slice(0, 1)] : lines;
  // A type is said once: hosts refuse a second one, each in its own way.
  const type = repeated.find(isType);
  return [...repeated.filter((line) => !isType(line)), ...(type === undefined ? [] : [type])];
}

function isType([name]: HeaderLine): boolean {
  return name.toLowerCase() === "content-type";
}

function pieceOf(random: SeededRandom): Piece {
  const hex = Buffer.from(bytes(random, sizeOf(random))).toString("hex");
  const form = random.below(6);
  if (form === 0) return { form: "buffer", hex };
  if (form === 1) return { form: "array", hex };
  if (form === 2) return { form: "text", text: hex, encoding: "hex" };
  if (form === 3)
    return { form: "text", text: Buffer.from(hex, "hex").toString("base64"), encoding: "base64" };
  return {
    form: "text",
    text: text(random),
    encoding: random.pick([null, "utf8", "latin1", "utf16le"] as const),
  };
}

function text(random: SeededRandom): string {
  return random.pick(TEXTS).repeat(random.pick([1, 1, 1, 40]));
}

function jsonValue(random: SeededRandom): unknown {
  const value = random.pick([0, 1.5, true, null, "", "\u00e9\ud800", { b: 1, a: [] }, [1, "2"]]);
  return random.below(3) === 0 ? value : { id: random.below(1_000), value, text: text(random) };
}

/** Mostly short; some as long as one write of a socket, a few too long to be kept. */
function sizeOf(random: SeededRandom): number {
  return random.pick([0, 1, 2, 7, 100, 1_000, 4_096, 16_384 + random.below(3), 17_000, random.below(70_000)]);
}

function bytes(random: SeededRandom, size: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, () => random.below(256));
}

const TEXTS: readonly string[] = [
  ...["", "made", "a\0b", "\u{1f600}", "caf\u00e9", "\ud800", "line\r\nline", "0\r\n\r\n", '{"a":1}', "<b>"],
];

/** What every host can answer, a Fetch one too. */
const STATUSES: readonly number[] = [
  ...[
    200, 200, 200, 201, 201, 202, 203, 204, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402,
    403,
  ],
  ...[
    404, 405, 406, 408, 409, 410, 411, 412, 413, 415, 417, 418, 421, 422, 423, 425, 426, 428, 429, 431, 451,
    499,
  ],
  ...[500, 501, 502, 503, 504, 507, 599],
];
const NATIVE_STATUSES: readonly number[] = [...STATUSES, 700, 999];
const FAILURES: readonly number[] = [
  400, 401, 402, 403, 404, 408, 409, 410, 422, 425, 429, 500, 502, 503, 504,
];

/** A name and values that it may have. */
const HEADERS: readonly (readonly [name: string, ...values: string[]])[] = [
  ["X-ODD-Name", "1", "a, b", 'a;b="c, d"'],
  ["x-empty", ""],
  ["X-Latin", "caf\u00e9", "\u00ff"],
  ["X-Long", "x".repeat(2_000)],
  ["X-Blank", "a  b", "a\tb"],
  ["Link", "<a>; rel=next", "<b>; rel=prev"],
  ["Vary", "Accept", "Accept-Encoding, Origin", "*"],
  ["ETag", '"v1"', 'W/"v2"'],
  ["Content-Type", "application/json", "text/plain; charset=utf-8", "text/html", "image/png", "text/csv"],
  ["content-type", "text/event-stream", "application/octet-stream"],
  ["Content-Language", "de"],
  ["Content-Disposition", 'attachment; filename="a.txt"'],
  ["Cache-Control", "no-store", "private, max-age=60"],
  ["Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"],
  ["Location", "/charges/1", "/ch\u00e4rges"],
  ["Set-Cookie", "sid=A; Path=/", "other=B"],
  ["set-cookie", "third=C"],
  ["WWW-Authenticate", "Bearer", 'Basic realm="a"'],
  ["X-Request-Id", "r1"],
  ["Request-Id", "r2"],
  ["X-RateLimit-Remaining", "9"],
  ["RateLimit", '"default";r=50;t=30'],
  ["Retry-After", "7"],
  ["Access-Control-Allow-Origin", "https://a.test"],
  ["Age", "3"],
  ["Server-Timing", "db;dur=5"],
  ["Keep-Alive", "timeout=5"],
  ["Idempotent-Replayed", "true"],
  ["Idempotency-Status", "forged"],
];
