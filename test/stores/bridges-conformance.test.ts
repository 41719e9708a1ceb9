import { describe } from "vitest";
import { unitLaws } from "./bridges-laws.ts";
import { onEveryLayer } from "./bridges-layers.ts";

describe("what the port promises of units holds where a layer of the user's opens its transactions:", () => {
  onEveryLayer(unitLaws());
});
