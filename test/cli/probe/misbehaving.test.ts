import { createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { probe } from "../../../src/cli/probe/probe.ts";
import { listening, RIGHT, startKeyedServer } from "./keyed-server.ts";
import { faultsIn, findingsOf, settingsFor, unshownIn } from "./settings.ts";

const JSON_HEAD = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n";

/** Servers that answer nothing that a probe could go by. */
const SILENT: readonly (readonly [what: string, answer: (socket: Socket) => void, reason: RegExp])[] = [
  ["never answers", () => {}, /no answer within 200 ms/],
  ["closes at once", (socket) => socket.end(), /ended after 0 bytes/],
  ["resets", (socket) => socket.resetAndDestroy(), /no answer: /],
  ["answers something else", (socket) => socket.end("+OK hello\r\n\r\n"), /no HTTP\/1\.1 answer/],
  [
    "sends a head without an end",
    (socket) => endless(socket, "HTTP/1.1 200 OK\r\nA: ", "a"),
    /no HTTP\/1\.1 answer/,
  ],
  ["answers half a head", (socket) => socket.write("HTTP/1.1 20"), /no answer within 200 ms/],
  [
    "says 100 for ever",
    (socket) => endless(socket, "", "HTTP/1.1 100 Continue\r\n\r\n"),
    /no head of an answer|no answer within/,
  ],
];

test.each(SILENT)("a server that %s cannot be probed, and the probe ends", async (_, answer, reason) => {
  const base = await answering(answer);
  const settings = settingsFor(base, { counting: null, requestTimeoutMs: 200 });
  expect(await probe(settings)).toEqual({ kind: "cannot", reason: expect.stringMatching(reason) });
});

/** Servers whose answers do not say rightly where they end. */
const BADLY_FRAMED: readonly (readonly [what: string, answer: (socket: Socket) => void, fault: RegExp])[] = [
  [
    "stops inside its body",
    (socket) => socket.write(`${JSON_HEAD}Content-Length: 9\r\n\r\n{}`),
    /2 of the 9 bytes .* time for a request was over/,
  ],
  [
    "has both framings",
    (socket) =>
      socket.end(`${JSON_HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`),
    /both a Content-Length and a Transfer-Encoding/,
  ],
  [
    "sends more than it said",
    (socket) => socket.end(`${JSON_HEAD}Content-Length: 2\r\n\r\n{}{}`),
    /2 bytes came behind/,
  ],
  [
    "breaks a chunk",
    (socket) => socket.end(`${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\n{}\r\n0\r\n\r\n`),
    /one of its chunks is broken/,
  ],
];

test.each(BADLY_FRAMED)("a server that %s is told so, and the probe ends", async (_, answer, fault) => {
  const settings = settingsFor(await answering(answer), {
    ...{ counting: null, also: [], copies: 2, rounds: 1, requestTimeoutMs: 60 },
  });
  const framing = faultsIn(await findingsOf(settings)).find((each) => each.startsWith("replay-framing: "));
  expect(framing).toMatch(fault);
});

test("a server that sends a body without an end is cut off at a bound of bytes, long before the time", async () => {
  const settings = settingsFor(await answering((socket) => endless(socket, `${JSON_HEAD}\r\n`, " ")), {
    ...{ counting: null, also: [], otherHeaders: null, otherBody: null, copies: 2, rounds: 1 },
  });
  expect(faultsIn(await findingsOf(settings)).join()).toMatch(/more of it than anybody reads/);
});

test.concurrent("a request that is left without an answer is a fault of its own, and the other checks go on", async () => {
  const hangs = {
    ...RIGHT,
    keyIn: (lines: readonly string[]) => (lines[0] === "" ? hang() : RIGHT.keyIn(lines)),
  };
  const findings = await findingsOf(settingsFor(await startKeyedServer(hangs), { requestTimeoutMs: 500 }));
  expect(faultsIn(findings)).toEqual([
    expect.stringMatching(/^answers: .*key-blank.*: the connection ended/),
  ]);
  expect(unshownIn(findings)).toContain("key-blank");
  expect(findings).toContainEqual(expect.objectContaining({ id: "problem-json", verdict: "passed" }));
});

test.concurrent("a time limit that is over leaves the rest not shown, and what it cut off is no fault of the server", async () => {
  const base = await answering(() => {});
  const settings = settingsFor(await startKeyedServer(RIGHT), {
    ...{ also: [{ url: new URL(base), mayLeave: false }], requestTimeoutMs: 60_000, timeLimitMs: 2_000 },
  });
  const probed = await probe(settings);
  if (probed.kind === "cannot") throw new Error(probed.reason);
  expect(probed.unfinished).toMatch(/2000 ms of --time-limit/);
  expect(faultsIn(probed.findings)).toEqual([]);
  expect(unshownIn(probed.findings)).toContain("replay-once");
  expect(unshownIn(probed.findings)).toContain("problem-json");
});

test.concurrent("without a count nothing that rests on one is passed, and a right server has no fault", async () => {
  const findings = await findingsOf(settingsFor(await startKeyedServer(RIGHT), { counting: null }));
  expect(faultsIn(findings)).toEqual([]);
  expect(unshownIn(findings)).toEqual([
    ...["race", "replay-once", "empty-answers", "other-body", "quoted-key"],
    ...["key-blank", "key-long", "key-two-lines", "key-quoting", "get-key"],
  ]);
});

test.concurrent("two runs of one key are a fault without a count too, where their answers differ", async () => {
  const settings = settingsFor(await startKeyedServer({ ...RIGHT, looksFirst: true }), { counting: null });
  expect(faultsIn(await findingsOf(settings))).toEqual([expect.stringMatching(/^race: .* differ$/)]);
});

test.concurrent("another's answer is a fault without a count too, where answers can be told apart", async () => {
  const settings = settingsFor(await startKeyedServer({ ...RIGHT, identity: (_, key) => key }), {
    counting: null,
  });
  expect(faultsIn(await findingsOf(settings))).toEqual([expect.stringMatching(/^principal: .*first one's/)]);
});

test.concurrent("a count that does not move, or that others move, is refused instead of believed", async () => {
  const still = settingsFor(await startKeyedServer(RIGHT));
  const other = await startKeyedServer(RIGHT);
  const counting = { target: { url: new URL("/count", other), mayLeave: false }, headers: [], pointer: "" };
  expect(await probe({ ...still, counting: { ...counting, settleMs: 0 } })).toEqual({
    kind: "cannot",
    reason: expect.stringMatching(/does not go up/),
  });
  let read = 0;
  const restless = await answering((socket) => {
    read += 1;
    socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${read * read}`);
  });
  const moved = { ...counting, target: { url: new URL(restless), mayLeave: false }, settleMs: 0 };
  expect(await probe({ ...still, counting: moved })).toEqual({
    kind: "cannot",
    reason: expect.stringMatching(/somebody else is using the server/),
  });
});

/** What reads the key fails, and so the connection is dropped. */
function hang(): never {
  throw new Error("This server gives no answer to that.");
}

async function answering(answer: (socket: Socket) => void): Promise<string> {
  return await listening(
    createServer((socket) => {
      socket.on("error", () => {}); // the probe hangs up in the middle
      socket.once("data", () => answer(socket));
    }),
  );
}

function endless(socket: Socket, start: string, piece: string): void {
  const pieces = Buffer.from(piece.repeat(65_536));
  const more = () => {
    if (!socket.destroyed) socket.write(pieces, () => setImmediate(more));
  };
  socket.write(start, more);
}
