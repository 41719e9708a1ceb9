/**
 * What a sealed value begins with: encrypted, and of use only to who has its key. Nothing else that an attempt keeps
 * begins so, since it is text and 0xff is in no UTF-8.
 */
export const SEALED_MARK: readonly number[] = [0xff, 0x6f, 0x6b, 0x73];

export function isSealed(value: Uint8Array): boolean {
  return SEALED_MARK.every((byte, index) => value[index] === byte);
}
