// A request of three payments, each of them a declared effect at a bank that offers something else.
import { PermanentFailure } from "oncekey";
import { reached } from "./failpoints.mjs";
import { tell, tellRun } from "./telling.mjs";
import { openBank } from "./work.mjs";

/** In the order in which they are made. The bank of the second one executes whatever it is sent, once more each time. */
const STEPS = ["charge", "order", "receipt"];

/** The steps of a purchase that a worker must know, and its handler; no row of the domain says that it was made. */
export function purchases({ bankUrl, frontUrl, mutant, chance, settings }) {
  const deduplicating = openBank({ bankUrl, provider: "keyed", mutant, chance, settings });
  const askedOnly = openBank({ bankUrl: frontUrl, provider: "query", mutant, chance, settings });
  const banks = { charge: deduplicating, order: askedOnly, receipt: deduplicating };
  const steps = {
    charge: {
      provider: "keyed",
      look: async ({ attempt }) => seen(await deduplicating.look(attempt)),
      cancel: ({ attempt }) => deduplicating.cancel(attempt),
    },
    order: {
      provider: "query",
      validFor: askedOnly.validForMs,
      look: async ({ attempt }) => seen(await askedOnly.look(attempt)),
    },
  };
  const handle = (inputOf) => async (c, attempt) => {
    const input = await inputOf(c);
    const { mark } = input.body;
    tellRun(input, attempt.number);
    const made = {};
    for (const step of STEPS) {
      const decision = await decided({ bank: banks[step], step, input, attempt });
      if (decision.status === "declined") return c.json({ mark, made, declined: step }, 402);
      made[step] = decision.externalReference;
    }
    return c.json({ mark, made }, 201);
  };
  return { steps, handle };
}

/** What the bank said to a step, in this attempt or in an earlier one. */
async function decided({ bank, step, input, attempt: { number, effect } }) {
  const whose = { principal: input.principal, key: input.key, step, attempt: number };
  let called = false;
  const call = async (downstreamKey, given) => {
    called = true;
    tell({ kind: "called", ...whose });
    reached("step marked");
    const decision = await bank.pay({ ...input, step }, { ...given, downstreamKey });
    reached("step answered");
    if (decision.status === "declined") throw new PermanentFailure(decision);
    return decision;
  };
  const decision = await orRefusal(
    step === "receipt" ? effect(step, { provider: "repeatable", keyTtl: "24h" }, call) : effect(step, call),
  );
  tell({ kind: "kept", ...whose, called });
  if (called) reached("step kept");
  return decision;
}

async function orRefusal(decision) {
  try {
    return await decision;
  } catch (error) {
    if (error instanceof PermanentFailure) return error.answer;
    throw error;
  }
}

function seen(sighted) {
  return sighted.kind === "found" && sighted.result.status === "declined"
    ? { kind: "refused", failure: sighted.result }
    : sighted;
}
