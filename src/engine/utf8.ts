/** Of short texts many share one block of memory, as `Buffer` has it; a `TextEncoder` asks for one each. */
export function utf8(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text);
  return new Uint8Array(buffer, byteOffset, byteLength);
}
