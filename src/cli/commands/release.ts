import type { Command } from "commander";
import { decide, type Overriding, overriding } from "../deciding.ts";

/** `oncekey release`: a person says that nothing happened, so that the key may run again. */
export function addRelease(program: Command): void {
  const description = "Say that nothing happened, and nothing will: the key may run again.";
  overriding(program.command("release").description(description)).action(
    (url: string | undefined, options: Overriding, command: Command) =>
      decide(url, options, command, { kind: "not_happened" }),
  );
}
