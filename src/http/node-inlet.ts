/** Where a response's chunks go in while somebody reads them. */
export interface Inlet {
  readonly body: ReadableStream<Uint8Array>;
  /** False where the writer had better wait for `onRoom`. */
  readonly put: (chunk: Uint8Array) => boolean;
  readonly close: () => void;
  readonly fail: (error: unknown) => void;
}

/** As much as Node itself lets wait for a slow client before it asks a writer to pause. */
const HIGH_WATER_BYTES = 16_384;

export function createInlet(onRoom: () => void): Inlet {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  let over = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start: (own) => {
        controller = own;
      },
      pull: onRoom,
      // Whoever still writes goes on as if it was sent: nobody listens any more.
      cancel: () => {
        over = true;
        onRoom();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }),
  );
  const once = (end: () => void) => {
    if (!over) end();
    over = true;
  };
  return {
    body,
    put: (chunk) => {
      if (over) return true;
      if (chunk.length > 0) controller?.enqueue(chunk);
      return (controller?.desiredSize ?? 0) > 0;
    },
    close: () => once(() => controller?.close()),
    fail: (error) => once(() => controller?.error(error)),
  };
}

/** A body that fails as soon as it is read. */
export function failing(error: unknown): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.error(error) });
}
