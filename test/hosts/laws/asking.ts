import assert from "node:assert/strict";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../../src/errors.ts";
import type { HostSubject, Route, Served, Service, TransactionRoute, TransactionWork } from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

/** A request, its copy once it was answered, and what stood in between. */
export interface Asked {
  readonly key: string;
  readonly first: WireAnswer;
  readonly copy: WireAnswer;
  readonly state: string | undefined;
  readonly effects: number;
  readonly served: Served;
}

/** Asks a handler of a law, whatever route its law gives it. */
export type Ask = (subject: HostSubject, handle: TransactionRoute["handle"]) => Promise<Asked>;

/** Sends a request to a route at `/charges` and, once it is answered, its copy. */
export async function askedOn(
  subject: HostSubject,
  route: Route,
  policy: Service["policy"] = {},
): Promise<Asked> {
  const served = await subject.serve({ routes: [route], policy });
  const key = subject.newKey();
  const request = { target: "/charges", ...json(key, {}) };
  const first = await send(served.port, request);
  const state = (await served.record(key))?.state;
  const effects = await subject.effects(key);
  const copy = await send(served.port, request);
  for (const { headers, body } of [first, copy])
    assert.ok(!JSON.stringify(headers).includes("4111") && !body.includes("4111"), "no internal text leaves");
  return { key, first, copy, state, effects, served };
}

/** What was thrown before the commit left no effect, and the key in the state that is `free`; only a refusal is kept. */
export async function assertThrownBefore(
  subject: HostSubject,
  asked: Ask,
  { free, secret }: { readonly free: string | undefined; readonly secret: string },
): Promise<void> {
  const failing =
    (error: Error) =>
    ({ commit }: TransactionWork) =>
      commit(() => {
        throw error;
      });
  const thrown = await asked(subject, failing(new Error(secret)));
  for (const answer of [thrown.first, thrown.copy]) {
    assertFirst(answer, 500);
    assert.deepEqual(linesOf(answer, "idempotency-status"), []);
  }
  assert.deepEqual([thrown.state, thrown.effects, subject.runs(thrown.key)], [free, 0, 2]);
  for (const error of [new NotPerformed(secret), new OutcomeUnknown(secret)]) {
    const asking = await asked(subject, failing(error));
    problemOf(asking.first, "not_performed", { retryAfter: true });
    assert.deepEqual([asking.state, asking.effects], [free, 0]);
  }
  const definite = await asked(subject, failing(new PermanentFailure({ status: 402, json: { no: 1 } })));
  assertFirst(definite.first, 402);
  assert.deepEqual([definite.state, definite.effects], ["failed_permanent", 0]);
  assertReplay(definite.first, definite.copy);
}
