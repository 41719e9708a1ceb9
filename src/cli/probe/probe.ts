import { binding, exchanging } from "./binding.ts";
import { CHECKS } from "./checks.ts";
import type { Examination } from "./examination.ts";
import { type Finding, fault, notShown, passed } from "./finding.ts";
import { type First, firstRequests } from "./first.ts";
import { keys } from "./keys.ts";
import { racing } from "./racing.ts";
import { CannotProbeError, NoAnswerError, OutOfTimeError } from "./refusal.ts";
import { replaying } from "./replaying.ts";
import { saying } from "./saying.ts";
import type { ProbeSettings } from "./settings.ts";
import { createTrial, type Trial } from "./trial.ts";

/** What a probe found out; `unfinished` says why it did not get to its end. */
export type Probed =
  | { readonly kind: "probed"; readonly findings: readonly Finding[]; readonly unfinished: string | null }
  | { readonly kind: "cannot"; readonly reason: string };

const EXAMINATIONS: readonly Examination[] = [racing, replaying, binding, keys, exchanging, saying];

/**
 * Tries on a running server what an endpoint with an idempotency key owes to its clients. It makes real effects. It ends
 * within its time limit, whatever the server does.
 */
export async function probe(settings: ProbeSettings): Promise<Probed> {
  const trial = createTrial(settings);
  try {
    return await examined(trial, await firstRequests(trial));
  } catch (error) {
    if (error instanceof CannotProbeError || error instanceof OutOfTimeError) {
      return { kind: "cannot", reason: error.message };
    }
    throw error;
  }
}

async function examined(trial: Trial, first: First): Promise<Probed> {
  const findings: Finding[] = [];
  const silences: string[] = [];
  let unfinished: string | null = null;
  for (const examination of EXAMINATIONS) {
    if (unfinished !== null) {
      findings.push(...without(examination, unfinished));
      continue;
    }
    try {
      findings.push(...(await examination.examine(trial, first)));
    } catch (error) {
      if (error instanceof NoAnswerError) silences.push(`${examination.ids.join(", ")}: ${error.message}`);
      else if (error instanceof OutOfTimeError || error instanceof CannotProbeError)
        unfinished = error.message;
      else throw error;
      findings.push(...without(examination, unfinished ?? "a request got no answer"));
    }
  }
  return { kind: "probed", findings: inOrder([answered(trial, silences), ...findings]), unfinished };
}

/** As readers find the checks in the guide, whatever order their requests are sent in. */
function inOrder(findings: readonly Finding[]): readonly Finding[] {
  const ids = Object.keys(CHECKS);
  return findings.toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id));
}

function without({ ids }: Examination, why: string): readonly Finding[] {
  return ids.map((id) => notShown(id, why));
}

function answered(trial: Trial, silences: readonly string[]): Finding {
  if (silences.length > 0) return fault("answers", silences.join("; "));
  return passed("answers", `${trial.asked()} requests`);
}
