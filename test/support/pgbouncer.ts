import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort, type StartedProcess, startProcess, until } from "./processes.ts";

/** What a run knows about PgBouncer: where it is, or why there is none. */
export type PgbouncerService =
  | { readonly kind: "installed"; readonly command: string; readonly version: string }
  | { readonly kind: "missing"; readonly reason: string };

declare module "vitest" {
  interface ProvidedContext {
    readonly pgbouncer: PgbouncerService;
  }
}

/** A pooler of a test's own. */
export interface Pgbouncer {
  /** Leads through the pooler to where the given URL leads. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

export interface PgbouncerOptions {
  readonly command: string;
  /** The database behind it. */
  readonly url: string;
  /** How many sessions of the server all its clients share. */
  readonly poolSize: number;
}

/** Looks for PgBouncer; starts nothing that stays. */
export function findPgbouncer({ path }: { readonly path: string | undefined }): PgbouncerService {
  const folders = [...(path ?? "").split(delimiter).filter((folder) => folder !== ""), ...SYSTEM_FOLDERS];
  const command = folders.map((folder) => join(folder, "pgbouncer")).find(existsSync);
  if (command === undefined) {
    return { kind: "missing", reason: "pgbouncer is not installed (Debian: apt-get install pgbouncer)" };
  }
  const { stdout, status, error } = spawnSync(command, ["--version"], { encoding: "utf8" });
  const [, version] = /^PgBouncer (\S+)/m.exec(stdout ?? "") ?? [];
  if (version !== undefined) return { kind: "installed", command, version };
  const reason = error?.message ?? `it told no version, and ended with code ${status}`;
  return { kind: "missing", reason: `${command} cannot be used: ${reason}` };
}

/**
 * Starts a private PgBouncer in transaction mode on a free port of 127.0.0.1. It is given nothing but what it needs:
 * it resets no session, and ignores no parameter that a client sends.
 */
export async function startPgbouncer(options: PgbouncerOptions): Promise<Pgbouncer> {
  const { port, process } = await launch(options, ATTEMPTS);
  const through = new URL(options.url);
  through.host = `127.0.0.1:${port}`;
  return {
    url: through.href,
    stop: async () => {
      process.kill("SIGTERM"); // ends at once, and its connections with it
      await process.exited;
    },
  };
}

/** Debian keeps it where only root's PATH leads. */
const SYSTEM_FOLDERS: readonly string[] = ["/usr/sbin", "/usr/local/sbin"];

/** Somebody else may take the port between our looking and its binding. */
const ATTEMPTS = 3;

interface Launched {
  readonly port: number;
  readonly process: StartedProcess;
}

async function launch(options: PgbouncerOptions, attempts: number): Promise<Launched> {
  const port = await freePort();
  const process = await startConfigured(options.command, configuration(options, port));
  if (isUp(process)) return { port, process };
  if (attempts > 1 && process.stderr.some((line) => line.includes("Address already in use"))) {
    return launch(options, attempts - 1);
  }
  throw new Error(`PgBouncer ended before it listened:\n${process.stderr.join("\n")}`);
}

/** Resolves once it listens or has ended. */
async function startConfigured(command: string, text: string): Promise<StartedProcess> {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-pgbouncer-"));
  try {
    const file = join(folder, "pgbouncer.ini");
    writeFileSync(file, text);
    const process = await startProcess({ command, args: [file] });
    let ended = false;
    void process.exited.then(() => {
      ended = true;
    });
    await until(() => isUp(process) || ended);
    return process;
  } finally {
    // It reads its file once, when it starts; so not even a killed test leaves a folder behind.
    rmSync(folder, { recursive: true, force: true });
  }
}

function isUp({ stderr }: StartedProcess): boolean {
  return stderr.some((line) => line.includes("process up"));
}

function configuration({ url, poolSize }: PgbouncerOptions, port: number): string {
  const { hostname, port: serverPort, username, password } = new URL(url);
  const server = {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: serverPort === "" ? "5432" : serverPort,
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
  const given = Object.entries(server).filter(([, value]) => value !== "");
  return [
    "[databases]",
    `* = ${given.map(([name, value]) => `${name}='${value.replaceAll("'", "''")}'`).join(" ")}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 300",
    "log_connections = 0",
    "log_disconnections = 0",
    // It refuses to be root, and puts this account in root's place by itself.
    ...(globalThis.process.getuid?.() === 0 ? ["user = nobody"] : []),
    "",
  ].join("\n");
}
