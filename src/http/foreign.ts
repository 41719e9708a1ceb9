import { concludeEnding, type Ending, type Working } from "../core/ending.ts";

/** What an answer means that something else made while the handler ran: only the handler may say that it did nothing. */
export function saidByOthers(record: Working, ending: Ending): Ending {
  if (concludeEnding(record, ending).kind !== "release") return ending;
  return {
    kind: "unsettled",
    reason: "Something other than the handler had answered that nothing was done.",
  };
}
