import type { Command } from "commander";
import { reconcile } from "../../worker/tick.ts";
import { knowsOperations } from "../opening.ts";
import { addTick } from "../ticking.ts";

/** `oncekey reconcile --config FILE`: asks the providers of the file's operations, for as long as one tick lasts. */
export function addReconcile(program: Command): void {
  const description =
    "Ask providers what became of effects in doubt: one tick of the reconciler. Needs --config, for the operations.";
  addTick(program, {
    name: "reconcile",
    description,
    tick: (engine, command) => {
      if (!knowsOperations(engine))
        command.error("error: only an engine with operations can ask their providers: give --config");
      return reconcile(engine);
    },
  });
}
