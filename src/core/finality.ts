import { hasBegun } from "./begun.ts";
import { type Conclusion, concludeEnding, type Working } from "./ending.ts";
import type { Answer } from "./record.ts";
import { hasFinished, openMarks } from "./step.ts";
import { doubtful } from "./verdict.ts";

/** What an answer means by the programmer's word. */
export type Finality = "completed" | "failed_permanent" | "released" | "unknown";

export type Overruled =
  | { readonly kind: "taken"; readonly conclusion: Conclusion }
  /** What is on record speaks against it, and the answer means what it means by itself. */
  | { readonly kind: "refused"; readonly reason: string };

/** What is on record of the effects of an attempt whose handler has ended, and whose transaction did not commit. */
export function effectOnRecord(attempt: Working): "none" | "done" | "maybe" {
  switch (attempt.effects) {
    case "transaction":
      return "none";
    case "declared":
      if (openMarks(attempt.steps).length > 0) return "maybe";
      return hasFinished(attempt) ? "done" : "none";
    case "none":
      return hasBegun(attempt) ? "maybe" : "none";
  }
}

/** Takes the programmer's word about an answer, as far as nothing that is proved speaks against it. */
export function overrule(attempt: Working, answer: Answer, said: Finality): Overruled {
  const isDone = effectOnRecord(attempt) === "done";
  switch (said) {
    case "completed":
      return { kind: "taken", conclusion: { kind: "conclude", state: said, answer } };
    case "failed_permanent":
      if (isDone) return { kind: "refused", reason: "An effect was made, so this is no refusal." };
      return { kind: "taken", conclusion: { kind: "conclude", state: said, answer } };
    case "released": {
      const usual = concludeEnding(attempt, { kind: "answered", answer });
      if (isDone && usual.kind !== "release")
        return {
          kind: "refused",
          reason: "An effect was made, and the handler said that it is the outcome.",
        };
      return { kind: "taken", conclusion: { kind: "release" } };
    }
    case "unknown":
      if (attempt.effects !== "none")
        return { kind: "refused", reason: "Effects are on record here, and none of them is in doubt." };
      return { kind: "taken", conclusion: doubtful(SAID_UNKNOWN, "hold", null) };
  }
}

const SAID_UNKNOWN = "The route's finality said that nobody knows.";
