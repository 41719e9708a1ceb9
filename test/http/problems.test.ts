import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { KeyRecord } from "../../src/core/record.ts";
import { stamp } from "../../src/core/record.ts";
import { conclude, doubt, release } from "../../src/core/transition.ts";
import type { Answered } from "../../src/engine/begin.ts";
import { type ErrorCode, OncekeyError, REGISTRY, RecordCorrupt, StoreUnavailable } from "../../src/errors.ts";
import type { Reply } from "../../src/http/exchange.ts";
import { problem } from "../../src/http/problems.ts";
import * as replies from "../../src/http/replies.ts";
import { answerOf, claimOf, httpIdentity } from "../stores/sample.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/reference/errors.md"), "utf8");
const sections = new Map(
  page
    .split(/^## /m)
    .slice(2)
    .map((section) => [section.split("\n", 1)[0] ?? "", section] as const),
);
const codes = Object.keys(REGISTRY).filter(isCode);

function isCode(name: string): name is ErrorCode {
  return name in REGISTRY;
}

describe("registry, page and answers say the same", () => {
  test("every code has a heading, and every heading is a code", () => {
    expect([...sections.keys()]).toEqual(codes);
  });

  test.each(codes)("the page states retry and effect of %s as the registry has them", (code) => {
    const { retry, effect, status } = REGISTRY[code];
    const [, , line = ""] = sections.get(code)?.split("\n") ?? [];
    const where = line.startsWith("Answer") ? `Answer ${status}` : line.split(" ·", 1)[0];
    expect(line).toBe(`${where} · retry ${retry} · effect ${effect}`);
    expect(where).toMatch(/^(Answer \d{3}|Error|Reserved)$/);
  });

  test.each(codes)("the page tells of %s what happened and what to do", (code) => {
    for (const part of ["What happened", "What a client does", "What an operator does"]) {
      expect(sections.get(code)).toMatch(new RegExp(`^\\*\\*${part}\\.\\*\\* [A-Z]`, "m"));
    }
  });

  test("what the page calls an answer is what the code answers, and nothing else", () => {
    const called = codes.filter((code) => /^Answer/m.test(sections.get(code) ?? ""));
    expect([...answered()].sort()).toEqual([...called].sort());
  });

  test("an error's docs lead to its heading", () => {
    for (const code of codes) {
      const [file = "", anchor = ""] = new OncekeyError(code, "").docs.split("#");
      expect([file, sections.has(anchor)]).toEqual(["docs/reference/errors.md", true]);
    }
  });
});

/** The codes that the library's HTTP part makes problems of. */
function answered(): ReadonlySet<string> {
  const folder = join(root, "src/http");
  const source = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  const calls = source.matchAll(/\b(?:problem\(|refuse\(operation, )"(\w+)"/g);
  return new Set([...calls].map(([, code]) => code ?? ""));
}

const version = { attempt: 1, revision: 1, updatedAt: Date.parse("2026-11-30T12:00:00Z") };
const running = stamp(claimOf(httpIdentity("k"), { correlationId: "req-1" }), version);
const writeId = "w";
const answer = answerOf(new Uint8Array(1), [
  ["location", "/1"],
  ["content-type", "a/b"],
  ["cache-control", "private"],
  ["etag", '"1"'],
]);

function moved(state: KeyRecord["state"]): KeyRecord {
  if (running.state !== "in_progress") throw new Error("A claim is running.");
  switch (state) {
    case "in_progress":
      return running;
    case "completed":
    case "failed_permanent":
      return stamp(
        conclude(running, { writeId, state, answer, keep: { retainMs: 1, tombstoneMs: null } }),
        version,
      );
    case "released":
      return stamp(release(running, { writeId, retainMs: 1 }), version);
    case "unknown": {
      const told = { evidence: { reason: "r", result: null }, nextLookAt: null } as const;
      const change = { writeId, doubt: { ...told, disposition: "hold" }, heldRetainMs: 1 } as const;
      return stamp(doubt(running, change), version);
    }
  }
}

function endedOf(state: "completed" | "failed_permanent") {
  const record = moved(state);
  if (record.state !== "completed" && record.state !== "failed_permanent")
    throw new Error("It has finished.");
  return record;
}

const answers: readonly (readonly [string, Reply])[] = [
  ...(
    [
      { kind: "in_progress", record: running, retryAfterMs: 1_999 },
      { kind: "in_progress", record: null, retryAfterMs: 1 },
      { kind: "mismatch", record: moved("in_progress") },
      { kind: "mismatch", record: moved("released") },
      { kind: "mismatch", record: moved("unknown") },
      { kind: "mismatch", record: moved("completed") },
      { kind: "mismatch", record: moved("failed_permanent") },
      { kind: "unverifiable", record: running },
      { kind: "outcome_unknown", record: moved("unknown"), retryAfterMs: null },
      { kind: "outcome_unknown", record: moved("unknown"), retryAfterMs: 5_000 },
      { kind: "response_not_stored", record: moved("completed"), answer: { ...answer, body: null } },
      { kind: "expired", record: endedOf("completed") },
      { kind: "expired", record: endedOf("failed_permanent") },
      { kind: "store_unavailable", error: new StoreUnavailable("host 10.0.0.1") },
      { kind: "record_corrupt", error: new RecordCorrupt("column answer") },
      { kind: "draining" },
    ] satisfies readonly Answered[]
  ).map((each) => [each.kind, replies.replyToAnswered(each)] as const),
  ["loser of nothing", replies.replyToLoser(null)],
  ["loser of a doubt", replies.replyToLoser(moved("unknown"))],
  ["unkept", replies.unkept()],
  ["not performed", replies.notPerformed()],
  ["no keys here", replies.notSupported()],
  ["not for this caller", replies.forbidden()],
  ["for who knows whom", replies.unauthorised()],
  ["undone in time", replies.undoneInTime()],
  ["undone by the store", replies.undoneByStore()],
];

describe("a problem", () => {
  test.each(answers)("of %s says its code, what to do with the key, and no internal text", (_, reply) => {
    const text = new TextDecoder().decode(reply.body);
    const { type, title, status, detail, code, retry, effect, docs } = JSON.parse(text);
    expect(isCode(code)).toBe(true);
    expect([type, status]).toEqual([`urn:oncekey:error:${code}`, reply.status]);
    expect(title).toBe(isCode(code) ? REGISTRY[code].title : "");
    expect(["same_key", "same_key_later", "never"]).toContain(retry);
    expect(["none", "done", "maybe"]).toContain(effect);
    expect(sections.has(docs.split("#")[1])).toBe(true);
    expect(detail).toMatch(/[.]$/);
    if (code !== "key_reused" && code !== "key_expired" && effect !== "none")
      expect(detail).toMatch(/new key would|do not use a new key/);
    expect(text).not.toMatch(/10\.0\.0\.1|column answer/);
    const names = reply.headers.map(([name]) => name);
    expect(new Set(names).size, "every header once").toBe(names.length);
    expect(reply.headers).toContainEqual(["content-type", "application/problem+json"]);
    expect(reply.headers).toContainEqual(["cache-control", "no-store"]);
    const [, seconds] = reply.headers.find(([name]) => name === "retry-after") ?? [];
    if (seconds !== undefined) expect(seconds).toMatch(/^[1-9]\d*$/);
    expect(seconds === undefined, "a time to come back says that coming back helps").toBe(retry === "never");
  });

  test("names the first request, so that one search answers a support question", () => {
    const reply = replies.replyToAnswered({ kind: "mismatch", record: running });
    expect(JSON.parse(new TextDecoder().decode(reply.body))).toMatchObject({
      firstRequestAt: "2026-11-30T12:00:00.000Z",
      firstCorrelationId: "req-1",
      firstRequest: "is still running",
    });
  });

  test("of an answer that was not kept has its status, and its headers but for those of the body", () => {
    const told: Answered = { kind: "response_not_stored", record: moved("completed"), answer };
    const { headers, body } = replies.replyToAnswered(told);
    expect(JSON.parse(new TextDecoder().decode(body))).toMatchObject({ originalStatus: 201 });
    expect(headers.filter(([name]) => !/^(content-type|cache-control)$/.test(name))).toEqual([
      ["location", "/1"],
    ]);
  });

  test("rounds a time to come back down to whole seconds, and never to 0", () => {
    const after = (retryAfterMs: number) =>
      problem("in_progress", { detail: "", retryAfterMs }).headers.find(
        ([name]) => name === "retry-after",
      )?.[1];
    expect([0, 999, 1_000, 1_999, 60_000].map(after)).toEqual(["1", "1", "1", "1", "60"]);
  });
});
