import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** The built command. */
export const COMMAND: string = join(import.meta.dirname, "../../dist/cli/main.js");

/** Says so where the command is not built. */
export function commandIsBuilt(): void {
  if (!existsSync(COMMAND)) throw new Error("The command is not built. Run: npm run build");
}

/** Runs the built command as its users do: in a process of its own. */
export async function oncekey(
  ...parameters: readonly string[]
): Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [COMMAND, ...parameters], { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code, stdout, stderr };
}
