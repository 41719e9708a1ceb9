import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cellsOf, hostsOf } from "./hosts.ts";
import { hostLaws } from "./laws.ts";

const page = readFileSync(new URL("../../docs/reference/host-laws.md", import.meta.url), "utf8");
const HOW = "node scripts/host-laws.mjs writes docs/reference/host-laws.md anew";

test("the page lists every law, each with its promise, and no other", () => {
  const [, table = ""] = page.split(/^(?=\| law )/m);
  const [, , ...rows] = table.split("\n").filter((line) => line.startsWith("|"));
  const listed = rows.map((row) => cellsOf(row).slice(0, 2).join(": "));
  expect(listed, HOW).toEqual(hostLaws.map(({ id, promise }) => `${id}: ${promise}`));
});

test("the page lists as many hosts as are held to the laws; each of them looks for itself", () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".test.ts"));
  const held = files.filter((name) =>
    /^holdToLaws\(/m.test(readFileSync(new URL(name, import.meta.url), "utf8")),
  );
  expect(hostsOf(page), HOW).toHaveLength(held.length);
});

test("no cell is left open: each says that the law passed, or why it was skipped", () => {
  const cells = page
    .split("\n")
    .filter((line) => line.startsWith("| ") && cellsOf(line).length > 2)
    .slice(2)
    .flatMap((line) => cellsOf(line).slice(2));
  expect(
    cells.filter((cell) => !/^(passed|– _[a-z ]+_)$/.test(cell)),
    HOW,
  ).toEqual([]);
});
