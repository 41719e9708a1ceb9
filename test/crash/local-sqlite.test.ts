import { describe } from "vitest";
import { survivesKills } from "./support/kills.ts";

describe("local effects on SQLite", () => survivesKills({ form: "sqlite", database: "SQLite" }));
