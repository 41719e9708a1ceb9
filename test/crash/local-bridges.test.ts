import { describe } from "vitest";
import { survivesKills } from "./support/kills.ts";

const FORMS = ["postgres.js", "pg bridge", "postgres.js bridge", "kysely", "drizzle", "knex"] as const;

describe("local effects on PostgreSQL in transactions that a layer opens", () => {
  for (const form of FORMS) survivesKills({ form, database: "PostgreSQL" });
});
