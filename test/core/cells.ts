import type { Match, OnAmbiguous } from "../../src/core/decide.ts";
import type {
  Completed,
  Disposition,
  Effects,
  InProgress,
  KeyRecord,
  ProviderKind,
  RecordState,
  Step,
  Unknown,
} from "../../src/core/record.ts";

/** The moment at which every cell is judged. */
export const NOW = 1_800_000_000_000;

/** When the provider of "open repeatable" forgets our key. */
export const TTL_ENDS_AT = NOW + 3_600_000;

/** One situation: everything that the state table tells apart. */
export interface Cell {
  readonly state: RecordState;
  readonly match: Match;
  readonly owner: "own" | "other";
  readonly lease: "live" | "lapsed";
  readonly effects: Effects;
  readonly marks: Marks;
  readonly retention: "none" | "live" | "over";
  readonly disposition: Disposition;
  /** Of a finished one: whether it leaves a tombstone, and whether that stands where the retention is over. */
  readonly tombstone: "none" | "stands" | "over";
  readonly body: "kept" | "not kept";
  readonly look: "none" | "to come" | "overdue";
  readonly onAmbiguous: OnAmbiguous;
  /** Whether the execution that made the standing claim asks again. */
  readonly execution: "another" | "the same";
}

/** A set of steps, and what the state table says of it. */
export interface Marks {
  readonly name: string;
  readonly steps: readonly Step[];
  /** A step that finished or is open binds the key to its request. */
  readonly bind: boolean;
  /** The next request may call again under the same key. */
  readonly repeat: boolean;
  /** What follows, where effects are declared, when the attempt died. */
  readonly death: Death;
  /** When the first provider forgets our key. */
  readonly ttlEndsAt?: number;
}

export type Death = "released" | "review" | "look at once" | "look when the ttl ends";

const HOUR_MS = 3_600_000;
const finished = ended("finished");
const refused = ended("refused");
const clear: Step = { state: "clear", generation: 3 };
const repeatable = open("repeatable", 24 * HOUR_MS, TTL_ENDS_AT);
const longer = open("repeatable", 72 * HOUR_MS, TTL_ENDS_AT + 9 * HOUR_MS);
const forgotten = open("repeatable", 24 * HOUR_MS, NOW - 1);
const REPEATABLE = { bind: true, repeat: true, death: "look when the ttl ends" } as const;
const [keyed, query, blind] = [open("keyed"), open("query"), open("blind")];

/** Every kind of mark, alone and in the company that matters. */
export const MARKS: readonly Marks[] = [
  marks("none", [], { death: "released" }),
  marks("finished", [finished], { bind: true, death: "released" }),
  marks("refused", [refused], { death: "released" }),
  marks("clear", [clear], { death: "released" }),
  marks("refused and clear", [refused, clear], { death: "released" }),
  marks("clear and finished", [clear, finished], { bind: true, death: "released" }),
  marks("repeatable", [repeatable], { ...REPEATABLE, ttlEndsAt: TTL_ENDS_AT }),
  marks("two repeatable", [longer, repeatable], { ...REPEATABLE, ttlEndsAt: TTL_ENDS_AT }),
  marks("repeatable, ttl over", [forgotten], { ...REPEATABLE, repeat: false, ttlEndsAt: NOW - 1 }),
  marks("repeatable, one over", [repeatable, forgotten], {
    ...REPEATABLE,
    repeat: false,
    ttlEndsAt: NOW - 1,
  }),
  marks("keyed", [keyed], { bind: true, death: "look at once" }),
  marks("keyed with a ttl", [open("keyed", HOUR_MS, TTL_ENDS_AT)], { bind: true, death: "look at once" }),
  marks("query", [query], { bind: true, death: "look at once" }),
  marks("blind", [blind], { bind: true, death: "review" }),
  marks("repeatable and keyed", [repeatable, keyed], { bind: true, death: "look at once" }),
  marks("keyed and blind", [keyed, blind], { bind: true, death: "review" }),
  marks("repeatable and blind", [repeatable, blind], { bind: true, death: "review" }),
  marks("finished and repeatable", [finished, repeatable], { ...REPEATABLE, ttlEndsAt: TTL_ENDS_AT }),
  marks("finished, refused and keyed", [finished, refused, keyed], { bind: true, death: "look at once" }),
];

/** All cells of one state: the dimensions that it has in every combination, the others as they are. */
export function cells(state: RecordState): readonly Cell[] {
  const common = [
    varying("match", ["same", "other", "unverifiable"]),
    varying("owner", ["own", "other"]),
    varying("effects", ["transaction", "declared", "none"]),
    varying("marks", MARKS),
    varying("onAmbiguous", ["keep", "rerun", "replay"]),
    varying("execution", ["another", "the same"]),
  ];
  return [...common, ...OF_ITS_OWN[state]].reduce<readonly Cell[]>(
    (some, vary) => some.flatMap(vary),
    [cellOf({ state })],
  );
}

/** One cell: what is not named is the plain case. */
export function cellOf(change: Partial<Omit<Cell, "marks">> & { readonly marks?: string }): Cell {
  const { marks: name = "none", ...plain } = change;
  const found = MARKS.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There are no marks of the name ${name}.`);
  const retention = change.state === "in_progress" || change.state === "unknown" ? "none" : "live";
  return { ...PLAIN, retention, ...plain, marks: found };
}

/** The record of a cell. */
export function recordOf(cell: Cell): KeyRecord {
  switch (cell.state) {
    case "in_progress":
      return runningOf(cell);
    case "released":
      return { ...commonOf(cell), state: cell.state, retainUntil: retainUntilOf(cell) };
    case "unknown":
      return doubtedOf(cell);
    case "completed":
      return completedOf(cell);
    case "failed_permanent":
      return { ...completedOf(cell), state: cell.state };
  }
}

/** The record of a cell of `in_progress`. */
export function runningOf(cell: Cell): InProgress {
  const leaseUntil = cell.lease === "live" ? NOW + 85_000 : NOW - 1;
  return { ...commonOf(cell), state: "in_progress", leaseUntil };
}

/** The record of a cell of `unknown`. */
export function doubtedOf(cell: Cell): Unknown {
  const { disposition } = cell;
  const nextLookAt = { none: null, "to come": NOW + 30_000, overdue: NOW - 30_000 }[cell.look];
  const evidence = { reason: "The reply was lost.", result: null };
  const retainUntil = cell.retention === "none" ? null : retainUntilOf(cell);
  return { ...commonOf(cell), state: "unknown", evidence, looks: 0, nextLookAt, disposition, retainUntil };
}

/** The record of a cell of `completed`. */
export function completedOf(cell: Cell): Completed {
  const answer = { status: 201, headers: [], body: cell.body === "kept" ? new Uint8Array() : null };
  const tombstoneMs = { none: null, stands: 2, over: 1 }[cell.tombstone];
  return { ...commonOf(cell), state: "completed", answer, retainUntil: retainUntilOf(cell), tombstoneMs };
}

const PLAIN: Omit<Cell, "marks"> = {
  state: "in_progress",
  match: "same",
  owner: "other",
  lease: "live",
  effects: "declared",
  retention: "none",
  disposition: "reconcile",
  tombstone: "none",
  body: "kept",
  look: "none",
  onAmbiguous: "keep",
  execution: "another",
};

type Varying = (cell: Cell) => readonly Cell[];

const RETAINED = varying("retention", ["live", "over"]);
const ANSWERED = [
  RETAINED,
  varying("body", ["kept", "not kept"]),
  varying("tombstone", ["none", "stands", "over"]),
];
const OF_ITS_OWN: Readonly<Record<RecordState, readonly Varying[]>> = {
  in_progress: [varying("lease", ["live", "lapsed"])],
  released: [RETAINED],
  unknown: [
    varying("look", ["none", "to come", "overdue"]),
    varying("disposition", ["reconcile", "review", "hold"]),
    (cell) => (cell.disposition === "hold" ? RETAINED(cell) : [cell]),
  ],
  completed: ANSWERED,
  failed_permanent: ANSWERED,
};

function varying<Name extends keyof Cell>(name: Name, values: readonly Cell[Name][]): Varying {
  return (cell) => values.map((value) => ({ ...cell, [name]: value }));
}

function marks(name: string, steps: readonly Step[], said: Partial<Marks> & Pick<Marks, "death">): Marks {
  return { name, steps, bind: false, repeat: false, ...said };
}

function open(provider: ProviderKind, keyTtlMs: number | null = null, endsAt: number = NOW): Step {
  const openedAt = endsAt - (keyTtlMs ?? 0);
  return { state: "open", provider, generation: 0, openedAt, keyTtlMs, validUntil: null };
}

function ended(state: "finished" | "refused"): Step {
  const plain = { provider: "keyed", generation: 0, openedAt: NOW - 5_000, keyTtlMs: null } as const;
  return { ...plain, state, validUntil: null, result: Uint8Array.of(1) };
}

function retainUntilOf({ retention }: Cell): number {
  return retention === "over" ? NOW - 1 : NOW + 1;
}

function commonOf({ effects, marks: { steps } }: Cell) {
  const bytes = new Uint8Array(32);
  return {
    identity: { kind: "http", principal: "alice", key: "k" },
    operation: "POST /payments",
    effects,
    fingerprint: { version: "1", salt: bytes, raw: bytes, canonical: bytes },
    owner: "its-owner",
    writeId: "its-write",
    steps: new Map(steps.map((step, n) => [`step ${n}`, step] as const)),
    reference: null,
    correlationId: null,
    createdAt: NOW - 5_000,
    claimedAt: NOW - 5_000,
    attempt: 1,
    revision: 1,
    updatedAt: NOW - 5_000,
  } as const;
}
