import assert from "node:assert/strict";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../../src/errors.ts";
import { until } from "../../support/processes.ts";
import type {
  BeginningWork,
  DeclaredRoute,
  DeclaredWork,
  HostLaw,
  HostSubject,
  Route,
  Served,
} from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, assertReplay, json, problemOf } from "./said.ts";

/** What the end of a handler means whose effects are steps, or begin by a word. */
export const declaredLaws: readonly HostLaw[] = [
  {
    id: "HS-10 steps",
    promise: "with no step begun, what a handler answered decides: kept, refused or released",
    check: unbegun,
  },
  {
    id: "TX-07 steps",
    promise:
      "after a finished step a server error is released and the retry goes on; any other answer is kept",
    check: finished,
  },
  { id: "G5 steps", promise: "an open step outweighs every answer: 504, and no copy runs", check: open },
  { id: "G5 streams", promise: "an open step cuts a flowing answer before its end", check: streaming },
  {
    id: "CL-17 steps",
    promise: "a handler's own word counts only as far as its steps bear it out",
    check: words,
  },
  {
    id: "G6 steps",
    promise: "a step that never settles is 504 at the time limit, and its late result is kept",
    check: endless,
  },
  {
    id: "G5 safe",
    promise: "a safe method has no record: its handler runs, and its effects are refused",
    check: safe,
  },
  {
    id: "HS-10 begin",
    promise: "before its effects begin a handler's failure is released, after that it is in doubt",
    check: begins,
  },
  {
    id: "G6 replay",
    promise: "where the programmer says so, an error in doubt is the answer, counted and audited",
    check: replayed,
  },
];

const BLIND = { provider: "blind" } as const;
const REPEATABLE = { provider: "repeatable", keyTtl: "24h" } as const;
const SECRET = "select * from cards where pan=4111";
const broken = () => Promise.reject(Object.assign(new Error(SECRET), { code: "ECONNRESET" }));
const path = "/declared";

function declared(handle: DeclaredRoute["handle"], settings: Route["settings"] = {}): DeclaredRoute {
  return { path, effects: "declared", handle, settings };
}

interface Asked {
  readonly key: string;
  readonly first: WireAnswer;
  readonly state: string | undefined;
  readonly served: Served;
  readonly again: () => Promise<WireAnswer>;
}

async function asked(subject: HostSubject, route: Route, policy = {}): Promise<Asked> {
  const served = await subject.serve({ routes: [route], policy });
  const key = subject.newKey();
  const again = () => send(served.port, { target: path, ...json(key, {}) });
  const first = await again();
  assert.ok(
    !first.body.includes("4111") && !JSON.stringify(first.headers).includes("4111"),
    "no internal text leaves",
  );
  return { key, first, state: (await served.record(key))?.state, served, again };
}

async function unbegun(subject: HostSubject): Promise<void> {
  const table: readonly (readonly [state: string, statuses: readonly number[]])[] = [
    ["completed", [200, 201, 303]],
    ["failed_permanent", [402, 409, 410, 422, 451]],
    ["released", [400, 401, 403, 404, 405, 408, 411, 415, 417, 425, 429, 500, 502, 503, 504]],
  ];
  for (const [expected, statuses] of table) {
    for (const status of statuses) {
      const { key, first, state, again } = await asked(
        subject,
        declared(({ number }) => new Response(`${number}`, { status })),
      );
      assertFirst(first, status);
      assert.equal(state, expected, String(status));
      const copy = await again();
      if (expected === "released") assertFirst(copy, status);
      else assertReplay(first, copy);
      assert.equal(subject.runs(key), expected === "released" ? 2 : 1);
    }
  }
}

async function finished(subject: HostSubject): Promise<void> {
  for (const status of [201, 303, 400, 402, 404, 409, 417, 422]) {
    const { key, first, state, again } = await asked(
      subject,
      declared(withStep(() => new Response("said", { status }))),
    );
    assertFirst(first, status);
    assert.equal(state, "completed", String(status));
    assertReplay(first, await again());
    assert.equal(await subject.effects(key), 1);
  }
  for (const status of [401, 403, 408, 425, 429, 500, 503]) {
    let failing = true;
    const route = declared(
      withStep((made) => {
        if (!failing) return new Response(made, { status: 201 });
        failing = false;
        return new Response("not now", { status });
      }),
    );
    const { key, first, state, again, served } = await asked(subject, route);
    assertFirst(first, status);
    assert.equal(state, "released", String(status));
    problemOf(await send(served.port, { target: path, ...json(key, { other: 1 }) }), "key_reused");
    const second = await again();
    assertFirst(second, 201);
    assert.equal(second.body.toString(), "made");
    assert.equal(await subject.effects(key), 1);
  }
}

/** Makes one effect by a step, which finishes. */
function withStep(
  answer: (made: string) => Response | Promise<Response>,
): (work: DeclaredWork) => Promise<Response> {
  return async ({ step, effect }) => {
    const made = await step("charge", BLIND, async () => {
      effect();
      return "made";
    });
    return await answer(made);
  };
}

async function open(subject: HostSubject): Promise<void> {
  for (const status of [200, 400, 402, 429, 500, 503]) {
    const { key, first, state, again } = await asked(
      subject,
      declared(async ({ step }) => {
        await step("mail", BLIND, broken).catch(() => {});
        return new Response("all is well", { status });
      }),
    );
    problemOf(first, "outcome_unknown", { status: 504, retry: "never" });
    assert.equal(state, "unknown");
    problemOf(await again(), "outcome_unknown", { retry: "never" });
    assert.equal(subject.runs(key), 1);
  }
  let failing = true;
  const { key, first, again, served } = await asked(
    subject,
    declared(async ({ step, effect, downstreamKey }) => {
      const charged = await step("charge", REPEATABLE, async (sent) => {
        assert.equal(sent, downstreamKey("charge"));
        if (failing) await broken();
        effect();
        return "made";
      });
      return new Response(charged);
    }),
  );
  problemOf(first, "outcome_unknown", { status: 504, retryAfter: true });
  problemOf(await send(served.port, { target: path, ...json(key, { other: 1 }) }), "key_reused");
  failing = false;
  assertFirst(await again(), 200);
  assert.equal(await subject.effects(key), 1);
}

async function streaming(subject: HostSubject): Promise<void> {
  const { first, state } = await asked(
    subject,
    declared(async ({ step }) => {
      await step("mail", BLIND, broken).catch(() => {});
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode("a"));
          setTimeout(() => {
            controller.enqueue(new TextEncoder().encode("b"));
            controller.close();
          }, 200);
        },
      });
      return new Response(body);
    }),
  );
  assert.ok(!first.complete);
  assert.equal(state, "unknown");
}

async function words(subject: HostSubject): Promise<void> {
  const thrown = [new NotPerformed(SECRET), new OutcomeUnknown(SECRET)];
  for (const error of thrown) {
    const alone = await asked(
      subject,
      declared(() => Promise.reject(error)),
    );
    problemOf(alone.first, "not_performed", { retryAfter: true });
    assert.equal(alone.state, "released");
    const partly = await asked(subject, declared(withStep(() => Promise.reject(error))));
    problemOf(partly.first, "unfinished", { retryAfter: true });
    assert.equal(partly.state, "released");
  }
  const declined = declared(async ({ step }) => {
    await step("charge", BLIND, async () => {
      throw new PermanentFailure({ status: 402, json: { code: "card_declined" } });
    });
    return new Response("never");
  });
  const { first, state, again } = await asked(subject, declined);
  assertFirst(first, 402);
  assert.deepEqual([state, first.body.toString()], ["failed_permanent", '{"code":"card_declined"}']);
  assertReplay(first, await again());
  const threw = await asked(subject, declared(withStep(() => Promise.reject(new Error(SECRET)))));
  assertFirst(threw.first, 500);
  assert.deepEqual([threw.state, linesOf(threw.first, "idempotency-status")], ["released", []]);
}

async function endless(subject: HostSubject): Promise<void> {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const { key, first, state, served, again } = await asked(
    subject,
    declared(async ({ step, effect }) => {
      const made = await step("charge", BLIND, async () => {
        await held;
        effect();
        return "made";
      });
      return new Response(made);
    }),
    { requestTimeout: 300, lease: "20s" },
  );
  problemOf(first, "outcome_unknown", { status: 504, retry: "never" });
  assert.equal(state, "unknown");
  letGo();
  await until(async () => (await served.record(key))?.state === "released");
  const second = await again();
  assertFirst(second, 200);
  assert.equal(second.body.toString(), "made");
  assert.equal(await subject.effects(key), 1);
}

async function safe(subject: HostSubject): Promise<void> {
  const route = declared(async ({ request, step }) => {
    if (request.header("x-effect") === undefined) return new Response("read");
    return new Response(await step("charge", BLIND, async () => "made"));
  });
  const { port, errors } = await subject.serve({ routes: [route] });
  assertFirst(await send(port, { method: "GET", target: path }), 200);
  assertFirst(await send(port, { method: "GET", target: path, headers: [["X-Effect", "1"]] }), 500);
  if (errors.length > 0) assert.match(String(errors[0]), /effects/);
}

async function begins(subject: HostSubject): Promise<void> {
  const route = (handle: (work: BeginningWork) => Promise<Response>): Route => ({
    path,
    effects: "begin",
    handle,
  });
  for (const status of [400, 404, 422, 500]) {
    const before = await asked(
      subject,
      route(async () => new Response("bad", { status })),
    );
    assertFirst(before.first, status);
    assert.equal(before.state, "released", `before, ${status}`);
    const after = await asked(
      subject,
      route(async ({ begin }) => {
        await begin();
        await begin();
        return new Response("bad", { status });
      }),
    );
    assertFirst(after.first, status);
    assert.equal(after.state, status === 500 ? "unknown" : "completed", `after, ${status}`);
  }
  const fails = await asked(
    subject,
    route(() => Promise.reject(new Error(SECRET))),
  );
  assert.deepEqual([fails.first.status, fails.state], [500, "released"]);
  const made = await asked(
    subject,
    route(async () => new Response("nothing to do")),
  );
  assertReplay(made.first, await made.again());
}

async function replayed(subject: HostSubject): Promise<void> {
  const settings = { onAmbiguous: "replay" } as const;
  const handles: readonly (() => Promise<Response>)[] = [
    async () => new Response("gone wrong", { status: 500 }),
    () => Promise.reject(new Error(SECRET)),
    () => Promise.reject(new OutcomeUnknown(SECRET)),
  ];
  for (const handle of handles) {
    const { key, first, state, again, served } = await asked(subject, {
      path,
      settings,
      handle: (work) => {
        work.effect();
        return handle();
      },
    });
    assertFirst(first, 500);
    assert.equal(state, "completed");
    assertReplay(first, await again());
    assert.equal(await subject.effects(key), 1);
    assert.equal(served.events.filter(({ type }) => type === "ambiguity_overridden").length, 1);
    assert.ok(served.storeCalls.includes("audit"));
  }
}
