import { setTimeout as sleep } from "node:timers/promises";
import { freePort, type StartedProcess, startProcess } from "../../support/processes.ts";

/** A place for one process after another, each on the same port. */
export interface Slot {
  readonly name: string;
  readonly url: string;
  /** Whether there is a process that has said that it is ready, and that is not stopped. */
  readonly isUp: () => boolean;
  /** Everything that its processes have said, the dead ones included. */
  readonly lines: () => readonly string[];
  readonly signal: (signal: NodeJS.Signals) => void;
  /** True once the process is dead; false where it is not within that time. */
  readonly isDead: (withinMs: number) => Promise<boolean>;
  /** Waits for the death of the process, and starts the next one. */
  readonly revive: () => Promise<void>;
  /** Kills the process for good. */
  readonly close: () => Promise<void>;
  /** What its processes did that nobody had asked them for: to end by themselves, to complain. */
  readonly faults: () => readonly string[];
}

export interface SlotOptions {
  readonly name: string;
  readonly script: string;
  readonly seed: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Opens a place, with a process in it that is ready. */
export async function openSlot({ name, script, seed, env }: SlotOptions): Promise<Slot> {
  const port = await freePort();
  const all: StartedProcess[] = [];
  const faults: string[] = [];
  const start = async () => {
    const own = { NODE_ENV: undefined, ...env, PORT: String(port), SEED: String(seed + 31 * all.length) };
    const command = process.execPath;
    const started = await startProcess({ command, args: [script], env: own, readyWhen: /http:/ });
    all.push(started);
    return started;
  };
  let running = await start();
  let state: "up" | "stopped" | "dead" = "up";
  const bury = async () => {
    state = "dead";
    const { code, signal } = await running.exited;
    if (signal !== "SIGKILL") faults.push(`${name} ended by itself (${code ?? signal})`);
    if (running.stderr.length > 0) faults.push(`${name} complained: ${running.stderr.join("\n")}`);
  };
  return {
    ...{ name, url: `http://127.0.0.1:${port}` },
    isUp: () => state === "up",
    lines: () => all.flatMap(({ stdout }) => stdout),
    signal: (signal) => {
      state = signal === "SIGSTOP" ? "stopped" : "up";
      running.kill(signal);
    },
    isDead: (withinMs) => Promise.race([running.exited.then(() => true), sleep(withinMs, false)]),
    revive: async () => {
      await bury();
      running = await start();
      state = "up";
    },
    close: async () => {
      running.kill("SIGKILL");
      await bury();
    },
    faults: () => faults,
  };
}
