import type { TestProject } from "vitest/node";
import { holdPostgres } from "./postgres.ts";

/** Finds or starts, once per run, what the tests need; hands back what ends it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { CI, TEST_POSTGRES_URL } = process.env;
  const { service, stop } = await holdPostgres({ url: TEST_POSTGRES_URL });
  project.provide("postgres", service);
  switch (service.kind) {
    case "running":
      // Processes that tests start read it from their environment.
      Object.assign(process.env, { TEST_POSTGRES_URL: service.url });
      return stop;
    case "missing":
      console.warn(`\nPostgreSQL is NOT tested in this run: ${service.reason}\n`);
      // A continuous integration that quietly tests less would be worth nothing.
      if (CI === "true") process.exitCode = 1;
      return stop;
  }
}
