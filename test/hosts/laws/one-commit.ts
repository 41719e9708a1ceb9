import assert from "node:assert/strict";
import type { Outcome } from "../../../src/engine/events.ts";
import { NotPerformed, OncekeyError, PermanentFailure } from "../../../src/errors.ts";
import type { HostLaw, HostSubject, Served, Service, TransactionRoute, TransactionWork } from "../law.ts";
import { linesOf, send } from "../wire.ts";
import { type Asked, askedOn, assertThrownBefore } from "./asking.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

const needs = "transactions";

/** What a route owes whose claim goes into its effect's own commit. */
export const oneCommitLaws: readonly HostLaw[] = [
  {
    id: "ONE-01",
    promise: "claim, effect, record and answer are one commit, and one trip to the store",
    needs,
    check: commits,
  },
  {
    id: "ONE-01 refused",
    promise: "a definite refusal is kept without its effects; of any other error nothing is kept",
    needs,
    check: refused,
  },
  {
    id: "ONE-01 before",
    promise: "whatever ends before the commit leaves neither an effect nor a record",
    needs,
    check: before,
  },
  { id: "ONE-01 after", promise: "whatever happens after the commit changes nothing", needs, check: after },
  {
    id: "ONE-01 never",
    promise: "an answer without a transaction is kept and reported; a copy runs and gets the kept one",
    needs,
    check: never,
  },
  {
    id: "ONE-01 copy",
    promise: "a copy that fails on its way to its transaction gets the kept answer all the same",
    needs,
    check: failedCopy,
  },
  { id: "ONE-01 other", promise: "another request under the key is 422 afterwards", needs, check: other },
];

const SECRET = "select * from cards where pan=4111";

/** An answer with what is kept of it and what is not. */
export const MADE = {
  status: 201,
  headers: { location: "/charges/1", "set-cookie": "a=1" },
  json: { id: 1 },
};

/** A route whose claim is in its effect's commit. */
export const oneCommitRoute = (handle: TransactionRoute["handle"]): TransactionRoute => ({
  path: "/charges",
  effects: "transaction",
  commits: "one",
  handle,
});

/** How the requests of a server were counted, one by one. */
export function counted({ events }: Served): readonly Outcome[] {
  return events.flatMap((event) => (event.type === "request" ? [event.outcome] : []));
}

/** A request and, once it is answered, its copy, each counted once. */
export async function asked(
  subject: HostSubject,
  handle: TransactionRoute["handle"],
  policy: Service["policy"] = {},
): Promise<Asked> {
  const asking = await askedOn(subject, oneCommitRoute(handle), policy);
  assert.equal(counted(asking.served).length, 2, "each request counts once");
  return asking;
}

/** Made once, and told again. */
export function assertMade({ first, copy, state, effects, served }: Asked): void {
  assertFirst(first, 201);
  assert.equal(first.body.toString(), '{"id":1}');
  assert.equal(linesOf(first, "idempotency-expires").length, 1);
  assert.deepEqual([state, effects], ["completed", 1]);
  assert.equal(copy.status, 201);
  assert.deepEqual(linesOf(copy, "idempotent-replayed"), ["true"]);
  assert.deepEqual(linesOf(copy, "location"), ["/charges/1"]);
  assert.equal(copy.body.toString(), '{"id":1}');
  assert.deepEqual(counted(served), ["claimed", "replayed"]);
}

async function commits(subject: HostSubject): Promise<void> {
  const numbers: number[] = [];
  const asking = await asked(subject, async (work) => {
    assert.equal(work.number, 0, "there is no claim before the transaction");
    const kept = await work.commit(MADE);
    numbers.push(work.number);
    return kept;
  });
  assertMade(asking);
  assert.deepEqual(linesOf(asking.first, "set-cookie"), ["a=1"]);
  assert.deepEqual(linesOf(asking.copy, "set-cookie"), []);
  const { key, served } = asking;
  assert.deepEqual(numbers, [(await served.record(key))?.attempt]);
  assert.deepEqual(served.storeCalls, ["fenced", "fenced"]);
  assert.deepEqual([subject.runs(key), await subject.effects(key)], [2, 1]);
}

async function refused(subject: HostSubject): Promise<void> {
  for (const status of [402, 409, 410, 422]) {
    for (const commit of [true, false]) {
      const answer = { status, json: { no: status } };
      const asking = await asked(subject, (work) =>
        commit ? work.commit(answer) : new Response(JSON.stringify(answer.json), { status }),
      );
      assertFirst(asking.first, status);
      assert.deepEqual([asking.state, asking.effects], ["failed_permanent", 0], String(status));
      assertReplay(asking.first, asking.copy);
      assert.deepEqual(counted(asking.served), ["claimed", "replayed"]);
    }
  }
  for (const status of [400, 403, 404, 429, 500, 503]) {
    const asking = await asked(subject, ({ commit }) => commit({ status, json: { no: status } }));
    for (const answer of [asking.first, asking.copy]) assertFirst(answer, status);
    assert.deepEqual([asking.state, asking.effects], [undefined, 0], String(status));
    assert.equal(subject.runs(asking.key), 2);
  }
}

async function before(subject: HostSubject): Promise<void> {
  await assertThrownBefore(subject, asked, { free: undefined, secret: SECRET });
}

async function after(subject: HostSubject): Promise<void> {
  let second: unknown = null;
  const endings: readonly ((work: TransactionWork) => Promise<Response>)[] = [
    async () => {
      throw new Error(SECRET);
    },
    async () => {
      throw new PermanentFailure({ no: 1 });
    },
    async () => new Response("another answer", { status: 409 }),
    async ({ commit }) => {
      await commit(MADE).catch((error: unknown) => {
        second = error;
      });
      return new Response("another answer");
    },
  ];
  for (const ending of endings) {
    const asking = await asked(subject, async (work) => {
      await work.commit(MADE);
      return await ending(work);
    });
    assertMade(asking);
  }
  assert.ok(second instanceof OncekeyError, "a second transaction is a typed error");
}

async function never(subject: HostSubject): Promise<void> {
  const asking = await asked(subject, () => new Response(`made ${Math.random()}`, { status: 201 }));
  assertFirst(asking.first, 201);
  assertReplay(asking.first, asking.copy);
  const { key, served, state } = asking;
  assert.deepEqual([state, subject.runs(key)], ["completed", 2]);
  assert.deepEqual(counted(served), ["claimed", "replayed"]);
  assert.ok(served.events.some(({ type }) => type === "transaction_unused"));
}

async function failedCopy(subject: HostSubject): Promise<void> {
  const failures: readonly (() => Response)[] = [
    () => {
      throw new NotPerformed(SECRET);
    },
    () => {
      throw new Error(SECRET);
    },
    () => new Response("not now", { status: 503 }),
    () => new Response("no", { status: 422 }),
  ];
  for (const failure of failures) {
    let runs = 0;
    const asking = await asked(subject, ({ commit }) => {
      runs += 1;
      return runs === 1 ? commit(MADE) : failure();
    });
    assertMade(asking);
  }
}

async function other(subject: HostSubject): Promise<void> {
  const served = await subject.serve({ routes: [oneCommitRoute(({ commit }) => commit(MADE))] });
  const key = subject.newKey();
  assertFirst(await send(served.port, { target: "/charges", ...json(key, { a: 1 }) }), 201);
  const another = await send(served.port, { target: "/charges", ...json(key, { a: 2 }) });
  problemOf(another, "key_reused", { effect: "done" });
  assert.deepEqual([await subject.effects(key), counted(served)], [1, ["claimed", "fingerprint_mismatch"]]);
}
