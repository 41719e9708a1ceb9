/** Reads a copy of a body, the original staying unread. One longer than `maxBytes` is read no further than that. */
export async function copiedBytes(message: Request, maxBytes: number): Promise<Uint8Array> {
  const copy = message.clone();
  if (copy.body === null) return new Uint8Array(0);
  // What declares its length cannot be longer; the guard has looked at that.
  if (message.headers.has("content-length")) return new Uint8Array(await copy.arrayBuffer());
  const reader = copy.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size <= maxBytes) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    chunks.push(value);
    size += value.length;
  }
  // Settles only once the original is done with, too.
  void reader.cancel().catch(() => {});
  return Buffer.concat(chunks);
}
