import assert from "node:assert/strict";
import { PermanentFailure } from "../../../src/errors.ts";
import type { HostLaw, HostSubject, Route, Served } from "../law.ts";
import { linesOf, send, type WireAnswer } from "../wire.ts";
import { assertFirst, keyed, problemOf } from "./said.ts";

/** That what a route does not want kept is not kept, and that its copies are told so. */
export const secretLaws: readonly HostLaw[] = [
  {
    id: "SE-04 none",
    promise: 'with store: "none" an answer is sent and not kept, and its copies hear what it was',
    check: unkept,
  },
  {
    id: "SE-04 committed",
    promise: 'with store: "none" nor is one that commits with its effect, also where its reply is lost',
    needs: "transactions",
    check: committed,
  },
];

const SECRET = "sk_live_123";
const settings = { store: "none" } as const;
const made = () =>
  new Response(JSON.stringify({ token: SECRET }), {
    status: 201,
    headers: { "content-type": "application/json", location: "/charges/1" },
  });

async function unkept(subject: HostSubject): Promise<void> {
  const routes: readonly Route[] = [
    {
      ...{ path: "/plain", settings },
      handle: ({ effect }) => {
        effect();
        return made();
      },
    },
    {
      ...{ path: "/declared", settings },
      effects: "declared",
      handle: async ({ effect, step }) => {
        await step("charge", { provider: "blind" }, async () => effect());
        return made();
      },
    },
    {
      ...{ path: "/refused", settings },
      handle: ({ effect }) => {
        effect();
        throw new PermanentFailure({
          ...{ status: 402, headers: { location: "/charges/1" } },
          json: { token: SECRET },
        });
      },
    },
  ];
  const { port, record } = await subject.serve({ routes });
  for (const { path } of routes) {
    const key = subject.newKey();
    const status = path === "/refused" ? 402 : 201;
    const first = await send(port, { target: path, ...keyed(key) });
    assertSent(first, status);
    const kept = await record(key);
    assert.ok(kept?.state === "completed" || kept?.state === "failed_permanent");
    assert.equal(kept.answer.body, null);
    assertTold(await send(port, { target: path, ...keyed(key) }), status);
    assert.equal(await subject.effects(key), 1);
  }
}

async function committed(subject: HostSubject): Promise<void> {
  const answer = { status: 201, headers: { location: "/charges/1" }, json: { token: SECRET } };
  for (const commits of ["one", "two"] as const) {
    let losing = 0;
    const served: Served = await subject.serve({
      routes: [
        {
          ...{ path: "/charges", commits, settings },
          effects: "transaction",
          handle: async ({ commit }) => {
            served.loseReplies(losing);
            return await commit(answer);
          },
        },
      ],
    });
    for (const lost of [0, 1]) {
      losing = lost;
      const key = subject.newKey();
      const request = { target: "/charges", ...keyed(key) };
      const first = await send(served.port, request);
      if (lost === 0) assertSent(first, 201);
      else assertTold(first, 201); // only the record knows of the commit, and it has no body
      assertTold(await send(served.port, request), 201);
      assert.equal(await subject.effects(key), 1);
    }
  }
}

/** The first answer, as it would be on any route. */
function assertSent(answer: WireAnswer, status: number): void {
  assertFirst(answer, status);
  assert.deepEqual(JSON.parse(answer.body.toString()), { token: SECRET });
  assert.deepEqual(linesOf(answer, "location"), ["/charges/1"]);
}

function assertTold(copy: WireAnswer, status: number): void {
  const problem = problemOf(copy, "response_not_stored");
  assert.equal(problem["originalStatus"], status);
  assert.deepEqual(linesOf(copy, "location"), ["/charges/1"]);
  assert.ok(!copy.body.includes(SECRET));
}
