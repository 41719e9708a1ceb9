import { once } from "node:events";
import { connect } from "node:net";
import { bytesOf, type HeaderLine, type WireRequest } from "../wire.ts";

/** An answer as its bytes were, taken apart and nothing made alike. */
export interface RawAnswer {
  readonly bytes: Buffer;
  /** The heads of the 1xx that came before it. */
  readonly interim: readonly string[];
  readonly status: number;
  readonly statusLine: string;
  /** As they were spelled and ordered. */
  readonly lines: readonly HeaderLine[];
  readonly framing: "chunked" | "length" | "bodyless" | "close";
  readonly body: Buffer;
  readonly trailers: readonly HeaderLine[];
  /** False where the connection ended before the answer did. */
  readonly complete: boolean;
}

/** No handler of these tests takes nearly as long. */
const PATIENCE_MS = 5_000;

export async function ask(port: number, request: WireRequest): Promise<RawAnswer> {
  const socket = connect({ port, host: "127.0.0.1" });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {}); // a reset is an answer too: an incomplete one
  socket.setTimeout(PATIENCE_MS, () => socket.destroy());
  socket.write(bytesOf(request));
  await once(socket, "close");
  return takenApart(Buffer.concat(chunks), request.method ?? "POST");
}

function takenApart(bytes: Buffer, method: string): RawAnswer {
  const interim: string[] = [];
  for (let rest = bytes; ; ) {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return { ...NOTHING, bytes, interim };
    const head = rest.subarray(0, end).toString("latin1");
    rest = rest.subarray(end + 4);
    const [statusLine = "", ...fields] = head.split("\r\n");
    const status = Number(statusLine.split(" ")[1]);
    if (status < 200) {
      interim.push(head);
      continue;
    }
    const lines = fields.map(lineOf);
    return { bytes, interim, status, statusLine, lines, ...framed(lines, status, method, rest) };
  }
}

const NOTHING: Omit<RawAnswer, "bytes" | "interim"> = {
  status: 0,
  statusLine: "",
  lines: [],
  framing: "close",
  body: Buffer.alloc(0),
  trailers: [],
  complete: false,
};

function lineOf(line: string): HeaderLine {
  const at = line.indexOf(":");
  return [line.slice(0, at), line.slice(at + 1).replace(/^[ \t]+|[ \t]+$/g, "")]; // RFC 9112, 5
}

type Framed = Pick<RawAnswer, "framing" | "body" | "trailers" | "complete">;

function framed(lines: readonly HeaderLine[], status: number, method: string, rest: Buffer): Framed {
  const value = (name: string) => lines.find(([each]) => each.toLowerCase() === name)?.[1];
  if (method === "HEAD" || status === 204 || status === 304)
    return { framing: "bodyless", body: rest, trailers: [], complete: rest.length === 0 };
  if (value("transfer-encoding") !== undefined) return unchunked(rest);
  const length = value("content-length");
  if (length === undefined) return { framing: "close", body: rest, trailers: [], complete: true };
  return { framing: "length", body: rest, trailers: [], complete: rest.length === Number(length) };
}

function unchunked(rest: Buffer): Framed {
  const pieces: Buffer[] = [];
  const so = (complete: boolean, trailers: readonly HeaderLine[] = []): Framed => {
    return { framing: "chunked", body: Buffer.concat(pieces), trailers, complete };
  };
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd < 0) return so(false);
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString("latin1"), 16);
    const start = lineEnd + 2;
    if (size === 0) {
      const tail = rest.subarray(start).toString("latin1");
      const lines = tail.split("\r\n").slice(0, -2);
      return so(tail.endsWith("\r\n"), lines.filter((line) => line !== "").map(lineOf));
    }
    if (start + size + 2 > rest.length) {
      pieces.push(rest.subarray(start, start + size));
      return so(false);
    }
    pieces.push(rest.subarray(start, start + size));
    at = start + size + 2;
  }
}

/** The bytes for people: those of the head as text, the body with everything odd in it escaped. */
export function dumped({ bytes }: RawAnswer): string {
  const text = bytes.toString("latin1").replaceAll("\r\n", "\u240d\u240a\n");
  const odd = /[^\x20-\x7e\n\u240d\u240a]/g;
  const shown = text.replace(odd, (each) => `\\x${each.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return shown.length <= 1_500 ? shown : `${shown.slice(0, 1_500)}… (${bytes.length} bytes in all)`;
}
