import type { Instant, KeyRecord } from "../../core/record.ts";
import type { Fenced, FencedEnd, FencedWork, Ground, Looked, UnitEnd } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { insertRecord, nextAttempt, readRecord, replaceRecord } from "./records.ts";
import type { Unit } from "./unit.ts";
import { plainlyOn } from "./within.ts";

/** A unit on its ground: whoever has the write lock has every record, so that what is read here stays so. */
export function fencedUnit<T>(ground: Ground, work: FencedWork<SqliteConnection, T>): Unit<Fenced<T>> {
  return (tx) => {
    const looked = plainlyOn(tx, () => readRecord(tx, identityOf(ground)));
    if (!holds(ground, looked)) return { kind: "rollback", value: { kind: "refused", ...looked } };
    const end = work(tx, ground.kind === "held" ? null : plainlyOn(tx, () => nextAttempt(tx)));
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

function keep<T>(tx: SqliteConnection, { seen }: Ground, end: FencedEnd<T>): UnitEnd<Fenced<T>> {
  const { value } = end;
  if (end.kind === "rollback") return { kind: "rollback", value: { kind: "rolled_back", value } };
  if (seen === null) {
    const { inserted, record, now } = insertRecord(tx, end.write);
    return inserted ? committed(record, now, value) : refused(record, now);
  }
  const { kind, record, now } = replaceRecord(tx, seen, end.write);
  return kind === "replaced" ? committed(record, now, value) : refused(record, now);
}

function committed<T>(record: KeyRecord, now: Instant, value: T): UnitEnd<Fenced<T>> {
  return { kind: "commit", value: { kind: "committed", record, now, value } };
}

function refused<T>(record: KeyRecord | null, now: Instant): UnitEnd<Fenced<T>> {
  return { kind: "rollback", value: { kind: "refused", record, now } };
}
