import { settled } from "../../../src/conformance/unit.ts";
import type { Identity, KeyRecord, RecordWrite } from "../../../src/core/record.ts";
import { seen } from "../../../src/core/transition.ts";
import { step } from "../../../src/engine/step.ts";
import type {
  Awaitable,
  Fenced,
  FencedEnd,
  FencedWork,
  Ground,
  Looked,
  Settling,
  TransactionalStore,
  UnitEnd,
  Within,
} from "../../../src/stores/store.ts";
import { type Mutant, transactions } from "./mutant.ts";

export type Transactional = TransactionalStore<unknown, Settling>;
type FencedVerb = <T>(
  store: Transactional,
  ground: Ground,
  work: FencedWork<unknown, T>,
) => Promise<Fenced<T>>;

/** Replaces the verb of every handle. */
export function fences(verb: FencedVerb): Mutant["make"] {
  return transactions((store) => ({ fenced: (ground, work) => verb(store, ground, work) }));
}

/** Takes another ground than the one asked for, with an eye on the record that stands. */
export function grounds(change: (ground: Ground, record: KeyRecord | null) => Ground): Mutant["make"] {
  return fences(async (store, ground, work) => {
    const { record } = await store.read(identityOf(ground));
    return store.fenced(change(ground, record), work);
  });
}

/** Spoils how a unit ended, on its way out. */
export function ends(spoil: <T>(end: Fenced<T>, ground: Ground) => Fenced<T>): Mutant["make"] {
  return fences(async (store, ground, work) => spoil(await store.fenced(ground, work), ground));
}

/** The same kind of ground, on the record that stands. */
export function on(ground: Ground, record: KeyRecord): Ground {
  return { ...ground, seen: seen(record) };
}

/** What a ground is about. */
export function identityOf(ground: Ground): Identity {
  return ground.kind === "held" ? ground.seen.identity : ground.identity;
}

type Waiting<T> = Generator<PromiseLike<void>, T, void>;
type Written = Looked & { readonly kept: boolean };
type Writing = (within: Within, ground: Ground, write: RecordWrite) => Waiting<Written>;

interface Hand {
  readonly looks?: "inside" | "outside";
  readonly write?: Writing;
}

/** The verb as one would make it of the others: it looks, works, and writes where nothing has changed. */
export function handMade({ looks = "inside", write = compareAndWrite }: Hand): Mutant["make"] {
  return fences(async (store, ground, work) => {
    const before = looks === "inside" ? null : await store.read(identityOf(ground));
    return store.transaction((tx) => {
      const [within, number] = [store.within(tx), ground.kind === "held" ? null : 1];
      const unit = { ground, before, write, work: () => work(tx, number) };
      return step(byHand(within, unit), (promise) => promise);
    });
  });
}

interface UnitByHand<T> {
  readonly ground: Ground;
  readonly before: Looked | null;
  readonly write: Writing;
  readonly work: () => Awaitable<FencedEnd<T>>;
}

function* byHand<T>(within: Within, unit: UnitByHand<T>): Waiting<UnitEnd<Fenced<T>>> {
  const { ground, before, write, work } = unit;
  const looked = before ?? (yield* settled(within.read(identityOf(ground))));
  if (!isGround(ground, looked)) return { kind: "rollback", value: { kind: "refused", ...looked } };
  const end = yield* settled(work());
  const { value } = end;
  if (end.kind === "rollback") return { kind: "rollback", value: { kind: "rolled_back", value } };
  const { kept, record, now } = yield* write(within, ground, end.write);
  if (!kept || record === null) return { kind: "rollback", value: { kind: "refused", ...looked } };
  return { kind: "commit", value: { kind: "committed", record, now, value } };
}

function isGround({ seen: version }: Ground, { record }: Looked): boolean {
  return version?.owner === record?.owner && version?.revision === record?.revision;
}

function* compareAndWrite(within: Within, ground: Ground, write: RecordWrite): Waiting<Written> {
  if (ground.seen === null) {
    const { inserted, ...standing } = yield* settled(within.insert(write));
    return { kept: inserted, ...standing };
  }
  const { kind, ...standing } = yield* settled(within.replace(ground.seen, write, "wait"));
  return { kept: kind === "replaced", ...standing };
}

/** Writes in the place of whatever stands, as no store should. */
export function* writeOver(within: Within, _ground: Ground, write: RecordWrite): Waiting<Written> {
  const { inserted, ...standing } = yield* settled(within.insert(write));
  if (inserted) return { kept: true, ...standing };
  return yield* compareAndWrite(within, { kind: "held", seen: seen(standing.record) }, write);
}
