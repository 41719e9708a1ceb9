import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { NotPerformed, OncekeyError, PermanentFailure } from "../../../src/errors.ts";
import type { HostLaw, HostSubject, Served, TransactionRoute, TransactionWork } from "../law.ts";
import { linesOf, send } from "../wire.ts";
import { type Asked, askedOn, assertThrownBefore } from "./asking.ts";
import { assertFirst, assertReplay, problemOf } from "./said.ts";

const needs = "transactions";

/** What a handler's transaction means, whatever the handler does around it. */
export const transactionLaws: readonly HostLaw[] = [
  { id: "TX-01", promise: "effect, record and answer commit together", needs, check: commits },
  {
    id: "TX-01 refused",
    promise: "a refusal rolls its effects back: 4xx for good, 400 for now",
    needs,
    check: refused,
  },
  { id: "TX-01 after", promise: "whatever happens after the commit changes nothing", needs, check: after },
  {
    id: "TX-01 before",
    promise: "whatever ends before the commit leaves nothing behind",
    needs,
    check: before,
  },
  {
    id: "TX-01 twice",
    promise: "a second transaction is a typed error, and the first stands",
    needs,
    check: twice,
  },
  {
    id: "TX-01 never",
    promise: "a handler that never used its transaction is reported",
    needs,
    check: never,
  },
  {
    id: "TX-01 forgotten",
    promise: "a transaction that was not waited for still decides",
    needs,
    check: forgotten,
  },
  {
    id: "TX-01 limit",
    promise: "at the time limit the transaction is kept out, and that is said",
    needs,
    check: limit,
  },
  {
    id: "TX-01 late",
    promise: "a commit under way at the time limit is its own request's answer, and no replay",
    needs: "waiting transactions",
    check: late,
  },
  { id: "TX-01 safe", promise: "a safe method has no transaction", needs, check: safe },
];

const SECRET = "select * from cards where pan=4111";
const MADE = { status: 201, headers: { location: "/charges/1", "set-cookie": "a=1" }, json: { id: 1 } };

const route = (handle: TransactionRoute["handle"]): TransactionRoute => ({
  path: "/charges",
  effects: "transaction",
  handle,
});

function asked(subject: HostSubject, handle: TransactionRoute["handle"], policy = {}): Promise<Asked> {
  return askedOn(subject, route(handle), policy);
}

function assertMade({ first, copy, state, effects }: Asked): void {
  assertFirst(first, 201);
  assert.equal(first.body.toString(), '{"id":1}');
  assert.equal(linesOf(first, "idempotency-expires").length, 1);
  assert.deepEqual([state, effects], ["completed", 1]);
  assert.equal(copy.status, 201);
  assert.deepEqual(linesOf(copy, "idempotent-replayed"), ["true"]);
  assert.deepEqual(linesOf(copy, "location"), ["/charges/1"]);
  assert.equal(copy.body.toString(), '{"id":1}');
}

async function commits(subject: HostSubject): Promise<void> {
  const asking = await asked(subject, ({ commit }) => commit(MADE));
  assertMade(asking);
  assert.deepEqual(linesOf(asking.first, "set-cookie"), ["a=1"]);
  assert.deepEqual(linesOf(asking.copy, "set-cookie"), []);
}

async function refused(subject: HostSubject): Promise<void> {
  for (const status of [402, 409, 410, 422]) {
    const asking = await asked(subject, ({ commit }) => commit({ status, json: { no: status } }));
    assertFirst(asking.first, status);
    assert.deepEqual([asking.state, asking.effects], ["failed_permanent", 0], String(status));
    assertReplay(asking.first, asking.copy);
  }
  for (const status of [400, 403, 404, 429, 500, 503]) {
    const asking = await asked(subject, ({ commit }) => commit({ status, json: { no: status } }));
    for (const answer of [asking.first, asking.copy]) assertFirst(answer, status);
    assert.deepEqual([asking.state, asking.effects], ["released", 0], String(status));
    assert.equal(subject.runs(asking.key), 2);
  }
}

async function after(subject: HostSubject): Promise<void> {
  const endings: readonly ((work: TransactionWork) => Promise<Response>)[] = [
    async () => {
      throw new Error(SECRET);
    },
    async () => {
      throw new PermanentFailure({ no: 1 });
    },
    async () => {
      throw new NotPerformed(SECRET);
    },
    async () => new Response("another answer", { status: 409 }),
  ];
  for (const ending of endings) {
    const asking = await asked(subject, async (work) => {
      await work.commit(MADE);
      return await ending(work);
    });
    assertMade(asking);
  }
}

async function before(subject: HostSubject): Promise<void> {
  await assertThrownBefore(subject, asked, { free: "released", secret: SECRET });
  const unkeepable = await asked(subject, ({ commit }) => commit({ headers: { "x-a": "a\r\nb: c" } }));
  assertFirst(unkeepable.first, 500);
  assert.deepEqual([unkeepable.state, unkeepable.effects], ["released", 0]);
  const answered = await asked(subject, () => new Response("no", { status: 422 }));
  assertReplay(answered.first, answered.copy);
  assert.equal(answered.state, "failed_permanent");
}

async function twice(subject: HostSubject): Promise<void> {
  let second: unknown = null;
  const asking = await asked(subject, async ({ commit }) => {
    const kept = await commit(MADE);
    await commit(MADE).catch((error: unknown) => {
      second = error;
    });
    return kept;
  });
  assertMade(asking);
  assert.ok(second instanceof OncekeyError && second.code === "transaction_repeated");
  const thrown = await asked(subject, async ({ commit }) => {
    await commit(MADE);
    return await commit(MADE);
  });
  assertMade(thrown);
}

async function never(subject: HostSubject): Promise<void> {
  const asking = await asked(subject, ({ effect }) => {
    effect();
    return new Response("made", { status: 201 });
  });
  assertFirst(asking.first, 201);
  assertReplay(asking.first, asking.copy);
  const reports = (served: Served) =>
    served.events.filter(({ type }) => type === "transaction_unused").length;
  assert.equal(reports(asking.served), 1);
  assert.equal(reports((await asked(subject, ({ commit }) => commit(MADE))).served), 0);
}

async function forgotten(subject: HostSubject): Promise<void> {
  const committed = await asked(subject, ({ commit }) => {
    void commit(MADE);
    return new Response("not this one", { status: 200 });
  });
  assertMade(committed);
  const failed = await asked(subject, ({ commit }) => {
    void commit(() => {
      throw new Error(SECRET);
    });
    return new Response("not this one", { status: 200 });
  });
  assertFirst(failed.first, 500);
  assert.deepEqual([failed.state, failed.effects], ["released", 0]);
}

async function limit(subject: HostSubject): Promise<void> {
  let late: unknown = null;
  const policy = { requestTimeout: "300ms", lease: "2s" };
  const asking = await asked(
    subject,
    async ({ commit, number, signal }) => {
      await sleep(400);
      assert.ok(signal.aborted && number > 0);
      return await commit(MADE).catch((error: unknown) => {
        late = error;
        throw error;
      });
    },
    policy,
  );
  problemOf(asking.first, "not_performed", { status: 504, retryAfter: true });
  assert.deepEqual([asking.state, asking.effects], ["released", 0]);
  assert.ok(late instanceof OncekeyError);
}

async function late(subject: HostSubject): Promise<void> {
  const slow = async () => {
    await sleep(700);
    return MADE;
  };
  const policy = { requestTimeout: "300ms", lease: "10s" };
  assertMade(await asked(subject, ({ commit }) => commit(slow), policy));
}

async function safe(subject: HostSubject): Promise<void> {
  const { port, storeCalls } = await subject.serve({ routes: [route(({ commit }) => commit(MADE))] });
  assertFirst(await send(port, { method: "GET", target: "/charges" }), 500);
  assert.deepEqual(storeCalls, []);
}
