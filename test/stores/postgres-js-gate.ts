import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../support/processes.ts";

/** A port in front of a server that can be shut, as a server's is that restarts, and opened again. */
export interface Gate {
  readonly url: string;
  /** Cuts every connection and refuses new ones. */
  readonly shut: () => Promise<void>;
  readonly reopen: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Listens on a port of its own and passes everything on to where the URL leads. */
export async function openGate(url: string): Promise<Gate> {
  const target = new URL(url);
  const port = await freePort();
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  const pass = (client: Socket) => {
    const upstream = connect(Number(target.port), target.hostname);
    const end = () => [client, upstream].forEach((socket) => void socket.destroy());
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.pipe(upstream).pipe(client);
  };
  const reopen = async () => {
    server = createServer(pass);
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  const shut = async () => {
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    server = undefined;
    await closed;
  };
  await reopen();
  const through = new URL(url);
  through.host = `127.0.0.1:${port}`;
  return { url: through.href, shut, reopen, close: shut };
}
