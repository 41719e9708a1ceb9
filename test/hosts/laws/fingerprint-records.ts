import assert from "node:assert/strict";
import type { EngineEvent } from "../../../src/engine/events.ts";
import type { HostLaw, HostSubject, Served } from "../law.ts";
import { send } from "../wire.ts";
import { echo } from "./comparing.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

/** What is kept of a request besides its answer: by which key it was signed, and what tells a mismatch apart. */
export const fingerprintRecordLaws: readonly HostLaw[] = [
  {
    id: "FP ring",
    promise: "the newest secret signs, all verify; without its secret a record is 409, and nothing runs",
    check: rotated,
  },
  {
    id: "FP event",
    promise: "listeners hear which members of a misused key's document differ, the client does not",
    check: explained,
  },
];

const secretOf = (id: string) => ({ id, secret: id.repeat(32) });

async function rotated(subject: HostSubject): Promise<void> {
  const routes = [echo()];
  const rings = [[], ["a"], ["b", "a"], ["b"], []];
  const keys: { readonly key: string; readonly signed: string | null }[] = [];
  for (const ids of rings) {
    const ring = ids.length === 0 ? {} : { fingerprintSecret: ids.map(secretOf) };
    const { port, record } = await subject.serve({ routes, ...ring });
    const sent = (key: string, amount: number) =>
      send(port, { target: "/charges", ...json(key, { amount, to: "bob" }) });
    for (const { key, signed } of keys) {
      if (signed !== null && !ids.includes(signed)) {
        for (const amount of [1, 2]) problemOf(await sent(key, amount), "fingerprint_unverifiable");
      } else {
        problemOf(await sent(key, 2), "key_reused", { effect: "done" });
        const first = await sent(key, 1);
        assertReplay({ ...first, headers: first.headers.filter(([name]) => !name.startsWith("ide")) }, first);
      }
      assert.equal(subject.runs(key), 1);
    }
    const key = subject.newKey();
    assertFirst(await sent(key, 1), 201);
    const [signed = null] = ids;
    keys.push({ key, signed });
    const version = (await record(key))?.fingerprint.version;
    assert.equal(version, signed === null ? "json 1" : `@${signed} json 1`);
  }
}

async function explained(subject: HostSubject): Promise<void> {
  for (const ring of [{}, { fingerprintSecret: [secretOf("a")] }]) {
    const served = await subject.serve({ routes: [echo({ ignore: ["/at"] })], ...ring });
    const key = subject.newKey();
    const sent = (body: unknown, target = "/charges") => send(served.port, { target, ...json(key, body) });
    assertFirst(await sent({ amount: 1, to: "bob", note: "n", at: 1 }), 201);
    const heard = async (body: unknown, target?: string) => {
      problemOf(await sent(body, target), "key_reused", { effect: "done" });
      return mismatchesOf(served).at(-1);
    };
    // One change in 256 goes unseen, hardly four of them.
    const named = new Set<string>();
    for (const amount of [2, 3, 4, 5]) {
      const changed = await heard({ amount, to: "bob", note: "n", at: 2 });
      assert.equal(changed?.missing, 0);
      for (const name of changed?.members ?? ["nothing"]) named.add(name);
    }
    assert.deepEqual([...named], ["amount"]);
    const added = await heard({ to: "bob", note: "n", amount: 1.0, secret: 1, at: 3 });
    assert.deepEqual([added?.members, added?.missing], [["secret"], 0]);
    const fewer = await heard({ amount: 1 });
    assert.deepEqual([fewer?.members, fewer?.missing], [[], 2]);
    const elsewhere = await heard({ amount: 1, to: "bob", note: "n" }, "/charges?dry=1");
    assert.deepEqual([elsewhere?.members, elsewhere?.missing], [[], 0]);
    const noObject = await heard([1]);
    assert.deepEqual([noObject?.members, noObject?.missing], [null, 0]);
    const { length } = mismatchesOf(served);
    assert.equal(length, 8, "one for each");
    const answer = await sent({ amount: 3, secret: 1 });
    assert.doesNotMatch(answer.body.toString(), /amount|secret|members|missing/);
    const { identity, operation, attempt } = mismatchesOf(served)[0] ?? {};
    const record = await served.record(key);
    assert.deepEqual([identity?.key, operation, attempt], [key, record?.operation, record?.attempt]);
  }
}

function mismatchesOf({ events }: Served) {
  type Mismatch = Extract<EngineEvent, { readonly type: "mismatch" }>;
  return events.filter((event): event is Mismatch => event.type === "mismatch");
}
