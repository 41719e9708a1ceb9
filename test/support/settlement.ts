import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import { freshPostgresDatabase, freshSqliteFile } from "./databases.ts";
import { freePort, type StartedProcess, startProcess } from "./processes.ts";

/** A running process of the settlement example. */
export interface Settlement {
  readonly url: string;
  readonly process: StartedProcess;
}

/** What came back for one request; `null` where the connection died without an answer. */
export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface Database {
  readonly url: string;
  readonly remove: () => Promise<void>;
}

const MAIN = fileURLToPath(new URL("../../examples/settlement/dist/main.js", import.meta.url));
const BANK = fileURLToPath(new URL("../../examples/settlement/dist/bank/main.js", import.meta.url));

export async function freshDatabase(kind: "SQLite" | "PostgreSQL"): Promise<Database> {
  if (kind === "PostgreSQL") {
    const { url, drop } = await freshPostgresDatabase();
    return { url, remove: drop };
  }
  const { path, remove } = freshSqliteFile();
  return { url: `sqlite:${path}`, remove: async () => remove() };
}

/** Starts the service; its output stays readable on `process`. */
export async function startSettlement(env: Readonly<Record<string, string>>): Promise<Settlement> {
  const port = env["PORT"] ?? String(await freePort());
  const process = await startProcess({
    command: globalThis.process.execPath,
    args: [MAIN],
    env: { NODE_ENV: undefined, ...env, PORT: port },
    readyWhen: /http:\/\//,
  });
  const url = `http://127.0.0.1:${port}`;
  await answering(`${url}/healthz`);
  return { url, process };
}

/** Starts a stand-alone bank with a ledger of its own in `dataDir`. */
export async function startBankProcess(dataDir: string): Promise<Settlement> {
  const port = String(await freePort());
  const process = await startProcess({
    command: globalThis.process.execPath,
    args: [BANK],
    env: { PORT: port, DATA_DIR: dataDir },
    readyWhen: /http:\/\//,
  });
  return { url: `http://127.0.0.1:${port}`, process };
}

async function answering(url: string): Promise<void> {
  for (let tried = 0; tried < 200; tried++) {
    const response = await fetch(url).catch(() => null);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${url} did not answer.`);
}

const agent = new Agent({ keepAlive: true, maxSockets: 512 });

/** Sends one request over a real socket; `null` says that the connection died before an answer was whole. */
export function send(
  url: string,
  {
    method = "POST",
    key,
    token = "demo-alice",
    body,
  }: { readonly method?: string; readonly key?: string; readonly token?: string; readonly body?: unknown },
): Promise<Received | null> {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (key !== undefined) headers["idempotency-key"] = key;
  if (body !== undefined) headers["content-type"] = "application/json";
  return new Promise((resolve) => {
    const sent = request(url, { method, headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => resolve(null));
      response.on("end", () => {
        if (!response.complete) return resolve(null);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    sent.on("error", () => resolve(null));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
