import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { Ending } from "./fault-link.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "./fault-proxy.ts";
import { until } from "./processes.ts";

const opened: (() => Promise<void>)[] = [];

/** Closes, last first, what this file opened. */
export async function closePeers(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close();
}

function closeLater(close: () => Promise<void>): void {
  opened.push(close);
}

/** A proxy that ends with its test. */
export async function startProxy(options: FaultProxyOptions<never>): Promise<FaultProxy<never>> {
  const proxy = await startFaultProxy(options);
  closeLater(proxy.close);
  return proxy;
}

/** The echo service behind such a proxy. */
export async function proxiedEcho(options: EchoOptions = {}) {
  const echo = await startEcho(options);
  const proxy = await startProxy({ target: { port: echo.port } });
  return { echo, proxy };
}

/** A connection, and what has been heard on it. */
type Dialled = {
  readonly socket: Socket;
  readonly bytes: () => Buffer;
  readonly text: () => string;
  /** How the other side ended it, if it did. */
  readonly ended: () => Ending | undefined;
};

/** Opens a connection that stays open for its own part when the other side ends. */
export function dial(port: number): Dialled {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const heard = listenTo(socket);
  closeLater(async () => void socket.destroy());
  return { socket, ...heard };
}

function listenTo(socket: Socket): Omit<Dialled, "socket"> {
  const chunks: Buffer[] = [];
  let ended: Ending | undefined;
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("end", () => {
    ended = "fin";
  });
  socket.on("error", () => {
    ended = "reset";
  });
  const bytes = () => Buffer.concat(chunks);
  return { bytes, text: () => bytes().toString(), ended: () => ended };
}

/** A connection that has said hello and heard it back. */
export async function greeted({ port }: { readonly port: number }): Promise<Dialled> {
  const client = dial(port);
  client.socket.write("hello");
  await until(() => client.text() === "hello");
  return client;
}

type EchoOptions = { readonly endsWithClient?: boolean };

/** A service that says back what it is told, and remembers it over all connections. */
export async function startEcho({ endsWithClient = true }: EchoOptions = {}) {
  const sockets: Socket[] = [];
  const heard: Omit<Dialled, "socket">[] = [];
  let muted = false;
  const port = await serve((socket) => {
    sockets.push(socket);
    heard.push(listenTo(socket));
    socket.on("data", (chunk) => muted || socket.write(chunk));
    socket.on("end", () => endsWithClient && socket.end());
  });
  return {
    port,
    text: () => heard.map((each) => each.text()).join(""),
    ended: () => heard.flatMap((each) => each.ended() ?? []),
    open: () => sockets.filter((socket) => !socket.destroyed).length,
    say: (text: string) => sockets.at(-1)?.write(text),
    mute: () => {
      muted = true;
    },
    endAll: () => sockets.map((socket) => socket.end()),
    resetAll: () => sockets.map((socket) => socket.resetAndDestroy()),
  };
}

/** A service that sends so many bytes, as fast as they are taken, and ends. */
export async function startFlood(totalBytes: number) {
  const block = Buffer.alloc(2 ** 20);
  let sentBytes = 0;
  const port = await serve((socket) => {
    const send = () => {
      if (sentBytes === totalBytes) return void socket.end();
      socket.write(block, (error) => {
        if (error) return;
        sentBytes += block.length;
        send();
      });
    };
    socket.on("error", () => {}).resume();
    send();
  });
  return { port, sentBytes: () => sentBytes };
}

async function serve(meet: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    meet(socket);
  });
  closeLater(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  return address.port;
}
