import { createHash, randomBytes, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Server } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

/** An answer as a server keeps it. */
export interface Kept {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A request as a server's rules see it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly principal: string;
  readonly body: Buffer;
}

/** How a server with keys behaves, point by point; a wrong one differs from the right one in one point. */
export interface Rules {
  /** The key in the lines of its header; `bad` is answered 400. */
  readonly keyIn: (lines: readonly string[]) => { readonly key: string } | "missing" | "bad";
  readonly identity: (principal: string, key: string) => string;
  readonly fingerprint: (asked: Asked) => string;
  /** Waits between its look and its claim. */
  readonly looksFirst: boolean;
  readonly protectsGet: boolean;
  /** What of an answer is kept; null: nothing is. */
  readonly keep: (answer: Kept) => Kept | null;
  /** Which replays are run as well. */
  readonly runsAgain: (answer: Kept) => boolean;
  /** Keeps what belongs to the first exchange as well. */
  readonly keepsCookies: boolean;
  readonly replayHeaders: Readonly<Record<string, string>>;
  readonly firstHeaders: (request: IncomingMessage) => Readonly<Record<string, string>>;
  /** The answers of its own, by their code. */
  readonly refuse: (code: Refused) => Kept;
  /** A key for requests that bring none. */
  readonly keyForNone: string | null;
}

export type Refused = "key_invalid" | "in_progress" | "key_reused";

const STATUS: Readonly<Record<Refused, number>> = { key_invalid: 400, in_progress: 409, key_reused: 422 };

export const RIGHT: Rules = {
  keyIn: (lines) => {
    const [line, ...others] = lines;
    if (line === undefined) return "missing";
    if (others.length > 0) return "bad";
    const key = /^"([^"]*)"$/.exec(line)?.[1] ?? line;
    return key.trim() === "" || key.length > 255 || /[",]/.test(key) ? "bad" : { key };
  },
  identity: (principal, key) => JSON.stringify([principal, key]),
  fingerprint: ({ method, path, body }) => `${method} ${path} ${digest(body)}`,
  looksFirst: false,
  protectsGet: false,
  keep: (answer) => answer,
  runsAgain: () => false,
  keepsCookies: false,
  replayHeaders: { "idempotent-replayed": "true" },
  firstHeaders: () => ({ "set-cookie": `sid=${randomUUID()}` }),
  refuse: (code) => ({
    status: STATUS[code],
    headers: {
      "content-type": "application/problem+json",
      ...(code === "in_progress" ? { "retry-after": "1" } : {}),
    },
    body: Buffer.from(JSON.stringify({ type: `urn:test:${code}`, code })),
  }),
  keyForNone: null,
};

/** Serves `/orders`, `/empty`, `/binary`, `/declined`, and `/count`, which says how many effects there were. */
export async function startKeyedServer(rules: Rules): Promise<string> {
  const service = serviceOf(rules);
  const server = createServer((request, response) => {
    service(request, response).catch((error) => response.destroy(error));
  });
  return await listening(server);
}

/** The URL of a server on this machine; it keeps no process from ending. */
export async function listening(server: Server): Promise<string> {
  server.unref();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return `http://127.0.0.1:${address.port}`;
}

interface Entry {
  readonly fingerprint: string;
  answer: Kept | null;
}

function serviceOf(rules: Rules): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const records = new Map<string, Entry>();
  let effects = 0;
  const perform = async (path: string): Promise<Kept> => {
    await pause(20); // long enough to be met by a copy
    effects += 1;
    return answerOf(path);
  };
  return async (request, response) => {
    const body = await buffer(request);
    const { method = "", url: path = "" } = request;
    if (path === "/count") return void response.end(String(effects));
    const asked = { method, path, principal: request.headers.authorization ?? "", body };
    if (method === "GET" && !rules.protectsGet) return void response.end("[]");
    const run = () => (method === "GET" ? Promise.resolve(answerOf("/list")) : perform(path));
    const found = rules.keyIn(linesOf(request));
    if (found === "bad") return sent(response, rules.refuse("key_invalid"));
    if (found === "missing" && rules.keyForNone === null) return sent(response, await run());
    const id = rules.identity(
      asked.principal,
      typeof found === "string" ? (rules.keyForNone ?? "") : found.key,
    );
    const fingerprint = rules.fingerprint(asked);
    const before = records.get(id);
    if (before !== undefined) {
      if (before.fingerprint !== fingerprint) return sent(response, rules.refuse("key_reused"));
      if (before.answer === null) return sent(response, rules.refuse("in_progress"));
      if (rules.runsAgain(before.answer)) await run();
      return sent(response, before.answer, rules.replayHeaders);
    }
    if (rules.looksFirst) await pause(10); // a store is a few milliseconds away
    const entry: Entry = { fingerprint, answer: null };
    records.set(id, entry);
    const answer = await run();
    const first = rules.firstHeaders(request);
    const kept = rules.keepsCookies ? { ...answer, headers: { ...answer.headers, ...first } } : answer;
    entry.answer = rules.keep(kept);
    if (entry.answer === null) records.delete(id);
    sent(response, answer, first);
  };
}

function sent(
  response: ServerResponse,
  { status, headers, body }: Kept,
  more: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { ...headers, ...more });
  response.end(body);
}

function answerOf(path: string): Kept {
  const [route = ""] = path.split("?");
  const id = randomUUID();
  const json = { "content-type": "application/json", "x-version": "7" };
  switch (route) {
    case "/empty":
      return { status: 204, headers: {}, body: Buffer.alloc(0) };
    case "/binary":
      return {
        status: 200,
        headers: { "content-type": "application/octet-stream" },
        body: Buffer.concat([Buffer.from([0, 255, 254, 0xc3, 0x28]), randomBytes(16)]),
      };
    case "/declined":
      return { status: 402, headers: json, body: Buffer.from('{"code":"card_declined"}') };
  }
  const body = Buffer.from(JSON.stringify({ id, route }));
  return { status: 201, headers: { ...json, location: `/orders/${id}` }, body };
}

function linesOf({ rawHeaders }: IncomingMessage): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && /^idempotency-key$/i.test(rawHeaders[at - 1] ?? ""));
}

function digest(body: Buffer): string {
  return createHash("sha256").update(body).digest("hex");
}
