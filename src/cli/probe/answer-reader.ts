/** One header as it stood on the wire; the name in lower case. */
export type HeaderLine = readonly [name: string, value: string];

/** An answer as its bytes were. */
export interface WireAnswer {
  readonly status: number;
  /** One entry for each line, in order. */
  readonly headers: readonly HeaderLine[];
  /** Without its framing. */
  readonly body: Buffer;
  /** What is wrong in how it says where it ends; empty where nothing is. */
  readonly framing: readonly string[];
}

/** Takes the bytes of one answer as they come, in a time that grows with their number only. */
export interface AnswerReader {
  /** `whole`: the answer has come to its end; what is pushed after that is surplus. */
  readonly push: (bytes: Buffer) => "reading" | "whole" | "unreadable";
  /** The answer as far as it came, or null where there was no head of one. */
  readonly finish: (ending: Ending) => WireAnswer | null;
}

/** How the reading ended: the server closed, time was over, or more came than anybody reads. */
export type Ending = "closed" | "timeout" | "too long";

/** More than any server's head. */
const MAX_HEAD_BYTES = 65_536;

/** Reads one answer; interim ones (1xx) are passed over. */
export function createAnswerReader(): AnswerReader {
  let waiting: Buffer = Buffer.alloc(0);
  let head: Head | null = null;
  let body: BodyReader = emptyBody();
  const push = (bytes: Buffer): ReturnType<AnswerReader["push"]> => {
    if (head !== null) return pushed(body, bytes);
    waiting = Buffer.concat([waiting, bytes]);
    for (;;) {
      const end = waiting.indexOf("\r\n\r\n");
      if (end < 0) return waiting.length > MAX_HEAD_BYTES ? "unreadable" : "reading";
      const found = headIn(waiting.subarray(0, end).toString("latin1"));
      if (found === null) return "unreadable";
      waiting = waiting.subarray(end + 4);
      if (found.status >= 200 || found.status === 101) {
        head = found;
        body = bodyAfter(found);
        return pushed(body, waiting);
      }
    }
  };
  const finish = (ending: Ending): WireAnswer | null => {
    if (head === null) return null;
    const { bytes, faults } = body.finish(ending);
    return { status: head.status, headers: head.headers, body: bytes, framing: [...head.faults, ...faults] };
  };
  return { push, finish };
}

interface Head {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly faults: readonly string[];
}

interface BodyReader {
  /** True once the body has come to its end. */
  readonly push: (bytes: Buffer) => boolean;
  readonly finish: (ending: Ending) => { readonly bytes: Buffer; readonly faults: readonly string[] };
}

function pushed(body: BodyReader, bytes: Buffer): "reading" | "whole" {
  return body.push(bytes) ? "whole" : "reading";
}

function headIn(text: string): Head | null {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const status = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined) return null;
  const headers: HeaderLine[] = [];
  const faults: string[] = [];
  for (const line of lines) {
    const at = line.indexOf(":");
    if (at > 0) headers.push([line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()]);
    else faults.push("a line of its head is no header");
  }
  return { status: Number(status), headers, faults };
}

/** RFC 9112, 6.3: what says how long the body is. */
function bodyAfter({ status, headers }: Head): BodyReader {
  const valuesOf = (name: string) => headers.filter(([each]) => each === name).map(([, value]) => value);
  const lengths = valuesOf("content-length");
  const codings = valuesOf("transfer-encoding");
  const faults: string[] = [];
  if (lengths.length > 0 && codings.length > 0)
    faults.push("it has both a Content-Length and a Transfer-Encoding");
  if (lengths.length > 1) faults.push("it has more than one Content-Length");
  if (status === 204 || status === 304) return measured(0, faults);
  if (codings.length > 0) {
    if (/(^|,)\s*chunked$/i.test(codings.join(", "))) return chunked(faults);
    return untilClosed([...faults, "its Transfer-Encoding does not end in chunked"]);
  }
  const [length] = lengths;
  if (length === undefined) return untilClosed(faults);
  if (/^\d{1,15}$/.test(length)) return measured(Number(length), faults);
  return untilClosed([...faults, "its Content-Length is no number"]);
}

function emptyBody(): BodyReader {
  return measured(0, []);
}

function measured(length: number, given: readonly string[]): BodyReader {
  const pieces: Buffer[] = [];
  let total = 0;
  return {
    push(bytes) {
      pieces.push(bytes);
      total += bytes.length;
      return total >= length;
    },
    finish(ending) {
      const faults = [...given];
      if (total < length) faults.push(`${total} of the ${length} bytes of its body came ${WHEN[ending]}`);
      if (total > length) faults.push(`${total - length} bytes came behind the end of its body`);
      return { bytes: Buffer.concat(pieces).subarray(0, length), faults };
    },
  };
}

function untilClosed(given: readonly string[]): BodyReader {
  const pieces: Buffer[] = [];
  return {
    push(bytes) {
      pieces.push(bytes);
      return false;
    },
    finish(ending) {
      const faults = ending === "closed" ? given : [...given, `its body had not ended ${WHEN[ending]}`];
      return { bytes: Buffer.concat(pieces), faults };
    },
  };
}

/** A line with the size of a chunk and its extensions. */
const MAX_CHUNK_LINE = 4_096;

/** `line`: a size is next; `data`: bytes are, and behind them an end of line; `trailer`: lines up to an empty one. */
type Chunking = "line" | "data" | "data end" | "trailer" | "over" | "broken";

function chunked(given: readonly string[]): BodyReader {
  const pieces: Buffer[] = [];
  let at: Chunking = "line";
  let left = 0;
  let waiting: Buffer = Buffer.alloc(0);
  const takeData = (): boolean => {
    const piece = waiting.subarray(0, left);
    pieces.push(piece);
    waiting = waiting.subarray(piece.length);
    left -= piece.length;
    if (left === 0) at = "data end";
    return left === 0;
  };
  const takeLine = (): boolean => {
    const end = waiting.indexOf("\r\n");
    if (end < 0 && waiting.length > MAX_CHUNK_LINE) at = "broken";
    if (end < 0) return false;
    const line = waiting.subarray(0, end).toString("latin1");
    waiting = waiting.subarray(end + 2);
    const size = at === "line" ? sizeIn(line) : null;
    if (size !== null) left = size;
    at = afterLine(at, line, size);
    return true;
  };
  return {
    push(bytes) {
      waiting = waiting.length === 0 ? bytes : Buffer.concat([waiting, bytes]);
      while (at !== "over" && at !== "broken" && (at === "data" ? takeData() : takeLine()));
      return at === "over" || at === "broken";
    },
    finish(ending) {
      return { bytes: Buffer.concat(pieces), faults: [...given, ...chunkFaults(at, waiting.length, ending)] };
    },
  };
}

function sizeIn(line: string): number | null {
  const size = /^([\da-f]{1,8})\s*(;|$)/i.exec(line)?.[1];
  return size === undefined ? null : Number.parseInt(size, 16);
}

function afterLine(at: Chunking, line: string, size: number | null): Chunking {
  if (at === "data end") return line === "" ? "line" : "broken";
  if (at === "trailer") return line === "" ? "over" : "trailer";
  if (size === null) return "broken";
  return size === 0 ? "trailer" : "data";
}

function chunkFaults(at: Chunking, surplus: number, ending: Ending): readonly string[] {
  if (at === "broken") return ["one of its chunks is broken"];
  if (at !== "over") return [`its last chunk had not come ${WHEN[ending]}`];
  return surplus > 0 ? [`${surplus} bytes came behind its last chunk`] : [];
}

const WHEN: Readonly<Record<Ending, string>> = {
  closed: "when the connection ended",
  timeout: "when the time for a request was over",
  "too long": "when there was more of it than anybody reads",
};
