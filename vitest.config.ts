import { configDefaults, defineConfig } from "vitest/config";
import { finalWords } from "./test/support/reporter.ts";

/** Where `scripts/test-prisma.mjs` has put a Prisma; without one its tests are no part of a run. */
const prisma = process.env["PRISMA_HOME"];
const ofPrisma = "test/prisma/*.test.ts";
const all = ["test/**/*.test.ts", "examples/settlement/test/**/*.test.ts", "bench/test/**/*.test.mjs"];

export default defineConfig({
  oxc: { decorator: { legacy: true } }, // as Nest's users compile theirs
  test: {
    include: prisma === undefined ? all : [ofPrisma],
    exclude: [...configDefaults.exclude, ...(prisma === undefined ? [ofPrisma] : [])],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup.ts"],
    reporters: ["default", finalWords()],
    pool: "forks",
    fileParallelism: true,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
