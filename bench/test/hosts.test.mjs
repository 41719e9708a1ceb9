import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const script = join(import.meta.dirname, "../hosts.mjs");
const run = (...given) => spawnSync(process.execPath, [script, ...given], { encoding: "utf8" });

test("the bench of the hosts tells what each request took, as a table and as JSON", () => {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-"));
  try {
    const json = join(folder, "figures.json");
    const { status, stdout, stderr } = run("--quick", "--calls", "20", "--hosts", "Koa,Hono", "--json", json);
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/\| Koa +\| bare /);
    expect(stdout).toMatch(/\| +\| without a key, behind the mount /);
    const { sections } = JSON.parse(readFileSync(json, "utf8"));
    expect(sections.map(({ host, rows }) => [host, rows.length])).toEqual([
      ["Koa", 4],
      ["Hono", 4],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);

test("it refuses a host that it does not know", () => {
  const { status, stderr } = run("--hosts", "Nobody");
  expect(status).toBe(1);
  expect(stderr).toContain('and not "Nobody"');
});
