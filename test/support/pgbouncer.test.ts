import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findPgbouncer } from "./pgbouncer.ts";

test.each([
  ["is found where it tells its version", "echo PgBouncer 9.8.7", { kind: "installed", version: "9.8.7" }],
  ["is missing where it tells none", "exit 3", { kind: "missing", reason: expect.stringMatching(/code 3$/) }],
])("a PgBouncer %s", (_what, script, found) => {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-found-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const command = join(folder, "pgbouncer");
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  expect(findPgbouncer({ path: folder })).toMatchObject(found);
});
