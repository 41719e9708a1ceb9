import type { TestProject } from "vitest/node";
import { findPgbouncer, type PgbouncerService } from "./pgbouncer.ts";
import { holdPostgres, type PostgresService } from "./postgres.ts";

/** Finds or starts, once per run, what the tests need; hands back what ends it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { CI, TEST_POSTGRES_URL } = process.env;
  const { service, stop } = await holdPostgres({ url: TEST_POSTGRES_URL });
  const pgbouncer = pgbouncerBefore(service);
  project.provide("postgres", service);
  project.provide("pgbouncer", pgbouncer);
  // Processes that tests start read it from their environment.
  if (service.kind === "running") Object.assign(process.env, { TEST_POSTGRES_URL: service.url });
  for (const [name, found] of Object.entries({ PostgreSQL: service, PgBouncer: pgbouncer })) {
    if (found.kind !== "missing") continue;
    console.warn(`\n${name} is NOT tested in this run: ${found.reason}\n`);
    // A continuous integration that quietly tests less would be worth nothing.
    if (CI === "true") process.exitCode = 1;
  }
  return stop;
}

function pgbouncerBefore({ kind }: PostgresService): PgbouncerService {
  if (kind === "running") return findPgbouncer({ path: process.env["PATH"] });
  return { kind: "missing", reason: "there is no PostgreSQL to put it in front of" };
}
