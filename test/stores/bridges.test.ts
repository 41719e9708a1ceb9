import { describe } from "vitest";
import { onEveryLayer } from "./bridges-layers.ts";
import { unitTests } from "./bridges-units.ts";

describe("a unit that a layer of the user's opens", () => onEveryLayer(unitTests));
