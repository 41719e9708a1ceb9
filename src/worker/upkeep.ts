import type { Engine } from "../engine/engine.ts";
import type { EngineEvent } from "../engine/events.ts";
import type { Settling, WorkerName } from "../stores/store.ts";
import { workersHealth } from "./health.ts";

/**
 * Tells the listeners, once, where keys are claimed on a store that nobody looks after. It looks at the first claim:
 * workers of this process are started by then, and the store is known to answer.
 */
export function tellOfNoUpkeep<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  worksHere: () => boolean,
): void {
  const { emit } = engine.context;
  const unsubscribe = engine.subscribe((event) => {
    if (!isClaim(event)) return;
    unsubscribe();
    if (worksHere()) return;
    missingOn(engine).then(
      (missing) => {
        if (missing.length === 0 || worksHere()) return;
        emit({ type: "no_upkeep", store: engine.store.name, missing, advice: adviceOn(missing) });
      },
      (error: unknown) => emit({ type: "failure", what: "looking for workers on the store", error }),
    );
  });
}

function isClaim(event: EngineEvent): boolean {
  return event.type === "request" && (event.outcome === "claimed" || event.outcome === "stale_reclaimed");
}

/** The reconciler is missed by nobody who has no operation to ask about, so that it is no part of this. */
const NEEDED_BY_ALL: readonly WorkerName[] = ["sweeper", "purge"];

async function missingOn<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
): Promise<readonly WorkerName[]> {
  const health = await workersHealth(engine);
  return NEEDED_BY_ALL.filter((worker) => health[worker] !== "ok");
}

const WITHOUT: Readonly<Record<WorkerName, string>> = {
  sweeper: "Keys whose attempt died stay in progress until somebody asks for them again.",
  reconciler: "Effects in doubt stay so until a person decides.",
  purge: "Records are kept for ever, whatever their retention.",
};

function adviceOn(missing: readonly WorkerName[]): string {
  const follows = missing.map((worker) => WITHOUT[worker]).join(" ");
  return `${follows} Call engine.start() in one of your processes, or run \`oncekey worker\` beside them.`;
}
