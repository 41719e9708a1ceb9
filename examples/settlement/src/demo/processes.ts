import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A process of the demonstration that answers. */
export interface Started {
  readonly url: string;
  readonly pid: number;
  /** `kill -9`, and waits until it is gone. */
  readonly kill: () => Promise<void>;
}

/** Starts a program of this service as a process of its own; answers once it has said where it can be reached. */
export async function startProgram(
  program: "main" | "bank/main",
  environment: Readonly<Record<string, string>>,
): Promise<Started> {
  const file = fileURLToPath(new URL(`../${program}.js`, import.meta.url));
  const env = { ...process.env, NODE_ENV: "", ...environment };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] });
  const orphaned = () => void child.kill("SIGKILL");
  process.once("exit", orphaned);
  const exited = once(child, "exit").finally(() => process.off("exit", orphaned));
  const complaints: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => complaints.push(line));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = /answers on (http:\/\/\S+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error(`${program} ended at once:\n${complaints.join("\n")}`)));
  });
  return {
    url,
    pid: child.pid ?? Number.NaN,
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** A port on which nobody listened a moment ago, so that a server can be started on it a second time. */
export async function freePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  return String(address.port);
}
