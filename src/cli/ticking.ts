import type { Command } from "commander";
import type { Engine } from "../engine/engine.ts";
import { onRecords, type Place, withEngine, withSettings } from "./opening.ts";
import { type Format, print } from "./output.ts";

/** One tick of a worker as a command. */
export interface Tick<Done extends object> {
  readonly name: string;
  readonly description: string;
  readonly tick: (engine: Engine, command: Command) => Promise<Done>;
}

/** Adds a command that runs one tick, and tells what it did. */
export function addTick<Done extends object>(
  program: Command,
  { name, description, tick }: Tick<Done>,
): void {
  withSettings(onRecords(program.command(name).description(description))).action(
    (url: string | undefined, options: Place & Format, command: Command) =>
      withEngine(url, options, command, async ({ engine }) => {
        const done = await tick(engine, command);
        print({ text: toldOf(done), document: done }, options);
      }),
  );
}

/** What was done, in words; what came to nothing is left out. */
export function toldOf(done: object): string {
  const counts = Object.entries(done).flatMap(([name, count]) =>
    typeof count === "number" && count > 0 ? [`${name} ${count}`] : [],
  );
  const told = counts.length === 0 ? "nothing to do" : counts.join(", ");
  return "more" in done && done.more === true ? `${told}; more is left` : told;
}
