import assert from "node:assert/strict";
import type { Finality } from "../../../src/core/finality.ts";
import { PermanentFailure } from "../../../src/errors.ts";
import type { JudgedAttempt, JudgeFinality } from "../../../src/http/finality.ts";
import type { DeclaredRoute, HostLaw, HostSubject, PlainRoute, TransactionRoute } from "../law.ts";
import { linesOf } from "../wire.ts";
import { type Asked, askedOn } from "./asking.ts";
import { assertFirst, assertReplay, problemOf } from "./said.ts";

const needs = "transactions";

/** What a route says itself of its handler's answers. */
export const finalityLaws: readonly HostLaw[] = [
  { id: "HS-10 finality", promise: "a route's own word about an answer is obeyed", check: obeyed },
  {
    id: "HS-10 nonsense",
    promise: "a finality that throws, or says what it may not, costs nothing: the answer means what it means",
    check: nonsense,
  },
  {
    id: "HS-10 steps",
    promise: "no word makes nothing of an effect that is on record, or ends a call in doubt",
    check: steps,
  },
  {
    id: "HS-10 committed",
    promise: "a committed transaction is not asked about, a refused one is",
    needs,
    check: transactions,
  },
];

const path = "/charges";

const plain = (status: number, finality: JudgeFinality): PlainRoute => ({
  path,
  settings: { finality },
  handle: ({ effect }) => {
    effect();
    return new Response(`said ${status}`, { status, headers: { "X-Own": "1" } });
  },
});

const assertState = ({ first, copy, state }: Asked, status: number, expected: Finality): void => {
  assertFirst(first, status);
  assert.equal(state, expected, `${status} ${expected}`);
  if (expected === "released") assertFirst(copy, status);
  else if (expected !== "unknown") assertReplay(first, copy);
  else {
    assert.deepEqual(linesOf(first, "idempotency-status"), ["unknown"]);
    problemOf(copy, "outcome_unknown", { retry: "never" });
  }
};

async function obeyed(subject: HostSubject): Promise<void> {
  const words: readonly Finality[] = ["completed", "failed_permanent", "released", "unknown"];
  for (const status of [200, 400, 401, 402, 403, 409, 422, 429, 500, 503]) {
    for (const word of words) {
      const told: JudgedAttempt[] = [];
      const asked = await askedOn(
        subject,
        plain(status, (answer, attempt) => {
          told.push(attempt);
          assert.deepEqual([answer.status, String(answer.body?.length)], [status, "8"]);
          answer.body?.fill(0); // what is kept is out of its reach
          return word;
        }),
      );
      assertState(asked, status, word);
      assert.equal(asked.first.body.toString(), `said ${status}`);
      const [first] = told;
      assert.deepEqual(first, { ...first, principal: "alice", effect: "maybe", number: first?.number });
      assert.equal(told.length, subject.runs(asked.key));
    }
  }
  const silent = await askedOn(
    subject,
    plain(503, () => undefined),
  );
  assertState(silent, 503, "released");
  const refusing: PlainRoute = {
    ...plain(200, () => "released"),
    handle: () => {
      throw new PermanentFailure({ status: 402 });
    },
  };
  assertState(await askedOn(subject, refusing), 402, "failed_permanent"); // the handler's own word
}

async function nonsense(subject: HostSubject): Promise<void> {
  const sayings: readonly (() => unknown)[] = [
    () => {
      throw new Error("select * from cards where pan=4111");
    },
    () => "done",
    () => null,
    () => Promise.resolve("released"),
    () => Promise.reject(new Error("select * from cards where pan=4111")),
  ];
  for (const say of sayings) {
    const untyped: JudgeFinality = JSON.parse("null") ?? say;
    const asked = await askedOn(subject, plain(201, untyped));
    assertState(asked, 201, "completed");
    const failures = asked.served.events.filter(
      (event) => event.type === "failure" && /finality/.test(event.what),
    );
    assert.ok(failures.length >= 1, "the operators hear of it");
  }
}

async function steps(subject: HostSubject): Promise<void> {
  const charged: DeclaredRoute = {
    path,
    effects: "declared",
    settings: { finality: () => "released" },
    handle: async ({ step }) => {
      await step("charge", { provider: "blind" }, async () => 1);
      return new Response("charged", { status: 201 });
    },
  };
  const done = await askedOn(subject, charged);
  assertState(done, 201, "completed");
  const refused = done.served.events.filter((event) => event.type === "finality_refused");
  assert.deepEqual(
    refused.map(({ said }) => said),
    ["released"],
  );
  let judged = 0;
  const doubtful: DeclaredRoute = {
    ...charged,
    settings: {
      finality: () => {
        judged += 1;
        return "released";
      },
    },
    handle: async ({ step }) => {
      await step("charge", { provider: "blind" }, () => Promise.reject(new Error("reset"))).catch(() => {});
      return new Response("who knows", { status: 201 });
    },
  };
  const doubted = await askedOn(subject, doubtful);
  problemOf(doubted.first, "outcome_unknown", { status: 504, retry: "never" });
  assert.deepEqual([doubted.state, judged], ["unknown", 0]);
}

async function transactions(subject: HostSubject): Promise<void> {
  let judged = 0;
  const finality: JudgeFinality = () => {
    judged += 1;
    return "released";
  };
  const committing = (status: number): TransactionRoute => ({
    path,
    effects: "transaction",
    settings: { finality },
    handle: ({ commit }) => commit({ status }),
  });
  const committed = await askedOn(subject, committing(201));
  assertState(committed, 201, "completed");
  assert.deepEqual([committed.effects, judged], [1, 0]);
  const undone = await askedOn(subject, committing(402));
  assertState(undone, 402, "released");
  assert.deepEqual([await subject.effects(undone.key), judged], [0, 2]);
}
