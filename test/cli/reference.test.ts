import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { commandIsBuilt } from "../support/command.ts";

beforeAll(commandIsBuilt);

test("docs/reference/cli.md says what the command's own help says; else: node scripts/cli-reference.mjs", () => {
  const root = join(import.meta.dirname, "../..");
  const script = join(root, "scripts/cli-reference.mjs");
  const page = readFileSync(join(root, "docs/reference/cli.md"), "utf8");
  expect(page).toBe(execFileSync(process.execPath, [script, "--print"], { encoding: "utf8" }));
});
