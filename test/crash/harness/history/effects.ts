import type { Case, Final } from "./cases.ts";
import type { Answer } from "./history.ts";
import type { Rule } from "./rule.ts";

/** How often things may have happened, and when they must have. */
export const effectRules: readonly Rule[] = [
  {
    guarantee: "G1",
    promise: "a key has at most one effect",
    faults: ({ effects }) =>
      effects.length > 1
        ? [`has ${effects.length} effects, of attempts ${effects.map(({ attempt }) => attempt).join(", ")}`]
        : [],
  },
  {
    guarantee: "G5",
    promise: "the provider executed a key, or each step of it, at most once",
    faults: ({ executions }) => repeatedIn(executions),
  },
  {
    guarantee: "G4",
    promise: "an answer names the steps that were made and no others: all of them, or those before a refusal",
    faults: (one) =>
      one.asked.effect === "declared" ? one.finals.flatMap((final) => misnamedBy(final, one)) : [],
  },
  {
    guarantee: "G4",
    promise: "an answer that tells of an effect is followed by that effect",
    faults: (one) => (answered(one, one.asked.done) ? unmadeIn(one) : []),
  },
  {
    guarantee: "G4",
    promise: "an answer that refuses is followed by no effect",
    faults: (one) =>
      one.asked.effect !== "declared" && answered(one, one.asked.refused) ? madeIn(one, "was refused") : [],
  },
  {
    guarantee: "G4",
    promise: "record and effect agree",
    faults: (one) => {
      switch (one.standing.state) {
        case "completed":
          return one.asked.done.includes(one.standing.answer?.status ?? 0) ? unmadeIn(one) : [];
        case "released":
          // What its steps have made stays made, and the next copy goes on from there.
          return one.asked.effect === "declared" ? [] : madeIn(one, "is released");
        case "failed_permanent":
        case "absent":
          return madeIn(one, `is ${one.standing.state}`);
        case "in_progress":
          return [];
        case "unknown":
          return one.effects.length > 0 ? ["is unknown, and has an effect"] : [];
      }
    },
  },
];

function answered({ finals }: Case, statuses: readonly number[]): boolean {
  return finals.some(({ answer }) => statuses.includes(answer.status));
}

/** What is missing of an effect that was told of, or is on record. */
function unmadeIn({ asked, effects, executions, finals }: Case): readonly string[] {
  if (asked.effect === "declared") return []; // its answer has to name them
  const [effect] = effects;
  if (effect === undefined) return ["is done, and has no effect"];
  const unnamed = finals
    .filter(({ answer }) => asked.done.includes(answer.status) && !answer.body.includes(effect.id))
    .map(({ answer }) => `has the effect ${effect.id}, and was answered ${answer.body}`);
  const external = asked.effect !== "local" && executions.length === 0;
  return external ? [...unnamed, "is done, and the provider did nothing"] : unnamed;
}

function madeIn({ effects, executions }: Case, what: string): readonly string[] {
  if (effects.length > 0) return [`${what}, and has an effect`];
  return executions.length > 0 ? [`${what}, and the provider executed it`] : [];
}

function repeatedIn(executions: Case["executions"]): readonly string[] {
  const steps = new Set(executions.map(({ step }) => step));
  return [...steps].flatMap((step) => {
    const { length } = executions.filter((execution) => execution.step === step);
    const what = `was executed ${length} times by the provider`;
    return length > 1 ? [step === null ? what : `${what} for its step ${step}`] : [];
  });
}

function misnamedBy({ answer }: Final, { asked, executions }: Case): readonly string[] {
  const isDone = asked.done.includes(answer.status);
  if (!isDone && !asked.refused.includes(answer.status)) return []; // no outcome of this request, as another rule says
  const named = namedIn(answer);
  const made = executions.map(({ step, id }) => [String(step), id] as const);
  const due = isDone ? asked.steps : asked.steps.slice(0, Math.min(named.length, asked.steps.length - 1));
  const order = named.map(([step]) => step);
  return [
    ...(order.join() === due.join() ? [] : [`was answered ${answer.status}, and names ${shown(named)}`]),
    ...(shown(named) === shown(made) ? [] : [`names ${shown(named)}, and the provider made ${shown(made)}`]),
  ];
}

/** Each step that the answer says was made, and what it is called at the provider. */
function namedIn({ body }: Answer): readonly (readonly [step: string, id: string])[] {
  const { made } = JSON.parse(Buffer.from(body, "latin1").toString("utf8"));
  return Object.entries(made ?? {}).map(([step, id]) => [step, String(id)] as const);
}

function shown(made: readonly (readonly [step: string, id: string])[]): string {
  const each = made.map(([step, id]) => `${step} as ${id}`).sort();
  return each.length === 0 ? "nothing" : each.join(", ");
}
