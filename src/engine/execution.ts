import { EXECUTION_STEP, executionMark, executionWord, markedExecution } from "../core/execution.ts";
import type { Due, KeyRecord, StepOf } from "../core/record.ts";
import type { BeginRequest } from "./begin.ts";

type Named = Pick<BeginRequest, "execution">;

/** The steps of a claim, with the mark of the execution that makes it. */
export function withExecution(
  steps: ReadonlyMap<string, StepOf<Due>>,
  { execution }: Named,
  owner: string,
): ReadonlyMap<string, StepOf<Due>> {
  if (execution === undefined) return steps;
  const said = new TextEncoder().encode(executionWord(owner, execution));
  return new Map(steps).set(EXECUTION_STEP, executionMark(said));
}

/** Whether the standing claim was made by the execution that asks. */
export function isReentered(record: KeyRecord, { execution }: Named): boolean {
  const marked = execution === undefined ? null : markedExecution(record);
  if (execution === undefined || marked === null) return false;
  return new TextDecoder().decode(marked) === executionWord(record.owner, execution);
}
