import { describe, expect, test } from "vitest";
import { checkHistory } from "../../src/conformance/history/check.ts";
import { callersView } from "./harness/history/callers.ts";
import type { Answer, Asked, Call, History, Look, Standing, Trace } from "./harness/history/history.ts";
import { rules, violationsOf } from "./harness/history/violations.ts";

const alice = { principal: "alice", key: "k" };
const local: Asked = {
  ...{ ...alice, intent: "pay 5", effect: "local", steps: [], mark: "m1" },
  ...{ done: [201], refused: [422] },
};
const keyed: Asked = { ...local, effect: "keyed" };
const blind: Asked = { ...local, effect: "blind" };
const declared: Asked = { ...local, effect: "declared", steps: ["charge", "order"], refused: [402] };

const done = answer(201, '{"id":"e1","mark":"m1"}');
const refused = answer(422, '{"mark":"m1"}');
const cut: Call["told"] = { kind: "interrupted" };
const busy = problem(409, "in_progress");
const inDoubt = problem(409, "outcome_unknown", { retry: "never", retryAfter: null });
const reused = problem(422, "key_reused", { retry: "never", retryAfter: null });

const effect = { ...alice, id: "e1", attempt: 1, moves: [{ account: "a", amount: -5 }] };
const execution = { ...alice, id: "x1", step: null };
const charged = { ...alice, id: "c1", step: "charge" };
const ordered = { ...alice, id: "o1", step: "order" };
const completed = concluded("completed", done);
const inReview: Standing = { ...completed, state: "unknown", disposition: "review", answer: null };
const ran: Trace = { ...alice, kind: "ran", attempt: 1, arrivedMs: 0, atMs: 1 };
const swept: Trace = {
  ...{ ...alice, kind: "moved", by: "sweeper", attempt: 1 },
  ...{ from: "in_progress", to: "released", atMs: 1_600 },
};

const bought = answer(201, '{"mark":"m1","made":{"charge":"c1","order":"o1"}}');
const unordered = answer(402, '{"mark":"m1","made":{"charge":"c1"},"declined":"order"}');

/** One key that was asked for once, answered after 10 ms, and kept. */
const good: History = {
  asked: [local],
  calls: [call(done)],
  effects: [effect],
  executions: [],
  standing: [completed],
  looks: [look(completed, 11)],
  traces: [ran],
  accounts: [
    { id: "a", opening: 10, balance: 5 },
    { id: "b", opening: 10, balance: 10 },
  ],
  times: { leaseMs: 1_000, sweepGraceMs: 500 },
};
const paid: History = { ...good, asked: [keyed], executions: [execution] };
const traced = { ...alice, attempt: 1 };
/** The charge was made and kept, then the process died: the next attempt goes on with the order. */
const resumed: History = {
  ...{ ...good, effects: [], looks: [], asked: [declared], executions: [charged, ordered] },
  calls: [call(cut, 3), call(bought, 1_720)],
  standing: [concluded("completed", bought)],
  traces: [
    ...[ran, { ...traced, kind: "called", step: "charge", atMs: 1 } as const],
    { ...traced, kind: "kept", step: "charge", atMs: 2 },
    ...[swept, { ...ran, attempt: 2, arrivedMs: 1_700, atMs: 1_701 }],
    { ...traced, attempt: 2, kind: "kept", step: "charge", atMs: 1_702 },
    { ...traced, attempt: 2, kind: "called", step: "order", atMs: 1_703 },
  ],
  accounts: [],
};
const calledAgain: Trace = { ...traced, attempt: 2, kind: "called", step: "charge", atMs: 1_702 };
const nothing: Partial<History> = {
  effects: [],
  looks: [],
  accounts: [],
};
const refusal: History = {
  ...{ ...good, ...nothing },
  calls: [call(refused)],
  standing: [concluded("failed_permanent", refused)],
};

describe("no violation is found in the history", () => {
  const sound: readonly (readonly [what: string, history: History])[] = [
    ["of a local effect", good],
    ["of an effect at a provider", paid],
    ["of a refusal", refusal],
    ["of a replay", { ...good, calls: [call(done), call({ ...done, replayed: true }, 20)] }],
    [
      "of a busy key, a connection cut off, an answer",
      { ...good, calls: [call(busy, 2), call(cut, 3), call(done)] },
    ],
    [
      "of a key about which nobody can be asked",
      { ...good, ...nothing, asked: [blind], calls: [call(inDoubt)], standing: [inReview] },
    ],
    ["of another request under the key", { ...good, calls: [call(done), other(reused, 20)] }],
    ["of declared effects of which the second attempt makes those that the first has not", resumed],
    [
      "of declared effects that were refused after the first",
      {
        ...{ ...resumed, executions: [charged], calls: [call(unordered, 1_720)] },
        standing: [concluded("completed", unordered)],
      },
    ],
    [
      "of a late call of an attempt that another one has overtaken",
      { ...resumed, traces: [...resumed.traces, { ...calledAgain, attempt: 1, atMs: 1_710 }] },
    ],
    [
      "of an attempt that died, was swept in time and followed by another",
      {
        ...good,
        looks: [],
        effects: [{ ...effect, attempt: 2 }],
        traces: [ran, swept, { ...ran, attempt: 2, arrivedMs: 1_700, atMs: 1_701 }],
        calls: [call(done, 1_800)],
      },
    ],
  ];
  test.each(sound)("%s", (_, history) => expect(violationsOf(history)).toEqual([]));
  test.each(sound)("%s, as its callers see it", (_, history) =>
    expect(checkHistory(callersView(history))).toEqual([]),
  );
});

test("what callers alone can see is found by what they saw", () => {
  const seen = (history: History) => checkHistory(callersView(history)).map(({ guarantee }) => guarantee);
  expect(seen({ ...good, effects: [effect, { ...effect, id: "e2" }] })).toEqual(["G1"]);
  expect(seen({ ...good, effects: [] })).toEqual(["G4"]);
  expect(seen({ ...good, calls: [call(done), other(done, 20)] })).toEqual(["G8"]);
  expect(seen({ ...good, calls: [call(done), call(answer(201, "else"), 20)] })).toEqual(["G3"]);
  expect(seen({ ...good, calls: [call(done), call(busy, 20)] })).toEqual(["G11"]);
});

/** Of each rule, histories that break it. */
const broken: Readonly<Record<string, readonly History[]>> = {
  "all final answers of a key have the same status, headers and bytes": [
    { ...good, calls: [call(done), call(answer(201, '{"mark":"m1","id":"e1"}'), 20)] },
    { ...good, calls: [call(done), call({ ...done, headers: [["content-type", "text/plain"]] }, 20)] },
    { ...good, calls: [call(done), call({ ...done, status: 202 }, 20)] },
  ],
  "an answer is the answer to what its own caller asked": [
    { ...good, calls: [call(answer(201, '{"id":"e1","mark":"of bob"}'))] },
  ],
  "another request under the same key never gets the answer": [
    { ...good, calls: [call(done), other(done, 20)] },
    { ...good, calls: [call(done), other(busy, 20)] },
  ],
  "whatever is no final answer says honestly why, by a code that a client knows": [
    { ...good, calls: [call(answer(500, "Internal Server Error"), 2), call(done)] },
    { ...good, calls: [call(problem(500, "record_corrupt"), 2), call(done)] },
    { ...good, calls: [call(problem(503, "in_progress"), 2), call(done)] },
    { ...good, calls: [call(problem(409, "in_progress", { retryAfter: "0" }), 2), call(done)] },
    { ...good, calls: [call(inDoubt, 2), call(done)] },
    { ...good, calls: [call({ ...done, status: 200 })] },
  ],
  "a client that goes on asking gets a final answer, or hears that a person must decide": [
    { ...good, calls: [call(busy), call(cut, 20)] },
  ],
  "a key has at most one effect": [{ ...good, effects: [effect, { ...effect, id: "e2" }] }],
  "the provider executed a key, or each step of it, at most once": [
    { ...paid, executions: [execution, { ...execution, id: "x2" }] },
    { ...resumed, executions: [charged, ordered, { ...ordered, id: "o2" }], calls: [call(cut)] },
  ],
  "an answer names the steps that were made and no others: all of them, or those before a refusal": [
    { ...resumed, executions: [charged] },
    { ...resumed, executions: [charged, { ...ordered, id: "o2" }] },
    { ...resumed, calls: [call(answer(201, '{"mark":"m1","made":{"charge":"c1"}}'))], executions: [charged] },
    { ...resumed, calls: [call(unordered)] },
    { ...resumed, calls: [call({ ...bought, status: 402 })] },
  ],
  "an answer that tells of an effect is followed by that effect": [
    { ...good, ...nothing },
    { ...good, effects: [{ ...effect, id: "e2" }] },
    { ...paid, executions: [] },
  ],
  "an answer that refuses is followed by no effect": [
    { ...refusal, effects: [effect] },
    { ...refusal, executions: [execution] },
  ],
  "record and effect agree": [
    { ...good, ...nothing, calls: [call(cut)] },
    { ...good, calls: [call(cut)], standing: [{ ...completed, state: "released", answer: null }] },
    { ...paid, effects: [], calls: [call(cut)], standing: [] },
    { ...good, asked: [blind], calls: [call(inDoubt)], standing: [inReview] },
  ],
  "every record ends: concluded, released, or an unknown that a person is to end": [
    { ...good, standing: [{ ...completed, state: "in_progress", answer: null }] },
    { ...good, standing: [{ ...inReview, disposition: "reconcile" }], asked: [blind] },
    { ...good, standing: [inReview] },
  ],
  "what was answered is what is on record": [
    { ...good, standing: [concluded("completed", answer(201, "else"))] },
    { ...good, standing: [] },
  ],
  "an answer was on record before its end left the server": [
    { ...good, looks: [look({ ...completed, state: "in_progress", answer: null }, 11)] },
  ],
  "a record that is concluded never changes again": [
    { ...good, looks: [look(completed, 11), look({ ...completed, revision: 3 }, 12)] },
    { ...good, looks: [look(concluded("failed_permanent", done), 11)] },
  ],
  "an attempt runs once": [{ ...good, traces: [ran, { ...ran, atMs: 2 }] }],
  "attempts are numbered in the order of their claims": [
    { ...good, traces: [ran, { ...ran, attempt: 0, arrivedMs: 3, atMs: 4 }] },
  ],
  "nothing runs for a key that has its answer": [
    { ...good, traces: [ran, { ...ran, attempt: 2, arrivedMs: 30, atMs: 31 }] },
  ],
  "an effect is of an attempt that ran": [{ ...good, effects: [{ ...effect, attempt: 3 }] }],
  "nobody moves a record that is concluded": [
    { ...good, traces: [ran, { ...swept, from: "completed", to: "unknown" }] },
  ],
  "a dead attempt whose effect may have happened is never released unasked": [
    { ...paid, traces: [ran, swept] },
    { ...paid, traces: [ran, { ...swept, by: "duplicate" }] },
  ],
  "a step that has finished is never called by a later attempt": [
    { ...resumed, traces: [...resumed.traces, calledAgain] },
  ],
  "nobody is judged dead before the lease is over, nor swept before the grace is": [
    { ...good, traces: [ran, { ...swept, atMs: 1_200 }] },
    { ...good, traces: [ran, { ...swept, by: "duplicate", atMs: 700 }] },
  ],
};

describe("a violation is found where it is not so that", () => {
  test.each(rules)("$promise ($guarantee)", (rule) => {
    const histories = broken[rule.promise] ?? [];
    expect(histories.length).toBeGreaterThan(0);
    for (const history of histories) {
      const found = violationsOf(history).map(({ what }) => what);
      const without = violationsOf(
        history,
        rules.filter((other) => other !== rule),
      );
      expect(found.length).toBeGreaterThan(without.length);
    }
  });

  test("every effect and every execution was asked for (G2)", () => {
    const stranger = { principal: "bob", key: "k" };
    const history = { ...paid, effects: [effect, { ...effect, ...stranger }] };
    const guarantees = [
      violationsOf({ ...history, accounts: [] }),
      violationsOf({ ...paid, executions: [execution, { ...execution, ...stranger }] }),
    ].map((found) => found.map(({ guarantee, principal }) => `${guarantee} ${principal}`));
    expect(guarantees).toEqual([["G2 bob"], ["G2 bob"]]);
  });

  test("money is conserved (G4)", () => {
    const accounts = [{ id: "b", opening: 10, balance: 11 }];
    expect(violationsOf({ ...good, accounts })).toMatchObject([
      { guarantee: "G4", what: expect.stringMatching(/^account b holds 11/) },
    ]);
  });
});

function answer(status: number, body: string): Answer {
  const headers = [["content-type", "application/json"]] as const;
  return { kind: "answer", status, headers, body, replayed: false, retryAfter: null };
}

function problem(
  status: number,
  code: string,
  said: { retry?: string; retryAfter?: string | null } = {},
): Answer {
  const { retry = "same_key_later", retryAfter = "1" } = said;
  const type = `urn:oncekey:error:${code}`;
  const headers = [["content-type", "application/problem+json"]] as const;
  const body = JSON.stringify({ type, code, retry, effect: "maybe" });
  return { kind: "answer", status, headers, body, replayed: false, retryAfter };
}

function call(told: Call["told"], toMs = 10): Call {
  return { ...alice, intent: local.intent, fromMs: toMs - 1, toMs, told };
}

function other(told: Call["told"], toMs: number): Call {
  return { ...call(told, toMs), intent: "pay 6" };
}

function concluded(state: Standing["state"], { status, body }: Answer): Standing {
  return { ...alice, state, disposition: null, attempt: 1, revision: 2, answer: { status, body } };
}

function look(standing: Standing, fromMs: number): Look {
  return { ...standing, fromMs, toMs: fromMs };
}
