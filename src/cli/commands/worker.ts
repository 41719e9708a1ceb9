import { type Command, Option } from "commander";
import type { Engine } from "../../engine/engine.ts";
import type { WorkerName } from "../../stores/store.ts";
import { startWorkers, type WorkersOptions } from "../../worker/workers.ts";
import { durationIn, knowsOperations, onRecords, type Place, withEngine, withSettings } from "../opening.ts";
import { type Format, print } from "../output.ts";
import { toldOf } from "../ticking.ts";

/** `oncekey worker`: runs sweeper, purge and, with operations, reconciler until it is told to end. */
export function addWorker(program: Command): void {
  const description =
    "Run the sweeper and the purge, and with --config the reconciler, until SIGTERM or SIGINT. Any number of them may run.";
  withSettings(onRecords(program.command("worker").description(description)))
    .addOption(
      new Option(
        "--sweep-interval <duration>",
        "how often the sweeper and the purge come by (30s); with a URL only",
      ).argParser(durationIn),
    )
    .action((url: string | undefined, options: Place & Format, command: Command) =>
      withEngine(url, options, command, async ({ engine, name }) => {
        await work(engine, name, options);
      }),
    );
}

const NEVER_ALONE: readonly WorkerName[] = ["sweeper", "purge"];

async function work(engine: Engine, name: string, format: Format): Promise<void> {
  const asked = told();
  const asks = knowsOperations(engine);
  const only: readonly WorkerName[] = asks ? [...NEVER_ALONE, "reconciler"] : NEVER_ALONE;
  const say = (worker: string, text: string, document: object) =>
    print({ text: `${worker}: ${text}`, document: { worker, ...document } }, format);
  const unsubscribe = engine.subscribe((event) => {
    if (event.type !== "failure") return;
    const error = event.error instanceof Error ? event.error.message : String(event.error);
    say("failure", `${event.what}: ${error}`, { what: event.what, error });
  });
  const onTick: WorkersOptions["onTick"] = (worker, done) => {
    if (Object.values(done).some((count) => typeof count === "number" && count > 0))
      say(worker, toldOf(done), done);
  };
  const workers = startWorkers(engine, { only, onTick });
  say("worker", `${only.join(", ")} on ${name}${asks ? "" : NO_OPERATIONS}`, {
    started: only,
  });
  const signal = await asked;
  await workers.stop();
  unsubscribe();
  say("worker", `stopped by ${signal}`, { stopped: signal });
}

const NO_OPERATIONS = "; no operation is known, so no provider is asked";

/** Resolves with the signal that asks this process to end; a second one ends it at once. */
function told(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
}
