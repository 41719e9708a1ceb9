import type { KeyRecord } from "./record.ts";

/**
 * What a sealed value begins with: encrypted, and of use only to who has its key. Nothing else that an attempt keeps
 * begins so, since it is text and 0xff is in no UTF-8.
 */
export const SEALED_MARK: readonly number[] = [0xff, 0x6f, 0x6b, 0x73];

export function isSealed(value: Uint8Array): boolean {
  return SEALED_MARK.every((byte, index) => value[index] === byte);
}

/** Where the version of a sealed value stands; behind it the length of its key's id, and the id. */
export const VERSION_AT: number = SEALED_MARK.length;

/** The id of the key that sealed a value, as the value says it. */
export function keyIdOf(sealed: Uint8Array): string {
  const from = VERSION_AT + 2;
  return String.fromCharCode(...sealed.subarray(from, from + (sealed[from - 1] ?? 0)));
}

/**
 * True where an attempt that took this record over, or a worker that asked its provider, would have to read what it
 * cannot. An answer does not count: that it cannot be read is a state of its own, "not stored".
 */
export function holdsSealed(record: KeyRecord): boolean {
  const { reference, steps } = record;
  const kept = [...steps.values()].map((step) => ("result" in step ? step.result : null));
  const said = record.state === "unknown" ? record.evidence.result : null;
  return [reference, said, ...kept].some((value) => value !== null && isSealed(value));
}
