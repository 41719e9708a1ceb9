import { describe, expect, test } from "vitest";
import { LARGE, SMALL } from "./configurations.ts";
import { type Configuration, explored, walked } from "./explore.ts";
import { libraryIn } from "./library.ts";
import { inTurns, numberOf } from "./turns.ts";

/** Runs of one configuration before a search counts as too large for where it is made. */
const MOST = numberOf("EXPLORE", 0);

const HOUR_MS = 3_600_000;

describe("searched to the end, no promise is broken", () => {
  test.each(SMALL.map((each) => [each.kind, each.name, each] as const))(
    "%s: %s",
    { timeout: HOUR_MS },
    async (_kind, _name, configuration) => {
      const { exhausted, runs } = await searched(configuration, 100_000);
      expect({ exhausted, runs }).toEqual({ exhausted: true, runs });
    },
  );
});

describe.runIf(MOST > 0)("searched as far as EXPLORE says, no promise is broken", () => {
  test.each(LARGE.map((each) => [each.kind, each.name, each] as const))(
    "%s: %s",
    { timeout: 24 * HOUR_MS },
    async (kind, name, configuration) => {
      const { runs, states, exhausted } = await searched(configuration, MOST);
      console.log(`${kind}: ${name}: ${runs} runs, ${states} states${exhausted ? "" : ", not exhausted"}`);
    },
  );
});

async function searched(configuration: Configuration, most: number) {
  const library = libraryIn();
  const search = explored(configuration, library, most);
  let next = search.next();
  await inTurns(() => {
    if (next.done !== true) next = search.next();
    return next.done !== true;
  });
  if (next.done !== true) throw new Error("A search ends.");
  const { found } = next.value;
  if (found === null) return next.value;
  const lines: string[] = [];
  await inTurns(() => {
    walked(configuration, library, found.choices, null, (line) => lines.push(line));
    return false;
  });
  const { invariant, what } = found.violation;
  throw new Error(
    [`${configuration.kind}: ${configuration.name}: ${invariant}: ${what}`, ...lines].join("\n"),
  );
}
