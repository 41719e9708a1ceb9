import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

/** `npm run bench:footprint` makes ten thousand; what grows by a part of each body shows here, too. */
test("memory stays flat under keyed requests of 100 KB, and one of 50 MB without a key costs no copy of its body", () => {
  const script = join(import.meta.dirname, "../footprint.mjs");
  const run = spawnSync(process.execPath, [script, "--requests", "800"], { encoding: "utf8" });
  expect(`${run.stdout}${run.stderr}`).toContain("grownBytes");
  expect(run.status, run.stderr).toBe(0);
}, 180_000);
