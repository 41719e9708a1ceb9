import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { createAnswerReader, type Ending, type HeaderLine, type WireAnswer } from "./answer-reader.ts";
import { addressIn, isLoopbackAddress } from "./places.ts";

/** A request as it goes out: its headers line by line, repeats and all. */
export interface WireRequest {
  readonly method: string;
  readonly url: URL;
  /** `Host`, `Connection: close` and the body's length are added. */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer;
}

/** What came for one request. */
export type Heard =
  | { readonly kind: "answer"; readonly answer: WireAnswer }
  | { readonly kind: "none"; readonly reason: string };

/** A connection that stands and waits for its one request. */
export interface Line {
  readonly kind: "line";
  readonly ask: (request: WireRequest) => Promise<Heard>;
  readonly hangUp: () => void;
}

export interface WireLimits {
  /** For the connection, and again for the answer to its end. */
  readonly timeoutMs: number;
  /** Bytes of an answer, head and framing included. */
  readonly maxBytes: number;
  /** False: nothing is sent to an address that is not of this machine, whatever its name says. */
  readonly mayLeave: boolean;
}

/** How long surplus bytes are looked for where a server does not close as it was asked to. */
const LINGER_MS = 100;

/** Sends one request byte for byte on a connection of its own; ends in bounded time whatever the server does. */
export async function exchange(request: WireRequest, limits: WireLimits): Promise<Heard> {
  const line = await dial(request.url, limits);
  return line.kind === "none" ? line : await line.ask(request);
}

/** Connects, so that several requests can leave at one moment. */
export async function dial(
  url: URL,
  limits: WireLimits,
): Promise<Line | { readonly kind: "none"; readonly reason: string }> {
  const socket = opened(url);
  const reason = await connected(socket, url, limits.timeoutMs);
  if (reason === null && !limits.mayLeave && !isLoopbackAddress(socket.remoteAddress ?? "")) {
    socket.destroy();
    return {
      kind: "none",
      reason: `${url.hostname} is at ${socket.remoteAddress}, which is not this machine`,
    };
  }
  if (reason !== null) return { kind: "none", reason };
  return { kind: "line", ask: (request) => asked(socket, request, limits), hangUp: () => socket.destroy() };
}

function opened(url: URL): Socket {
  const host = addressIn(url);
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return secure ? connectSecurely({ host, port, servername: host }) : connect({ host, port });
}

/** Null once the connection stands, else why it does not. */
function connected(socket: Socket, url: URL, timeoutMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const over = (reason: string | null) => {
      clearTimeout(timer);
      if (reason !== null) socket.destroy();
      resolve(reason);
    };
    const timer = setTimeout(() => over(`no connection to ${url.host} within ${timeoutMs} ms`), timeoutMs);
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => over(null));
    // Stays for the life of the socket: a reset later on is seen by its closing.
    socket.on("error", (error) => over(`no connection to ${url.host}: ${error.message}`));
    socket.once("close", () => over(`the connection to ${url.host} ended`));
  });
}

function asked(socket: Socket, request: WireRequest, { timeoutMs, maxBytes }: WireLimits): Promise<Heard> {
  const reader = createAnswerReader();
  let received = 0;
  return new Promise((resolve) => {
    const over = (ending: Ending) => {
      clearTimeout(timer);
      socket.destroy();
      const answer = reader.finish(ending);
      if (answer !== null) resolve({ kind: "answer", answer });
      else resolve({ kind: "none", reason: NOTHING[ending](timeoutMs, received) });
    };
    let timer = setTimeout(() => over("timeout"), timeoutMs);
    let whole = false;
    socket.on("data", (bytes: Buffer) => {
      received += bytes.length;
      const state = reader.push(bytes);
      if (state === "unreadable") {
        clearTimeout(timer);
        socket.destroy();
        resolve({ kind: "none", reason: "what came back is no HTTP/1.1 answer" });
      } else if (received > maxBytes) over("too long");
      else if (state === "whole" && !whole) {
        whole = true;
        clearTimeout(timer);
        timer = setTimeout(() => over("closed"), LINGER_MS);
      }
    });
    socket.once("close", () => over("closed"));
    socket.write(bytesOf(request));
  });
}

const NOTHING: Readonly<Record<Ending, (timeoutMs: number, received: number) => string>> = {
  closed: (_, received) => `the connection ended after ${received} bytes, before the head of an answer`,
  timeout: (timeoutMs) => `no answer within ${timeoutMs} ms`,
  "too long": (_, received) => `${received} bytes came and no head of an answer among them`,
};

function bytesOf({ method, url, headers, body }: WireRequest): Buffer {
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const lines: HeaderLine[] = [];
  if (!given.has("host")) lines.push(["Host", url.host]);
  lines.push(["Connection", "close"], ...headers);
  if (body.length > 0 || !/^(GET|HEAD|OPTIONS)$/.test(method)) {
    lines.push(["Content-Length", String(body.length)]);
  }
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const start = `${method} ${url.pathname}${url.search} HTTP/1.1\r\n`;
  return Buffer.concat([Buffer.from(`${start}${head}\r\n`, "latin1"), body]);
}
