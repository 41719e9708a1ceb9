import { type Engine, type Settling, type Stats, stats } from "oncekey";
import { Gauge, type Registry } from "prom-client";

/** What gauges need beside the engine that they look at. */
export interface GaugeParts {
  readonly registry: Registry;
  /** Two readings of the store are at least as far apart, however often somebody looks: counting reads every record. */
  readonly everyMs: number;
  readonly tell: (error: unknown) => void;
}

/** Shows what the store holds. While it cannot be read `oncekey_store_up` is 0, and the other gauges say nothing. */
export function addGauges<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  parts: GaugeParts,
): void {
  const read = readingOf(engine, parts);
  for (const { name, help, label, seriesOf } of SHOWN)
    new Gauge({
      name: `oncekey_${name}`,
      help,
      labelNames: label === null ? [] : [label],
      registers: [parts.registry],
      async collect() {
        this.reset();
        if (label === null) this.remove(); // where nothing is known, nothing is shown: not a zero
        for (const [value, figure] of seriesOf(await read()))
          if (figure !== null) this.set(label === null ? {} : { [label]: value }, figure);
      },
    });
}

type Series = Iterable<readonly [label: string, figure: number | null]>;

interface Shown {
  readonly name: string;
  readonly help: string;
  readonly label: string | null;
  readonly seriesOf: (stats: Stats | null) => Series;
}

const seconds = (ms: number | null | undefined) => (typeof ms === "number" ? ms / 1_000 : null);

const SHOWN: readonly Shown[] = [
  gauge("store_up", "Whether the store could be read", (known) => Number(known !== null)),
  gauge("oldest_in_progress_seconds", "Age of the oldest running attempt", (known) =>
    seconds(known?.oldestInProgressMs),
  ),
  gauge("oldest_unknown_seconds", "Age of the oldest unknown outcome", (known) =>
    seconds(known?.oldestUnknownMs),
  ),
  gauge("expired", "Records past their retention and not purged", (known) => known?.endedNotPurged ?? null),
  gauge("oldest_expired_seconds", "How long ago the first of them should have been purged", (known) =>
    seconds(known?.oldestEndedMs),
  ),
  {
    name: "records",
    help: "Records by state",
    label: "state",
    seriesOf: (known) => Object.entries(known?.byState ?? {}),
  },
  {
    name: "unknown_records",
    help: "Unknown outcomes by who is to end them",
    label: "disposition",
    seriesOf: (known) => Object.entries(known?.byDisposition ?? {}),
  },
  {
    name: "worker_up",
    help: "Whether a worker of that name was seen lately; 0 where it is stale or was never seen",
    label: "worker",
    seriesOf: (known) =>
      Object.entries(known?.workers ?? {}).map(([name, health]) => [name, Number(health === "ok")] as const),
  },
];

function gauge(name: string, help: string, figureOf: (stats: Stats | null) => number | null): Shown {
  return { name, help, label: null, seriesOf: (known) => [["", figureOf(known)]] };
}

/** One reading for all gauges, and for everybody who looks within `everyMs`; `null` where the store could not be read, which is told. */
function readingOf<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  { everyMs, tell }: GaugeParts,
): () => Promise<Stats | null> {
  let latest: { readonly sinceMs: number; readonly known: Promise<Stats | null> } | null = null;
  const known = async () => {
    try {
      return await stats(engine);
    } catch (error) {
      tell(error);
      return null;
    }
  };
  return () => {
    const nowMs = performance.now();
    if (latest === null || nowMs - latest.sinceMs >= everyMs) latest = { sinceMs: nowMs, known: known() };
    return latest.known;
  };
}
