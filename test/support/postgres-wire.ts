import type { Direction } from "./fault-link.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import type { Passage, Reader } from "./fault-rules.ts";

/** A statement on its way to the server, at the message that runs it. */
export interface PostgresStatement {
  /** The text as it was sent; a simple query may hold several statements. */
  readonly sql: string;
  readonly protocol: "simple" | "extended";
}

/** Starts a proxy before the PostgreSQL server behind `url`, to which a client must connect without TLS. */
export function startPostgresProxy(url: string): Promise<FaultProxy<PostgresStatement>> {
  const { hostname, port } = new URL(url);
  return startFaultProxy({ target: { host: hostname, port: Number(port || 5432) }, reader: postgresReader });
}

/**
 * Holds for the chunk with which a COMMIT reaches the server whole: a simple query whose last statement is COMMIT, or the
 * Execute of a statement whose Parse was COMMIT. (A Parse alone commits nothing, and need not travel with its Execute.)
 */
export function sendsCommit({ messages }: Passage<PostgresStatement>): boolean {
  return messages.some(({ sql }) => isCommit(sql));
}

/** Makes a condition that holds for the chunk with which a statement that `pattern` finds reaches the server whole. */
export function sendsStatement(pattern: RegExp): (passage: Passage<PostgresStatement>) => boolean {
  return ({ messages }) => messages.some(({ sql }) => sql.search(pattern) >= 0);
}

/** Finds the statements in what a client sends; the server's side is not read. */
export function postgresReader(direction: Direction): Reader<PostgresStatement> {
  if (direction === "reply") return () => [];
  const frames = frameReader();
  const statements = statementReader();
  return (chunk) => frames(chunk).flatMap(statements);
}

/** COMMIT PREPARED is another command: it ends a transaction that an earlier session left. */
const commit = /^(commit|end)(\s+(work|transaction))?(\s+and\s+(no\s+)?chain)?$/i;

function isCommit(sql: string): boolean {
  const bare = sql.replace(notCode, (found) => (/^(--|\/\*)/.test(found) ? " " : "''"));
  const statements = bare.split(";").map((each) => each.trim());
  return commit.test(statements.filter((each) => each !== "").at(-1) ?? "");
}

/** Comments, strings, quoted names and dollar-quoted strings: what is in them is no statement. */
const notCode =
  /--[^\n]*|\/\*.*?\*\/|(?<!\w)e'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"|\$((?:[a-z_]\w*)?)\$.*?\$\1\$/gis;

/** One message of a client; the type of what starts a connection is empty, for it has none on the wire. */
type Frame = { readonly type: string; readonly body: Buffer };

type OpenFrame = { readonly type: string; readonly parts: Buffer[]; left: number; wanted: number };

/** Follows the framing from the first byte of a connection; keeps of each body what a statement is read from. */
function frameReader(): (chunk: Buffer) => readonly Frame[] {
  let starting = true;
  let header: Buffer = Buffer.alloc(0);
  let open: OpenFrame | undefined;
  return (chunk) => {
    const frames: Frame[] = [];
    let rest: Buffer = Buffer.concat([header, chunk]);
    header = Buffer.alloc(0);
    for (;;) {
      if (open === undefined) {
        const headerBytes = starting ? 4 : 5;
        if (rest.length < headerBytes) {
          header = rest;
          return frames;
        }
        open = openFrame(rest, starting);
        rest = rest.subarray(headerBytes);
      }
      rest = take(open, rest);
      if (open.left > 0) return frames;
      const frame = { type: open.type, body: Buffer.concat(open.parts) };
      open = undefined;
      if (starting) starting = asksForEncryption(frame.body);
      else frames.push(frame);
    }
  };
}

function openFrame(header: Buffer, starting: boolean): OpenFrame {
  const length = header.readInt32BE(starting ? 0 : 1);
  // The server's own limit for a beginning; the first bytes of TLS read as a length far beyond it.
  if (length < (starting ? 8 : 4) || (starting && length > 10_000)) {
    throw new Error(
      `These are no messages of PostgreSQL, or they are encrypted: one is ${length} bytes long.`,
    );
  }
  const type = starting ? "" : header.toString("latin1", 0, 1);
  return { type, parts: [], left: length - 4, wanted: starting ? 4 : (wantedBytes.get(type) ?? 0) };
}

/** How much of a body is kept: all where it is SQL, room for the names where it begins with names, else nothing. */
const wantedBytes: ReadonlyMap<string, number> = new Map([
  ["Q", Number.POSITIVE_INFINITY],
  ["P", Number.POSITIVE_INFINITY],
  ["B", 1024],
  ["E", 1024],
]);

function take(frame: OpenFrame, bytes: Buffer): Buffer {
  const taken = bytes.subarray(0, frame.left);
  const kept = taken.subarray(0, frame.wanted);
  if (kept.length > 0) frame.parts.push(kept);
  frame.wanted -= kept.length;
  frame.left -= taken.length;
  return bytes.subarray(taken.length);
}

/** Asks for TLS or for GSSAPI; the real beginning follows if the server declines. */
function asksForEncryption(body: Buffer): boolean {
  return [80877103, 80877104].includes(body.readInt32BE(0));
}

/** Remembers which text a prepared statement and a portal stand for. */
function statementReader(): (frame: Frame) => readonly PostgresStatement[] {
  const prepared = new Map<string, string>();
  const portals = new Map<string, string>();
  return ({ type, body }) => {
    const [first = "", second = ""] = body.toString("utf8").split("\0", 2);
    switch (type) {
      case "Q":
        return [{ sql: first, protocol: "simple" }];
      case "P":
        prepared.set(first, second);
        return [];
      case "B":
        portals.set(first, prepared.get(second) ?? "");
        return [];
      case "E":
        return [{ sql: portals.get(first) ?? "", protocol: "extended" }];
    }
    return [];
  };
}
