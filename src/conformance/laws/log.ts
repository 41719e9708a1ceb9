import { doesNotReject, ok } from "node:assert/strict";
import type { AuditEntry, Beat, Store, WorkerName } from "../../stores/store.ts";
import { freshIdentity, freshWord, nowOf } from "../draft.ts";
import { same } from "../same.ts";
import type { StoreLaw } from "../subject.ts";

/** What is told besides the records: who overrode what, which workers live, and whether the store can be used. */
export const logLaws: readonly StoreLaw[] = [
  {
    id: "audit/as-it-was-said",
    promise:
      "The log keeps its entries in the order of their writing, word for word, each with the store's now.",
    async check(subject) {
      const { store } = subject;
      const identity = freshIdentity(subject);
      const entries = ENTRIES.map((entry) => ({ ...entry, identity }));
      const before = await nowOf(store, subject);
      for (const entry of entries) await store.audit(entry);
      const after = await nowOf(store, subject);
      const audited = await (await subject.another()).audits(identity);
      same(
        audited.map(({ at, ...entry }) => entry),
        entries,
        "the entries of the log",
      );
      const times = audited.map(({ at }) => at);
      same(
        times,
        times.toSorted((one, other) => one - other),
        "the times of the entries",
      );
      ok(
        times.every((at) => at >= before && at <= after),
        `written between ${before} and ${after}: ${times}`,
      );
    },
  },
  {
    id: "audit/of-one-identity",
    promise: "The log of one identity holds nothing of another, however alike they are.",
    async check(subject) {
      const { store } = subject;
      const [principal, key] = [freshWord(subject), freshWord(subject)];
      const alike = [
        { kind: "http", principal, key },
        { kind: "http", principal: principal.toUpperCase(), key },
        { kind: "http", principal, key: `${key} ` },
        { kind: "run", principal, operation: "http", key },
      ] as const;
      for (const [n, identity] of alike.entries())
        await store.audit({ ...ENTRY, identity, reason: `reason ${n}` });
      for (const [n, identity] of alike.entries()) {
        const reasons = (await store.audits(identity)).map(({ reason }) => reason);
        same(reasons, [`reason ${n}`], "the log of one identity");
      }
      same(await store.audits(freshIdentity(subject)), [], "the log of an identity that nobody overrode");
    },
  },
  {
    id: "beat/age-by-the-store-clock",
    promise:
      "A worker's beat is as old as the store's clock says, through every handle, and a new one makes it young.",
    async check(subject) {
      const { store } = subject;
      const before = await nowOf(store, subject);
      await store.beat("sweeper");
      const first = await beatOf(await subject.another(), "sweeper");
      ok(first.beatenAt >= before, `a beat of ${first.beatenAt}, written after ${before}`);
      await subject.pause(200);
      const older = await beatOf(store, "sweeper");
      same(older.beatenAt, first.beatenAt, "the time of a beat, looked at again");
      ok(
        older.ageMs >= first.ageMs + 100,
        `${first.ageMs} ms old, and after a pause of 200 ms ${older.ageMs} ms`,
      );
      const now = await nowOf(store, subject);
      ok(
        older.ageMs >= 0 && older.beatenAt + older.ageMs <= now,
        `an age of ${older.ageMs} ms leads past ${now}`,
      );
      await store.beat("sweeper");
      const renewed = await beatOf(store, "sweeper");
      ok(renewed.beatenAt > first.beatenAt, "a second beat is no later than the first");
    },
  },
  {
    id: "beat/each-worker-for-itself",
    promise: "Each worker has one beat of its own, which the others do not touch.",
    async check(subject) {
      const { store } = subject;
      const workers: readonly WorkerName[] = ["sweeper", "reconciler", "purge"];
      for (const worker of [...workers, ...workers]) await store.beat(worker);
      const names = (await store.beats()).map(({ worker }) => worker);
      same(names.toSorted(), workers.toSorted(), "the workers that beat");
      const reconciler = await beatOf(store, "reconciler");
      await subject.pause(50);
      await store.beat("purge");
      same(
        (await beatOf(store, "reconciler")).beatenAt,
        reconciler.beatenAt,
        "a beat after another worker's",
      );
    },
  },
  {
    id: "check/passes",
    promise: "A store that is reachable, writable and of the right schema passes its own check.",
    async check(subject) {
      for (const handle of [subject.store, await subject.another()]) {
        await doesNotReject(handle.check(), "the check of a store that is in order");
      }
    },
  },
];

const ENTRY = { actor: "ada", action: "release", before: "unknown", after: "released" } as const;

const ENTRIES: readonly Omit<AuditEntry, "identity">[] = [
  { ...ENTRY, reason: "Nothing was sent." },
  { actor: "policy:rerun", action: "rerun", reason: "", before: "unknown", after: "in_progress" },
  {
    actor: "josé 👩‍💻",
    action: "resolve",
    reason: 'said "done"\n\tand was sure',
    before: null,
    after: "completed",
  },
  { ...ENTRY, reason: "Nothing was sent." },
  { actor: "ada", action: "purge", reason: "%_';--", before: "failed_permanent", after: null },
];

async function beatOf(store: Store, wanted: WorkerName): Promise<Beat> {
  const found = (await store.beats()).filter(({ worker }) => worker === wanted);
  const [beat] = found;
  if (beat === undefined || found.length > 1) throw new Error(`${found.length} beats of ${wanted}.`);
  return beat;
}
