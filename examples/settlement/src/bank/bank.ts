import { randomUUID } from "node:crypto";
import { once, setMaxListeners } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { isIPv6 } from "node:net";
import { dirname, join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { createBankApp } from "./app.ts";
import { openDatabase } from "./driver.ts";
import { createFaultDesk } from "./fault-desk.ts";
import { createLedger } from "./ledger.ts";

/** Where the bank listens (port 0: any free one) and where it keeps its ledger: a folder, or a file by name. */
export type BankOptions = {
  readonly port: number;
  readonly host?: string;
  readonly now?: () => Date;
  readonly newId?: () => string;
} & ({ readonly dataDir: string } | { readonly path: string });

/** A bank that answers. */
export interface Bank {
  readonly url: string;
  readonly port: number;
  /** Cuts every connection; a payment that was not committed by now never will be. */
  close(): Promise<void>;
}

/** Starts a bank on a durable ledger. It answers when the promise is kept, and prints nothing. */
export async function startBank({
  port,
  host = "127.0.0.1",
  now = () => new Date(),
  newId = randomUUID,
  ...place
}: BankOptions): Promise<Bank> {
  const path = "path" in place ? place.path : join(place.dataDir, "bank.sqlite");
  mkdirSync(dirname(path), { recursive: true });
  const ledger = createLedger(await openDatabase(path));
  const desk = createFaultDesk();
  const closing = new AbortController();
  // Every delayed payment listens for it; Node would warn of a leak at the eleventh.
  setMaxListeners(0, closing.signal);
  const app = createBankApp({ ledger, desk, now, newId, closing: closing.signal });
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  try {
    const boundPort = await listen(server, port, host);
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closed ??= stop(server, closing).then(ledger.close);
      return closed;
    };
    return { url: `http://${isIPv6(host) ? `[${host}]` : host}:${boundPort}`, port: boundPort, close };
  } catch (error) {
    ledger.close();
    throw error;
  }
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The bank listens on no TCP port.");
  return address.port;
}

async function stop(server: Server, closing: AbortController): Promise<void> {
  const closed = once(server, "close");
  closing.abort();
  server.close();
  server.closeAllConnections();
  await closed;
}
