import { ok } from "node:assert/strict";
import { standingStep } from "../../core/kept.ts";
import type { Due, StepOf } from "../../core/record.ts";
import { completed, freshIdentity, inProgress, nowOf, released, renewal, unknown } from "../draft.ts";
import { insertNew, replaceSeen, sameInstant, stands } from "../expectation.ts";
import { same } from "../same.ts";
import type { StoreLaw } from "../subject.ts";

/** Durations go in and instants come out, all of them by the store's own clock. */
export const timeLaws: readonly StoreLaw[] = [
  {
    id: "time/durations-count-from-now",
    promise:
      "A duration becomes the store's now plus that many milliseconds: leases, retentions and looks alike.",
    async check(subject) {
      const { store } = subject;
      for (const inMs of [1_000, 40_000, 86_400_000]) {
        const running = await insertNew(store, inProgress(subject, { leaseUntil: { inMs } }));
        sameInstant(store, running.leaseUntil, running.updatedAt + inMs, `a lease of ${inMs} ms`);
        sameInstant(store, running.createdAt, running.updatedAt, "the creation, in 0 ms");
        const doubt = { disposition: "hold", nextLookAt: { inMs }, retainUntil: { inMs } } as const;
        const doubted = await insertNew(store, unknown(subject, doubt));
        sameInstant(store, doubted.nextLookAt, doubted.updatedAt + inMs, `a look in ${inMs} ms`);
        sameInstant(store, doubted.retainUntil, doubted.updatedAt + inMs, `a retention of ${inMs} ms`);
        for (const write of [released(subject), completed(subject)]) {
          const ended = await insertNew(store, { ...write, retainUntil: { inMs } });
          sameInstant(store, ended.retainUntil, ended.updatedAt + inMs, `a retention of ${inMs} ms`);
        }
      }
    },
  },
  {
    id: "time/a-replacement-counts-from-its-own-now",
    promise: "A renewed lease counts from the renewal, not from the claim.",
    async check(subject) {
      const { store } = subject;
      const first = await insertNew(store, inProgress(subject));
      await subject.pause(30);
      const renewed = await replaceSeen(store, first, renewal(subject, first));
      sameInstant(store, renewed.leaseUntil, renewed.updatedAt + 90_000, "a renewed lease of 90 s");
      ok(renewed.leaseUntil > first.leaseUntil, "a renewed lease ends no later than the one before");
      sameInstant(store, renewed.createdAt, first.createdAt, "the creation, after a renewal");
    },
  },
  {
    id: "time/instants-are-kept",
    promise: "An instant that the store gave comes back as the same one after any number of writes.",
    async check(subject) {
      const { store } = subject;
      let record = await insertNew(store, inProgress(subject));
      const { createdAt, claimedAt, leaseUntil } = record;
      for (let writes = 0; writes < 5; writes++) {
        const write = { ...renewal(subject, record), leaseUntil: { at: record.leaseUntil } };
        record = await replaceSeen(store, record, write);
        const { createdAt: created, claimedAt: claimed, leaseUntil: lease } = record;
        same(
          [created, claimed, lease],
          [createdAt, claimedAt, leaseUntil],
          "instants written back as they were",
        );
      }
    },
  },
  {
    id: "time/steps-are-stamped-once",
    promise:
      "A step's opening and its horizon are stamped in the write that names them and do not move in later ones.",
    async check(subject) {
      const { store } = subject;
      const mark = { state: "open", provider: "query", generation: 0, keyTtlMs: 60_000 } as const;
      const opened: StepOf<Due> = { ...mark, openedAt: { inMs: 0 }, validUntil: { inMs: 30_000 } };
      let record = await insertNew(store, inProgress(subject, { steps: new Map([["charge", opened]]) }));
      const stamped = record.steps.get("charge");
      if (stamped?.state !== "open") throw new Error("The open step is gone.");
      sameInstant(store, stamped.openedAt, record.updatedAt, "the opening of a step");
      sameInstant(store, stamped.validUntil, record.updatedAt + 30_000, "the horizon of a step");
      for (let writes = 0; writes < 3; writes++) {
        await subject.pause(5);
        const steps = new Map([["charge", standingStep(stamped)]]);
        record = await replaceSeen(store, record, { ...renewal(subject, record), steps });
        same(record.steps.get("charge"), stamped, "a step that a later write carried along");
      }
      await stands([store, await subject.another()], record, "a record with a step, read back");
    },
  },
  {
    id: "time/a-read-moves-nothing",
    promise: "However long a record stands, its instants do not move.",
    async check(subject) {
      const step: StepOf<Due> = { state: "open", provider: "keyed", generation: 0, ...RELATIVE };
      const record = await insertNew(
        subject.store,
        inProgress(subject, { steps: new Map([["charge", step]]) }),
      );
      await subject.pause(30);
      await stands([subject.store, await subject.another()], record, "a record that nobody wrote to");
      const { record: standing } = await subject.store.insert(
        inProgress(subject, { identity: record.identity }),
      );
      same(standing, record, "a record that nobody wrote to, as a losing insert sees it");
    },
  },
  {
    id: "time/now-never-goes-back",
    promise:
      "Within one handle the now of an answer is never before an earlier one, and a version never before its own now.",
    async check(subject) {
      const { store } = subject;
      const identity = freshIdentity(subject);
      let before = await nowOf(store, subject);
      const passed = (now: number, what: string) => {
        ok(now >= before, `${what} says that it is ${now}, after an earlier answer said ${before}`);
        before = now;
      };
      const { record, now } = await store.insert(inProgress(subject, { identity }));
      passed(record.updatedAt, "the version that an insert made");
      passed(now, "an insert");
      let standing = record;
      for (let round = 0; round < 25; round++) {
        const write = inProgress(subject, { identity });
        const replaced = await store.replace(standing, write, "wait");
        if (replaced.kind !== "replaced") throw new Error(`A write was refused as ${replaced.kind}.`);
        standing = replaced.record;
        passed(standing.updatedAt, "the version that a replacement made");
        passed(replaced.now, "a replacement");
        passed((await store.read(identity)).now, "a read");
        passed((await store.due({ kind: "looks", limit: 1 })).now, "a list of what is due");
        passed((await store.list({ limit: 1 })).now, "a list for people");
      }
    },
  },
  {
    id: "time/is-the-time-of-day",
    promise: "The store's now counts milliseconds since 1970, and passes as fast as time does.",
    async check(subject) {
      const first = await nowOf(subject.store, subject);
      ok(first > YEAR_2020 && first < YEAR_2200, `the store says that it is ${first} ms after 1970`);
      await subject.pause(200);
      const passedMs = (await nowOf(subject.store, subject)) - first;
      // Above is room for a slow machine; a clock that counts anything but milliseconds is off by a thousand.
      ok(passedMs >= 100 && passedMs < 60_000, `the store's clock moved ${passedMs} ms in a pause of 200 ms`);
    },
  },
  {
    id: "time/handles-share-one-clock",
    promise: "Two handles on the same data tell the same time.",
    async check(subject) {
      const another = await subject.another();
      const nows: number[] = [];
      for (let round = 0; round < 10; round++) {
        nows.push(await nowOf(subject.store, subject), await nowOf(another, subject));
      }
      const ordered = nows.every((now, n) => n === 0 || now >= (nows[n - 1] ?? 0));
      ok(ordered, `asked in turn, two handles said ${nows.join(", ")}`);
    },
  },
];

const YEAR_2020 = 1_577_836_800_000;
const YEAR_2200 = 7_258_118_400_000;
const RELATIVE = { openedAt: { inMs: 0 }, keyTtlMs: null, validUntil: { inMs: 30_000 } };
