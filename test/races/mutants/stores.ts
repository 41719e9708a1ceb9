import type { KeyRecord, Seen } from "../../../src/core/record.ts";
import type { Database } from "../database.ts";
import type { Mutant } from "./mutant.ts";

/** What stores may get wrong: every one of them is a law of the port that is broken. */
export const storeMutants: readonly Mutant[] = [
  {
    name: "insert overwrites",
    fault: "an insert takes the place of the record that stands",
    foundOn: "undeclared",
    flaw: (right) => ({
      ...right,
      insert: (write, tx, by) => {
        const { record } = right.read(write.identity, tx);
        if (record === null) return right.insert(write, tx, by);
        const replaced = right.replace({ seen: seenOf(record), write, patience: "wait" }, tx, by);
        if (replaced.kind === "blocked") return replaced;
        return { inserted: true, record: replaced.record ?? record, now: right.now() };
      },
    }),
  },
  comparing(
    "compare-and-set on the owner alone",
    "a write names no revision",
    "declared keyed",
    (seen, { owner }) => seen.owner === owner,
  ),
  comparing(
    "compare-and-set on the revision alone",
    "a write names no owner",
    "undeclared",
    (seen, { revision }) => seen.revision === revision,
  ),
  comparing("no compare-and-set", "a write takes the place of whatever stands", "undeclared", () => true),
  {
    name: "a unit without a fence",
    fault: "a transaction commits on whatever version stands",
    foundOn: "local",
    flaw: (right) => ({
      ...right,
      fence: (ground, tx) => right.fence(unfenced(right, ground), tx),
      conclude: (ground, end, tx) => right.conclude(unfenced(right, ground), end, tx),
    }),
  },
  {
    name: "a repeat is stale",
    fault: "a write that is repeated after its lost reply does not know itself again",
    foundOn: "undeclared",
    flaw: (right) => ({
      ...right,
      replace: (asked, tx, by) => {
        const { record } = right.read(asked.seen.identity, tx);
        const isRepeat =
          record !== null && record.writeId === asked.write.writeId && !isSeen(record, asked.seen);
        return isRepeat ? { kind: "stale", record, now: right.now() } : right.replace(asked, tx, by);
      },
    }),
    equivalent:
      "the engine finds its own later version standing, which it may write over or which is its own ending: no promise is broken",
  },
  {
    name: "a repeat is known by its owner",
    fault: "any later version of the same owner passes for the write that was repeated",
    equivalent:
      "an attempt's writes are settled one after another, and it looks at the state of the version that it is handed before it goes on",
    foundOn: "declared query",
    flaw: (right) => ({
      ...right,
      replace: (asked, tx, by) => {
        const replaced = right.replace(asked, tx, by);
        const { record } = right.read(asked.seen.identity, tx);
        if (replaced.kind !== "stale" || record?.owner !== asked.write.owner) return replaced;
        return { kind: "replaced", record, now: right.now() };
      },
    }),
  },
  {
    name: "a write that waits is answered by a read",
    fault: "a repeated write meets a lock and is settled by what a read shows",
    foundOn: "operation keyed",
    flaw: (right) => ({
      ...right,
      fence: (ground, tx) => {
        const fenced = right.fence(ground, tx);
        if (fenced.kind !== "blocked" || ground.kind !== "held") return fenced;
        return { kind: "refused", record: right.read(ground.seen.identity, null).record, now: right.now() };
      },
    }),
    equivalent:
      "a unit that is refused by its own version counts as lost, and the sweeper ends it: only time is lost",
  },
  {
    name: "two claims at a time",
    fault: "the claim of a unit locks out no other claim",
    foundOn: "local, one commit",
    flaw: (right) => ({ ...right, tryClaim: () => true }),
    equivalent: "the write at the end of a claim is an insert or a compare-and-set and lets one of them pass",
  },
  {
    name: "rows stay after a rollback",
    fault: "what a unit did stays although its record was not written",
    foundOn: "local",
    flaw: (right) => ({ ...right, rollback: (tx) => rowsOnly(right, tx) }),
  },
  {
    name: "purges what is in doubt",
    fault: "the purge removes every record that nobody runs",
    foundOn: "declared keyed",
    flaw: (right) => ({ ...right, purge: () => purging(right, ({ state }) => state !== "in_progress") }),
  },
  {
    name: "purges what runs",
    fault: "the purge removes records whose lease has lapsed",
    foundOn: "undeclared",
    flaw: (right) => ({
      ...right,
      purge: () =>
        purging(right, (record) => record.state === "in_progress" && record.leaseUntil <= right.now()),
    }),
  },
  {
    name: "purges too early",
    fault: "the purge removes an answer before its retention is over",
    foundOn: "local",
    flaw: (right) => ({
      ...right,
      purge: () => purging(right, ({ state }) => state === "completed" || state === "failed_permanent"),
    }),
  },
  {
    name: "numbers repeat",
    fault: "an attempt's number is the row's own, so that a purged key starts again",
    foundOn: "undeclared",
    flaw: (right) => ({
      ...right,
      insert: (write, tx, by) => right.insert({ ...write, attempt: 1 }, tx, by),
    }),
  },
];

function comparing(
  name: string,
  fault: string,
  foundOn: Mutant["foundOn"],
  passes: (seen: Seen, standing: KeyRecord) => boolean,
): Mutant {
  const flaw = (right: Database): Database => ({
    ...right,
    replace: (asked, tx, by) => {
      const { record } = right.read(asked.seen.identity, tx);
      const seen = record !== null && passes(asked.seen, record) ? seenOf(record) : asked.seen;
      return right.replace({ ...asked, seen }, tx, by);
    },
  });
  return { name, fault, foundOn, within: 6_000, flaw };
}

function seenOf({ identity, owner, revision }: KeyRecord): Seen {
  return { identity, owner, revision };
}

function isSeen(record: KeyRecord, seen: Seen): boolean {
  return record.owner === seen.owner && record.revision === seen.revision;
}

function unfenced(right: Database, ground: Parameters<Database["fence"]>[0]): typeof ground {
  if (ground.kind === "claimable") return ground;
  const { record } = right.read(ground.seen.identity, null);
  return record === null ? ground : { ...ground, seen: seenOf(record) };
}

function rowsOnly(right: Database, tx: Parameters<Database["rollback"]>[0]): void {
  if (tx.state === "open" && tx.rows.length > 0) {
    tx.writes.clear();
    right.commit(tx, "");
    return;
  }
  right.rollback(tx);
}

function purging(right: Database, goes: (record: KeyRecord) => boolean): number {
  const gone = [...right.records.values()].filter(goes);
  for (const { identity } of gone) right.remove(identity);
  return gone.length;
}
