import { nodeError } from "./node-head.ts";

/** A chunk as it was given to `write`, in any of its forms. */
export interface Chunk {
  readonly bytes: Uint8Array;
  readonly done: Callback;
}

type Callback = (error?: Error) => void;

/** `write(chunk)`, `write(chunk, callback)`, `write(chunk, encoding, callback)`. */
export function chunkOf([chunk, second, third]: readonly unknown[]): Chunk {
  const done = callbackOf(second) ?? callbackOf(third) ?? (() => {});
  return { bytes: bytesOf(chunk, second), done };
}

/** `end()`, `end(callback)`, `end(chunk)`, `end(chunk, callback)`, `end(chunk, encoding, callback)`. */
export function endOf([first, second, third]: readonly unknown[]): {
  readonly chunk: Chunk | null;
  readonly callback: Callback | null;
} {
  const own = callbackOf(first);
  if (own !== null) return { chunk: null, callback: own };
  const callback = callbackOf(second) ?? callbackOf(third);
  const nothing = first === undefined || first === null || first === "";
  return { chunk: nothing ? null : chunkOf([first, second, third]), callback };
}

function bytesOf(chunk: unknown, encoding: unknown): Uint8Array {
  if (chunk === null) {
    throw nodeError(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
  }
  // A copy: whoever wrote it may use its buffer again.
  if (chunk instanceof Uint8Array) return new Uint8Array(chunk);
  if (typeof chunk === "string") return Buffer.from(chunk, isEncoding(encoding) ? encoding : "utf8");
  const message = 'The "chunk" argument must be of type string or an instance of Buffer or Uint8Array.';
  throw nodeError(TypeError, "ERR_INVALID_ARG_TYPE", message);
}

function isEncoding(value: unknown): value is BufferEncoding {
  return typeof value === "string" && Buffer.isEncoding(value);
}

function callbackOf(value: unknown): Callback | null {
  return isCallback(value) ? value : null;
}

function isCallback(value: unknown): value is Callback {
  return typeof value === "function";
}
