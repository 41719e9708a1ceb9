import type { Case } from "./cases.ts";
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
    promise: "the provider executed a key at most once",
    faults: ({ executions }) =>
      executions.length > 1 ? [`was executed ${executions.length} times by the provider`] : [],
  },
  {
    guarantee: "G4",
    promise: "an answer that tells of an effect is followed by that effect",
    faults: (one) => (answered(one, one.asked.done) ? unmadeIn(one) : []),
  },
  {
    guarantee: "G4",
    promise: "an answer that refuses is followed by no effect",
    faults: (one) => (answered(one, one.asked.refused) ? madeIn(one, "was refused") : []),
  },
  {
    guarantee: "G4",
    promise: "record and effect agree",
    faults: (one) => {
      switch (one.standing.state) {
        case "completed":
          return one.asked.done.includes(one.standing.answer?.status ?? 0) ? unmadeIn(one) : [];
        case "failed_permanent":
        case "released":
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
