import type { Fenced, FencedEnd, FencedWork, Ground, Looked, UnitEnd } from "../store.ts";
import type { Access } from "./access.ts";
import type { SqliteConnection } from "./connection.ts";
import { lending, plainlyOn } from "./lending.ts";
import { insertRecord, nextAttempt, readRecord, replaceRecord } from "./records.ts";
import type { Unit } from "./unit.ts";

/** Runs a unit on its ground; one that is refused is told what stands once its own changes are undone. */
export async function fenced<T>(
  { read, unit }: Pick<Access, "read" | "unit">,
  ground: Ground,
  work: FencedWork<SqliteConnection, T>,
): Promise<Fenced<T>> {
  const end = await unit(fencedUnit(ground, work));
  if (end.kind !== "refused") return end;
  return { kind: "refused", ...(await read((file) => readRecord(file, identityOf(ground)))) };
}

type Ended<T> = Exclude<Fenced<T>, { kind: "refused" }> | { readonly kind: "refused" };

/** Whoever has the write lock has every record, so that what is read here stays so. */
function fencedUnit<T>(ground: Ground, work: FencedWork<SqliteConnection, T>): Unit<Ended<T>> {
  return (tx) => {
    const looked = plainlyOn(tx, () => readRecord(tx, identityOf(ground)));
    if (!holds(ground, looked)) return REFUSED;
    const number = ground.kind === "held" ? null : plainlyOn(tx, () => nextAttempt(tx));
    const end = lending(tx, (handle) => work(handle, number));
    const kept = (settled: FencedEnd<T>) => plainlyOn(tx, () => keep(tx, ground, settled));
    // Whoever runs units refuses a promise; until then it is only handed on.
    return "then" in end ? end.then(kept) : kept(end);
  };
}

function identityOf(ground: Ground) {
  return ground.kind === "held" ? ground.seen.identity : ground.identity;
}

function holds({ seen }: Ground, { record }: Looked): boolean {
  if (seen === null || record === null) return seen === record;
  return record.owner === seen.owner && record.revision === seen.revision;
}

function keep<T>(tx: SqliteConnection, { seen }: Ground, end: FencedEnd<T>): UnitEnd<Ended<T>> {
  const { value } = end;
  if (end.kind === "rollback") return { kind: "rollback", value: { kind: "rolled_back", value } };
  const written = seen === null ? insertRecord(tx, end.write) : replaceRecord(tx, seen, end.write);
  const isKept = "inserted" in written ? written.inserted : written.kind === "replaced";
  if (!isKept || written.record === null) return REFUSED;
  const { record, now } = written;
  return { kind: "commit", value: { kind: "committed", record, now, value } };
}

const REFUSED: UnitEnd<{ readonly kind: "refused" }> = { kind: "rollback", value: { kind: "refused" } };
