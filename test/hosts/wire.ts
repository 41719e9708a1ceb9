import { once } from "node:events";
import { connect, type Socket } from "node:net";

export type HeaderLine = readonly [name: string, value: string];

export interface WireRequest {
  readonly method?: string;
  /** The request target as it stands in the request line. */
  readonly target: string;
  /** Lines in order, repeats and all; `Host`, `Connection: close` and the body's length are added. */
  readonly headers?: readonly HeaderLine[];
  readonly body?: string | Uint8Array;
}

/** An answer as its bytes were. */
export interface WireAnswer {
  readonly status: number;
  /** Names in lower case, one entry for each line. */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer;
  /** False where the connection ended before the answer did. */
  readonly complete: boolean;
}

/** A request on its way, on a connection of its own. */
export interface Call {
  readonly answer: Promise<WireAnswer>;
  /** What has come of the body so far. */
  readonly sofar: () => string;
  readonly hangUp: () => void;
}

/** Sends a request byte for byte and reads what comes back, with no HTTP library between. */
export function call(port: number, request: WireRequest): Call {
  const socket = connect({ port, host: "127.0.0.1" });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.write(bytesOf(request));
  return {
    answer: received(socket, chunks),
    sofar: () => parsed(Buffer.concat(chunks)).body.toString("latin1"),
    hangUp: () => socket.destroy(),
  };
}

export async function send(port: number, request: WireRequest): Promise<WireAnswer> {
  return await call(port, request).answer;
}

/** The values of a header, one for each line. */
export function linesOf({ headers }: WireAnswer, name: string): readonly string[] {
  return headers.filter(([each]) => each === name).map(([, value]) => value);
}

/** A request as it goes on the wire. */
export function bytesOf({ method = "POST", target, headers = [], body = "" }: WireRequest): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : Buffer.from(body);
  const length: readonly HeaderLine[] = [["Content-Length", String(bytes.length)]];
  const lines = [["Host", "service.test"], ["Connection", "close"], ...headers, ...length];
  const head = lines.map(([name, value]) => `${name}: ${value}`).join("\r\n");
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n\r\n`, "latin1"), bytes]);
}

async function received(socket: Socket, chunks: readonly Buffer[]): Promise<WireAnswer> {
  socket.on("error", () => {}); // a reset is an answer too: an incomplete one
  await once(socket, "close");
  return parsed(Buffer.concat(chunks));
}

function parsed(bytes: Buffer): WireAnswer {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return { status: 0, headers: [], body: Buffer.alloc(0), complete: false };
  const [statusLine = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = lines.map((line): HeaderLine => {
    const at = line.indexOf(":");
    return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
  });
  const status = Number(statusLine.split(" ")[1]);
  if (status >= 100 && status < 200) return parsed(bytes.subarray(end + 4)); // the answer comes behind it
  return { status, headers, ...framed(new Map(headers), status, bytes.subarray(end + 4)) };
}

function framed(
  headers: ReadonlyMap<string, string>,
  status: number,
  rest: Buffer,
): Pick<WireAnswer, "body" | "complete"> {
  const length = headers.get("content-length");
  const coding = headers.get("transfer-encoding");
  if (length !== undefined && coding !== undefined) throw new Error("An answer is framed in two ways.");
  if (coding !== undefined) return unchunked(rest);
  // A host may leave it to the closing to end an empty 205.
  const bare = status === 204 || status === 304 || (status === 205 && length === undefined);
  if (bare && rest.length > 0) throw new Error(`A ${status} had a body.`);
  const expected = bare ? 0 : Number(length);
  if (Number.isNaN(expected)) throw new Error("An answer does not say where it ends.");
  return { body: rest, complete: rest.length === expected };
}

function unchunked(rest: Buffer): Pick<WireAnswer, "body" | "complete"> {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd < 0) return { body: Buffer.concat(pieces), complete: false };
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString("latin1"), 16);
    const start = lineEnd + 2;
    if (size === 0)
      return {
        body: Buffer.concat(pieces),
        complete: rest.subarray(start, start + 2).toString("latin1") === "\r\n",
      };
    pieces.push(rest.subarray(start, start + size));
    at = start + size + 2;
  }
}
