import type { Command } from "commander";
import { purge } from "../../worker/tick.ts";
import { addTick } from "../ticking.ts";

/** `oncekey purge`: removes records whose retention is over, or leaves their tombstones, for as long as one tick lasts. */
export function addPurge(program: Command): void {
  const description =
    "Remove records whose retention is over, or all of them but their tombstones: one tick of the purge.";
  addTick(program, { name: "purge", description, tick: (engine) => purge(engine) });
}
