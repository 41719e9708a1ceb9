import type { Aborting } from "../engine/aborting.ts";

/** What a body came to. */
export type Recorded =
  | { readonly kind: "whole"; readonly body: Uint8Array<ArrayBuffer> }
  /** It ended, and was longer than may be kept. */
  | { readonly kind: "too_long" }
  /** It failed, or was stopped, before its end. */
  | { readonly kind: "broken"; readonly error: unknown };

/** A body while it is read, whoever else reads along. */
export interface Recording {
  /** Never rejects. Does not depend on a client that reads slowly or hangs up, as long as the body can be kept. */
  readonly ended: Promise<Recorded>;
  /** Sends what was read and the rest as it comes; the end only where `isKept`, which must not throw, says so. */
  readonly flow: (isKept: (recorded: Recorded) => Promise<boolean>) => ReadableStream<Uint8Array>;
}

/**
 * Reads a body at once and to its end, and keeps up to `maxBytes` of it. A longer one is read no faster than its client
 * takes it, so that memory stays bounded whatever a handler sends. An abort stops the reading.
 */
export function record(body: ReadableStream<Uint8Array>, { maxBytes, length, aborting }: Limits): Recording {
  const reader = body.getReader();
  const outlet = createOutlet(length);
  let stopped: { readonly reason: unknown } | null = null;
  const stop = () => {
    const reason = aborting.reason();
    stopped = { reason };
    reader.cancel(reason).catch(() => {}); // its source is of no interest any more, and nor is its failure
  };
  const read = async (): Promise<Recorded> => {
    const kept: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (stopped !== null) return { kind: "broken", error: stopped.reason };
      if (done) return size > maxBytes ? { kind: "too_long" } : { kind: "whole", body: joined(kept, size) };
      const chunk = bytesOf(value);
      size += chunk.length;
      outlet.put(chunk);
      if (size <= maxBytes) kept.push(chunk);
      else await outlet.room();
    }
  };
  const deaf = aborting.onAbort(stop);
  if (aborting.isAborted()) stop();
  const ended = read()
    .catch((error: unknown): Recorded => ({ kind: "broken", error }))
    .finally(deaf);
  return { ended, flow: (isKept) => outlet.open(ended.then(isKept)) };
}

export interface Limits {
  readonly maxBytes: number;
  /** What the answer's headers promise, so that the last byte can be told; `null` where they do not. */
  readonly length: number | null;
  readonly aborting: Aborting;
}

/** Where a client reads along. */
interface Outlet {
  readonly put: (chunk: Uint8Array) => void;
  /** Settles when the client has room for more, or reads no more. */
  readonly room: () => Promise<void>;
  /** The end comes, or is cut off, when `end` says whether the answer is complete. */
  readonly open: (end: Promise<boolean>) => ReadableStream<Uint8Array>;
}

function createOutlet(length: number | null): Outlet {
  const last = lastByte(length);
  const gate = createGate();
  const waiting: Uint8Array[] = [];
  let sink: ReadableStreamDefaultController<Uint8Array> | null = null;
  let gone = false;
  const send = (chunk: Uint8Array) => {
    if (gone || chunk.length === 0) return;
    if (sink === null) waiting.push(chunk);
    else sink.enqueue(chunk);
  };
  const finish = (complete: boolean) => {
    if (gone) return;
    if (!complete) return sink?.error(new Error(CUT));
    for (const chunk of last.held()) send(chunk);
    sink?.close();
  };
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    sink = controller;
    for (const chunk of waiting.splice(0)) send(chunk);
  };
  // A client that hangs up does not stop the work: the rest is read all the same.
  const cancel = () => {
    gone = true;
    gate.open();
  };
  const full = () => !gone && (sink === null || (sink.desiredSize ?? 0) <= 0);
  return {
    put: (chunk) => send(last.before(chunk)),
    room: async () => {
      while (full()) await gate.opened();
    },
    open: (end) => {
      const stream = new ReadableStream<Uint8Array>({ start, pull: gate.open, cancel });
      void end.then(finish);
      return stream;
    },
  };
}

/** Where one waits until another lets it on. */
function createGate(): { readonly opened: () => Promise<void>; readonly open: () => void } {
  let letOn = () => {};
  const opened = () =>
    new Promise<void>((resolve) => {
      letOn = resolve;
    });
  return { opened, open: () => letOn() };
}

/** What the server hears, and may even send: no error's own text. */
const CUT = "The answer could not be kept or completed, so its end is not sent.";

/** Holds back the byte that ends an answer of known length: its receiver does not wait for a close. */
function lastByte(length: number | null): {
  readonly before: (chunk: Uint8Array) => Uint8Array;
  readonly held: () => readonly Uint8Array[];
} {
  const held: Uint8Array[] = [];
  let passed = 0;
  return {
    before: (chunk) => {
      passed += chunk.length;
      if (length === null || passed < length || chunk.length === 0) return chunk;
      const whole = held.length === 0 ? chunk : joined([...held.splice(0), chunk], chunk.length + 1);
      held.push(whole.subarray(-1));
      return whole.subarray(0, -1);
    },
    held: () => held,
  };
}

/** Streams of text are no bytes to Fetch, and are sent by servers all the same. */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return new TextEncoder().encode(chunk);
  throw new TypeError("A response's body had a chunk that is neither bytes nor text.");
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.length;
  }
  return body;
}
