import { resolve } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";
import type { PgbouncerService } from "./pgbouncer.ts";
import type { PostgresService } from "./postgres.ts";
import { sqliteVersion } from "./sqlite-module.ts";

/**
 * Says, as the very last words of a run, which stores were tested and how many tests passed.
 * The last line never reports 0 failures for a run that ends with a failing exit code.
 */
export function finalWords(): Reporter {
  let running: Vitest | undefined;
  let stores = "Stores: none was tested; the run ended before any test did.";
  let totals: Totals = { passed: 0, failed: 0, skipped: 0 };
  return {
    onInit: (vitest) => {
      running = vitest;
      process.once("exit", () => process.stdout.write(`\n${stores}\n\n${lineOf(totals)}\n`));
    },
    onTestRunEnd: (modules, strayErrors) => {
      totals = totalsOf({ modules, strayErrors: strayErrors.length });
      if (running !== undefined) stores = storesOf({ vitest: running, modules });
    },
  };
}

type Totals = { readonly passed: number; readonly failed: number; readonly skipped: number };

function lineOf({ passed, failed, skipped }: Totals): string {
  const atLeast = process.exitCode ? 1 : 0;
  const line = `${passed} passed, ${Math.max(failed, atLeast)} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

type Run = { readonly vitest: Vitest; readonly modules: readonly TestModule[] };

function storesOf({ vitest, modules }: Run): string {
  const opened = new Set(modules.flatMap((module) => module.meta().storesOpened ?? []));
  const provided = vitest.projects[0]?.getProvidedContext();
  const lines = [
    ["memory", usesMemoryStore({ vitest, modules }) ? "tested" : unused],
    ["SQLite", opened.has("SQLite") ? `tested: ${sqliteVersion()}` : unused],
    ["PostgreSQL", postgresLine(provided?.postgres, opened.has("PostgreSQL"))],
    ["PgBouncer", pgbouncerLine(provided?.pgbouncer, opened.has("PgBouncer"))],
  ];
  return ["Stores", ...lines.map(([name, line]) => `  ${name?.padEnd(12)}${line}`)].join("\n");
}

const unused = "not tested: no test of this selection used it";

function postgresLine(service: PostgresService | undefined, opened: boolean): string {
  if (service?.kind === "missing") return `NOT TESTED: ${service.reason.split("\n")[0]}`;
  return service !== undefined && opened ? `tested: ${service.version}, ${service.origin}` : unused;
}

function pgbouncerLine(service: PgbouncerService | undefined, opened: boolean): string {
  if (service?.kind === "missing") return `NOT TESTED: ${service.reason}`;
  const where = "in transaction mode, in front of PostgreSQL";
  return service !== undefined && opened ? `tested: ${service.version}, ${where}` : unused;
}

/** The memory store needs no opening; that a test imported it is the sign that it was used. */
function usesMemoryStore({ vitest, modules }: Run): boolean {
  const file = resolve(vitest.config.root, "src/stores/memory.ts");
  return modules.some((module) => module.viteEnvironment?.moduleGraph.getModulesByFile(file) !== undefined);
}

type Counted = { readonly modules: readonly TestModule[]; readonly strayErrors: number };

function totalsOf({ modules, strayErrors }: Counted): Totals {
  const states = modules.flatMap((module) =>
    [...module.children.allTests()].map((test) => test.result().state),
  );
  const count = (wanted: string) => states.filter((state) => state === wanted).length;
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  const brokenSuites = suites.filter((suite) => suite.errors().length > 0).length;
  // A test still pending when the run ends did not pass.
  const failed = count("failed") + count("pending") + brokenSuites + strayErrors;
  return { passed: count("passed"), failed, skipped: count("skipped") };
}
