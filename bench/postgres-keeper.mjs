// Keeps a private PostgreSQL, on a free port and in a folder of its own, for as long as its standard input is open. The
// kernel closes that on every way in which whoever started us can die. Prints the server's address once it can be used.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { account, everyoneMayEnter, mustRun, runnableBinaries } from "./postgres-binaries.mjs";

/** Somebody else may take the port between our looking and the server's binding. */
const LAUNCHES = 3;

const [, , connections] = process.argv;
const root = account === undefined || everyoneMayEnter(tmpdir()) ? tmpdir() : "/tmp";
const home = mkdtempSync(join(root, "oncekey-bench-pg-"));
process.stdin.resume();
const released = once(process.stdin, "end");
try {
  await keep();
} finally {
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

async function keep() {
  if (account !== undefined) chownSync(home, account.uid, account.gid);
  const bin = join(runnableBinaries(home), "bin");
  // --no-sync skips only the flush of the empty cluster; the server itself keeps fsync on.
  const cluster = [
    "-D",
    join(home, "data"),
    "-U",
    "postgres",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
  ];
  mustRun(join(bin, "initdb"), cluster, { cwd: home, ...account });
  const { server, exited, url } = await launched(join(bin, "postgres"), LAUNCHES);
  process.stdout.write(`${url}\n`);
  await Promise.race([released, exited]);
  if (server.exitCode !== null) throw new Error(`PostgreSQL ended by itself, with code ${server.exitCode}.`);
  server.kill("SIGINT"); // asks for a stop that waits for no client
  await exited;
}

async function launched(command, launches) {
  const port = await freePort();
  const settings = [
    "listen_addresses=127.0.0.1",
    `max_connections=${connections}`,
    "unix_socket_directories=",
  ];
  const options = ["-D", join(home, "data"), "-p", String(port), ...settings.flatMap((each) => ["-c", each])];
  const server = spawn(command, options, { cwd: home, stdio: ["ignore", "ignore", "pipe"], ...account });
  const exited = once(server, "exit");
  const log = [];
  const ready = new Promise((resolve) => {
    createInterface({ input: server.stderr }).on("line", (line) => {
      log.push(line);
      if (line.includes("ready to accept connections")) resolve();
    });
  });
  await Promise.race([ready, exited]);
  if (server.exitCode === null)
    return { server, exited, url: `postgres://postgres@127.0.0.1:${port}/postgres` };
  if (launches > 1) return launched(command, launches - 1);
  throw new Error(`PostgreSQL ended with code ${server.exitCode}:\n${log.slice(-LINES_TOLD).join("\n")}`);
}

const LINES_TOLD = 10;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
