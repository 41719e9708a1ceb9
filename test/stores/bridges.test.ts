import { describe } from "vitest";
import { onEveryLayer } from "./bridges-layers.ts";
import { unitTests } from "./bridges-units.ts";
import { verdictTests } from "./bridges-verdicts.ts";

describe("a unit that a layer of the user's opens", () => {
  onEveryLayer((given) => {
    unitTests(given);
    verdictTests(given);
  });
});
