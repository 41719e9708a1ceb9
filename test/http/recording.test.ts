import { describe, expect, test } from "vitest";
import { createAborting } from "../../src/engine/aborting.ts";
import { record } from "../../src/http/recording.ts";

const KB = 1_024;

/** A body of chunks of 1 KB that says how many were asked for. */
function source(chunks: number) {
  const asked = { chunks: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (asked.chunks === chunks) return controller.close();
        asked.chunks += 1;
        controller.enqueue(new Uint8Array(KB).fill(asked.chunks));
      },
    },
    { highWaterMark: 0 },
  );
  return { body, asked };
}

const kept = async () => true;
const turns = () => new Promise((resolve) => setTimeout(resolve, 20));

describe("a body is recorded", () => {
  test("to its end although nobody reads along, as long as it can be kept", async () => {
    const { body } = source(4);
    const { ended } = record(body, { maxBytes: 4 * KB, length: null, aborting: createAborting() });
    const recorded = await ended;
    expect(recorded).toMatchObject({ kind: "whole" });
    expect(recorded.kind === "whole" && recorded.body.length).toBe(4 * KB);
  });

  test("to its end although its client reads nothing, as long as it can be kept", async () => {
    const { body } = source(100);
    const { ended, flow } = record(body, { maxBytes: 100 * KB, length: null, aborting: createAborting() });
    flow(kept);
    expect(await ended).toMatchObject({ kind: "whole" });
  });

  test("no faster than its client reads, once it is too long: memory stays bounded", async () => {
    const { body, asked } = source(1_000);
    const { ended, flow } = record(body, { maxBytes: 10 * KB, length: null, aborting: createAborting() });
    await turns();
    expect(asked.chunks).toBeLessThan(15);
    const reader = flow(kept).getReader();
    let read = 0;
    for (; read < 100; read += 1) await reader.read();
    await turns();
    expect(asked.chunks).toBeLessThan(115);
    for (; !(await reader.read()).done; read += 1);
    expect(read).toBe(1_000);
    expect(await ended).toEqual({ kind: "too_long" });
  });

  test("to its end when its client has gone, however long it is", async () => {
    const { body, asked } = source(1_000);
    const { ended, flow } = record(body, { maxBytes: 10 * KB, length: null, aborting: createAborting() });
    const client = flow(kept);
    await client.cancel();
    expect(await ended).toEqual({ kind: "too_long" });
    expect(asked.chunks).toBe(1_000);
  });

  test("until it breaks, or is stopped; then its source is told", async () => {
    const failure = new Error("broken");
    const failing = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(failure) });
    const limits = { maxBytes: KB, length: null };
    expect(await record(failing, { ...limits, aborting: createAborting() }).ended).toEqual({
      kind: "broken",
      error: failure,
    });
    let cancelled: unknown = null;
    const endless = new ReadableStream<Uint8Array>({
      cancel: (reason) => {
        cancelled = reason;
      },
    });
    const aborting = createAborting();
    const { ended } = record(endless, { ...limits, aborting });
    aborting.abort(failure);
    expect(await ended).toEqual({ kind: "broken", error: failure });
    expect(cancelled).toBe(failure);
    const stopped = record(source(1).body, { ...limits, aborting });
    expect(await stopped.ended).toEqual({ kind: "broken", error: failure });
  });

  test("as the bytes of a text, and no other chunk is one", async () => {
    const of = (chunk: unknown) =>
      new ReadableStream({
        start: (controller) => {
          controller.enqueue(chunk);
          controller.close();
        },
      });
    const limits = { maxBytes: KB, length: null, aborting: createAborting() };
    expect(await record(of("\u00e9"), limits).ended).toEqual({
      kind: "whole",
      body: Uint8Array.of(0xc3, 0xa9),
    });
    expect(await record(of(7), limits).ended).toMatchObject({ kind: "broken", error: expect.any(TypeError) });
  });
});

describe("what a client gets of it", () => {
  test.each([
    [null, 2],
    [2 * KB, 3],
    [KB, 3],
    [9 * KB, 2],
  ] as const)("with a promised length of %s the last byte waits for the record", async (length, pieces) => {
    const { body } = source(2);
    let keep = (_: boolean) => {};
    const keeping = new Promise<boolean>((resolve) => {
      keep = resolve;
    });
    const { flow } = record(body, { maxBytes: 9 * KB, length, aborting: createAborting() });
    const reader = flow(() => keeping).getReader();
    const got: Uint8Array[] = [];
    const reading = (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        got.push(value);
      }
    })();
    await turns();
    const size = () => got.reduce((sum, chunk) => sum + chunk.length, 0);
    expect(size()).toBe(length !== null && length <= 2 * KB ? 2 * KB - 1 : 2 * KB);
    keep(true);
    await reading;
    expect(size()).toBe(2 * KB);
    expect(Buffer.concat(got).equals(Buffer.concat([Buffer.alloc(KB, 1), Buffer.alloc(KB, 2)]))).toBe(true);
    expect(got.length).toBe(pieces);
  });

  test("is cut off where the record is not kept", async () => {
    const { flow } = record(source(2).body, { maxBytes: 9 * KB, length: null, aborting: createAborting() });
    await expect(new Response(flow(async () => false)).arrayBuffer()).rejects.toThrow(/its end is not sent/);
  });
});
