import assert from "node:assert/strict";
import { sharedPrincipal } from "../../../src/http/guests.ts";
import type { HostLaw, HostSubject, Route } from "../law.ts";
import { send } from "../wire.ts";
import { assertFirst, assertReplay, json, keyed, problemOf } from "./said.ts";

/** Callers whom the service does not know, by the programmer's explicit word. */
export const guestLaws: readonly HostLaw[] = [
  {
    id: "SE-01 guests",
    promise:
      "guests share their keys, which have to be too long to guess, and nobody else has a part in them",
    check: guests,
  },
];

async function guests(subject: HostSubject): Promise<void> {
  const shared = sharedPrincipal("checkout without login");
  const route: Route = {
    path: "/charges",
    principal: (request) => request.header("x-user") ?? shared(),
    handle: ({ effect }) => {
      effect();
      return Response.json({ made: Math.random() }, { status: 201 });
    },
  };
  const { port, storeCalls } = await subject.serve({ routes: [route] });
  const refused = problemOf(
    await send(port, { target: "/charges", ...keyed("k".repeat(31)) }),
    "key_invalid",
  );
  assert.match(String(refused["detail"]), /at least 32 characters/);
  assert.deepEqual(storeCalls, []);
  const key = subject.newKey().padEnd(32, "k");
  const ask = (user?: string) =>
    send(port, { target: "/charges", ...json(key, {}, user === undefined ? [] : [["X-User", user]]) });
  const first = await ask();
  assertFirst(first, 201);
  assertReplay(first, await ask());
  assertFirst(await ask("alice"), 201);
  problemOf(await ask("oncekey:guests"), "principal_unresolved");
  assert.equal(await subject.effects(key), 2);
}
