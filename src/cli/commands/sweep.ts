import type { Command } from "commander";
import { sweep } from "../../worker/tick.ts";
import { addTick } from "../ticking.ts";

/** `oncekey sweep`: judges attempts that were not heard of, for as long as one tick lasts. */
export function addSweep(program: Command): void {
  const description =
    "Judge attempts that were not heard of for their lease and the grace: one tick of the sweeper.";
  addTick(program, { name: "sweep", description, tick: (engine) => sweep(engine) });
}
