import { describe } from "vitest";
import { survivesKills } from "./support/kills.ts";

describe("local effects on PostgreSQL", () => {
  survivesKills({ form: "postgres", database: "PostgreSQL" });
  survivesKills({ form: "one", database: "PostgreSQL" });
});
