import { defineConfig } from "vitest/config";
import { finalWords } from "./test/support/reporter.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "examples/settlement/test/**/*.test.ts", "bench/test/**/*.test.mjs"],
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
