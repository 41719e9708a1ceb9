import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** From the client to the target, or back. */
export type Direction = "request" | "reply";

/** How a side hears that it is cut off: by RST, as from a peer that is gone, or by FIN, as from one that is done. */
export type Ending = "reset" | "fin";

/** What may become of a chunk, and with it of its connection. An `ending` that is not given is a reset. */
export type Fault =
  /** Passed on `ms` later; what follows it in its direction waits behind it. */
  | { readonly kind: "delay"; readonly ms: number }
  /** Withheld until `release`, with all that follows it, the end too. Its sender may be long gone by then. */
  | { readonly kind: "hold" }
  /** Not passed on; both sides are cut off. */
  | { readonly kind: "cut_before"; readonly ending?: Ending }
  /** Passed on. Its sender hears nothing more and is cut off; its receiver is ended with FIN, so that it surely reads it. */
  | { readonly kind: "cut_after"; readonly ending?: Ending }
  /**
   * Passed on, if it is a request; whatever the target sends from now on is dropped, its end too. The client is cut off
   * `cutAfterMs` after the first that was dropped, so 0 means once the target has answered; else it is left hanging.
   */
  | { readonly kind: "swallow_reply"; readonly cutAfterMs?: number; readonly ending?: Ending }
  /** Passed on; then this direction is ended with FIN and what still comes in it is dropped. The other stays open. */
  | { readonly kind: "half_close"; readonly direction: Direction };

export interface LinkOptions {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Judges a chunk before it is passed on. If it throws, the connection is cut and `failed` is told. */
  readonly faultFor: (direction: Direction, chunk: Buffer) => Fault | undefined;
  readonly failed: (failure: unknown) => void;
  /** Resolves when what is held may go on, or at the signal. */
  readonly hold: (signal: AbortSignal) => Promise<void>;
  readonly happened: (kind: Fault["kind"]) => void;
}

/** One connection through the proxy: a socket on either side. */
export interface Link {
  /** Resets both sides. */
  readonly cut: () => void;
  /** Resolves when both sockets are closed and nothing waits. */
  readonly over: Promise<void>;
}

/** Passes on what comes from either side; each direction reads its next chunk only when the last one has left. */
export function openLink({ client, upstream, ...rest }: LinkOptions): Link {
  const wire: Wire = {
    ...rest,
    sides: {
      request: { source: client, target: upstream },
      reply: { source: upstream, target: client },
    },
    dropping: new Set(),
    swallowing: new Set(),
    cutOff: new AbortController(),
  };
  const closed = [client, upstream].map((socket) => {
    socket.on("error", () => {}); // The direction that reads from this socket meets the error too, and acts on it.
    return new Promise((resolve) => socket.once("close", resolve));
  });
  const over = Promise.all([...closed, carry(wire, "request"), carry(wire, "reply")]);
  return {
    cut: () => cut(wire),
    over: over.then(() => {}),
  };
}

type Swallow = Extract<Fault, { readonly kind: "swallow_reply" }>;

type Wire = Omit<LinkOptions, "client" | "upstream"> & {
  readonly sides: Readonly<Record<Direction, { readonly source: Socket; readonly target: Socket }>>;
  /** The directions of which nothing is passed on any more, neither bytes nor the end. */
  readonly dropping: Set<Direction>;
  /** The fault that waits for its first dropped reply. */
  readonly swallowing: Set<Swallow>;
  readonly cutOff: AbortController;
};

async function carry(wire: Wire, direction: Direction): Promise<void> {
  const { source, target } = wire.sides[direction];
  let ending: Ending = "fin";
  try {
    for await (const each of source.iterator({ destroyOnReturn: false })) {
      const chunk: Buffer = each;
      if (wire.dropping.has(direction)) drop(wire, direction, "bytes");
      else await pass(wire, direction, chunk);
    }
  } catch {
    ending = "reset"; // The source was reset, or never connected: the other side hears of it likewise.
  }
  if (wire.dropping.has(direction)) drop(wire, direction, "end");
  else end(target, ending);
}

async function pass(wire: Wire, direction: Direction, chunk: Buffer): Promise<void> {
  const fault = judged(wire, direction, chunk);
  switch (fault?.kind) {
    case undefined:
      return void (await forward(wire, direction, chunk));
    case "delay":
      wire.happened("delay");
      await pause(wire, fault.ms);
      return void (await forward(wire, direction, chunk));
    case "hold":
      wire.happened("hold");
      await wire.hold(wire.cutOff.signal);
      return void (await forward(wire, direction, chunk));
    case "cut_before":
      return cutBefore(wire, direction, fault.ending ?? "reset");
    case "cut_after":
      return await cutAfter(wire, direction, chunk, fault.ending ?? "reset");
    case "swallow_reply":
      return await swallowReply(wire, direction, chunk, fault);
    case "half_close":
      await forward(wire, direction, chunk);
      return halfClose(wire, fault.direction);
  }
}

function judged(wire: Wire, direction: Direction, chunk: Buffer): Fault | undefined {
  try {
    return wire.faultFor(direction, chunk);
  } catch (failure) {
    wire.failed(failure);
    cut(wire);
    return undefined;
  }
}

/** Says whether the bytes left; resolves only then, which is what makes a fast sender wait for a slow receiver. */
async function forward(wire: Wire, direction: Direction, chunk: Buffer): Promise<boolean> {
  if (wire.dropping.has(direction)) return false;
  const { source, target } = wire.sides[direction];
  const left =
    target.writable &&
    (await new Promise<boolean>((resolve) => target.write(chunk, (error) => resolve(!error))));
  if (left || wire.dropping.has(direction)) return left;
  wire.dropping.add(direction);
  end(source, "reset");
  return false;
}

function cutBefore(wire: Wire, direction: Direction, ending: Ending): void {
  const { source, target } = wire.sides[direction];
  wire.happened("cut_before");
  sever(wire);
  end(source, ending);
  end(target, ending);
}

async function cutAfter(wire: Wire, direction: Direction, chunk: Buffer, ending: Ending): Promise<void> {
  const { source, target } = wire.sides[direction];
  // The answer may come before we hear that the chunk has left.
  wire.dropping.add(direction === "request" ? "reply" : "request");
  if (await forward(wire, direction, chunk)) wire.happened("cut_after");
  sever(wire);
  end(source, ending);
  end(target, "fin");
}

async function swallowReply(wire: Wire, direction: Direction, chunk: Buffer, fault: Swallow): Promise<void> {
  wire.dropping.add("reply");
  wire.swallowing.add(fault);
  if (direction === "reply") drop(wire, direction, "bytes");
  else await forward(wire, direction, chunk);
}

/** Only bytes count as a reply that was swallowed; an end that was swallowed still starts the client's last wait. */
function drop(wire: Wire, direction: Direction, what: "bytes" | "end"): void {
  if (direction === "request") return;
  for (const { cutAfterMs, ending = "reset" } of wire.swallowing) {
    if (what === "bytes") wire.happened("swallow_reply");
    if (cutAfterMs !== undefined) void cutLater(wire, cutAfterMs, ending);
  }
  wire.swallowing.clear();
}

async function cutLater(wire: Wire, ms: number, ending: Ending): Promise<void> {
  if (ms > 0) await pause(wire, ms);
  const { source: client, target: upstream } = wire.sides.request;
  sever(wire);
  end(client, ending);
  end(upstream, "fin");
}

function halfClose(wire: Wire, direction: Direction): void {
  const { target } = wire.sides[direction];
  if (wire.dropping.has(direction) || !target.writable) return;
  wire.dropping.add(direction);
  target.once("finish", () => wire.happened("half_close"));
  target.end();
}

function cut(wire: Wire): void {
  const { source: client, target: upstream } = wire.sides.request;
  sever(wire);
  end(client, "reset");
  end(upstream, "reset");
}

/** From here on nothing is passed on and nothing waits. */
function sever(wire: Wire): void {
  wire.dropping.add("request").add("reply");
  wire.swallowing.clear();
  wire.cutOff.abort();
}

async function pause(wire: Wire, ms: number): Promise<void> {
  try {
    await sleep(ms, undefined, { signal: wire.cutOff.signal });
  } catch {
    // The connection was cut off meanwhile, which is all that can interrupt a wait.
  }
}

function end(socket: Socket, ending: Ending): void {
  if (socket.destroyed) return;
  if (ending === "fin") socket.end();
  // The system refuses to reset what is still connecting, or still sending its last bytes before a FIN.
  else if (socket.connecting || (socket.writableEnded && !socket.writableFinished)) socket.destroy();
  else socket.resetAndDestroy();
}
