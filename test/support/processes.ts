import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

/** How a process ended. */
type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** A real child process; `stdout` and `stderr` grow, line by line, while it lives. */
export type StartedProcess = {
  readonly pid: number;
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
};

/** What to run; `readyWhen` is looked for in each line of standard output. */
export type StartOptions = {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly readyWhen?: RegExp;
  readonly readyWithinMs?: number;
};

const living = new Map<ChildProcess, Promise<Exit>>();

/**
 * Starts a process with our environment plus `env`; resolves once it is ready, or rejects with what it printed.
 * Whatever still lives at the end of the test file is killed by its pid.
 */
export async function startProcess(options: StartOptions): Promise<StartedProcess> {
  const { command, args = [], env = {}, cwd = process.cwd(), readyWhen, readyWithinMs = 30_000 } = options;
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = exitOf(child);
  living.set(child, exited);
  const stdout = linesOf(child.stdout);
  const stderr = linesOf(child.stderr);
  await once(child, "spawn");
  const started: StartedProcess = {
    pid: child.pid ?? Number.NaN,
    stdout,
    stderr,
    exited,
    kill: (signal) => void child.kill(signal),
  };
  if (readyWhen !== undefined)
    await ready({ started, readyWhen, readyWithinMs, name: [command, ...args].join(" ") });
  return started;
}

/** Kills everything that `startProcess` started here and that still lives; resolves when it is gone. */
export async function stopAll(): Promise<void> {
  const rest = [...living];
  for (const [child] of rest) child.kill("SIGKILL");
  await Promise.all(rest.map(([, exited]) => exited));
}

/** Finds a port of 127.0.0.1 on which nobody listened a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  return address.port;
}

/** Asks `condition` again and again until it holds; rejects, quoting it, when it does not hold in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { withinMs = 10_000, everyMs = 20 }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`Not so within ${withinMs} ms: ${condition}`);
    await sleep(everyMs);
  }
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      living.delete(child);
      resolve({ code, signal });
    };
    // "close" comes after "exit", when the last line has been read; a command that never started has only "error".
    child.once("close", end);
    child.once("error", () => child.pid === undefined && end(null, null));
  });
}

function linesOf(stream: NodeJS.ReadableStream): readonly string[] {
  const lines: string[] = [];
  createInterface({ input: stream }).on("line", (line) => lines.push(line));
  return lines;
}

type Awaited = {
  readonly started: StartedProcess;
  readonly readyWhen: RegExp;
  readonly readyWithinMs: number;
  readonly name: string;
};

async function ready({ started, readyWhen, readyWithinMs, name }: Awaited): Promise<void> {
  let exit: Exit | undefined;
  void started.exited.then((end) => {
    exit = end;
  });
  const isReady = () => started.stdout.some((line) => readyWhen.test(line));
  try {
    await until(() => isReady() || exit !== undefined, { withinMs: readyWithinMs, everyMs: 10 });
  } catch (error) {
    started.kill("SIGKILL");
    throw new Error(`${name} printed no ${readyWhen} in ${readyWithinMs} ms.${printed(started)}`, {
      cause: error,
    });
  }
  if (isReady()) return;
  throw new Error(
    `${name} ended (${JSON.stringify(exit)}) before it printed ${readyWhen}.${printed(started)}`,
  );
}

function printed({ stdout, stderr }: StartedProcess): string {
  return `\nstdout:\n${stdout.slice(-20).join("\n")}\nstderr:\n${stderr.slice(-20).join("\n")}`;
}
