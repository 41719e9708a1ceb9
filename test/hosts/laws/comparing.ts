import assert from "node:assert/strict";
import type { HostSubject, Route } from "../law.ts";
import { send, type WireAnswer, type WireRequest } from "../wire.ts";
import { assertFirst, assertReplay, keyed, problemOf } from "./said.ts";

/** Whether a later request is taken for the first one. */
export type Verdict = "same" | "other";

export type Variant = Omit<WireRequest, "target"> & { readonly target?: string };

/** A route that answers another way each time it runs. */
export const echo = (settings: Route["settings"] = {}, path = "/charges"): Route => ({
  path,
  settings,
  handle: async ({ effect, request }) => {
    effect();
    return new Response(`${await request.text()} ${Math.random()}`, { status: 201 });
  },
});

/** Sends a request under a new key, then each variant of it under the same. */
export async function compared(
  subject: HostSubject,
  first: Variant,
  variants: readonly (readonly [Verdict, Variant])[],
  route: Route = echo(),
): Promise<void> {
  const { port } = await subject.serve({ routes: [route] });
  const key = subject.newKey();
  const sent = async (variant: Variant) => {
    const own = (variant.headers ?? []).filter(([name]) => name !== "Idempotency-Key");
    return await send(port, { target: "/charges", ...variant, ...keyed(key, own) });
  };
  const answer = await sent(first);
  assertFirst(answer, 201);
  for (const [verdict, variant] of variants) judge(answer, await sent(variant), verdict, variant);
  assert.equal(await subject.effects(key), 1);
}

function judge(first: WireAnswer, answer: WireAnswer, verdict: Verdict, what: unknown): void {
  const expected = verdict === "same" ? first.status : 422;
  assert.equal(answer.status, expected, `${verdict}: ${JSON.stringify(what)} got ${answer.status}`);
  if (verdict === "same") assertReplay(first, answer);
  else problemOf(answer, "key_reused", { effect: "done" });
}
