import { Agent, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { noteOf, type Told } from "./ledger.ts";

/** Sends requests for effects to the server on a port, each over a real socket. */
export function askingAt(port: number): (key: string) => Promise<Told> {
  const agent = new Agent({ keepAlive: true });
  return (key) => {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    return new Promise((resolve) => {
      const sent = request({ port, host: "127.0.0.1", method: "POST", path: "/effects", headers, agent });
      sent.once("response", (response) => resolve(toldBy(response)));
      sent.once("error", (error) => resolve({ kind: isRefused(error) ? "unreached" : "interrupted" }));
      sent.end(JSON.stringify({ note: noteOf(key) }));
    });
  };
}

async function toldBy(response: IncomingMessage): Promise<Told> {
  const { "content-type": type, "idempotent-replayed": replayed } = response.headers;
  try {
    const body = await buffer(response);
    const { statusCode: status = 0 } = response;
    return { kind: "answer", status, type: String(type), body, replayed: replayed === "true" };
  } catch {
    return { kind: "interrupted" };
  }
}

function isRefused(error: Error): boolean {
  return "code" in error && error.code === "ECONNREFUSED";
}
