import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type {
  BeginningOptions,
  DeclaredOptions,
  RouteOptions,
  TransactionOptions,
} from "../../src/http/route.ts";

type Every =
  | keyof RouteOptions<never>
  | keyof TransactionOptions<never>
  | keyof DeclaredOptions<never>
  | keyof BeginningOptions<never>;

/** Every option of a route, and no other, or this does not compile. */
const OPTIONS: Readonly<Record<Every, true>> = {
  principal: true,
  operation: true,
  correlationId: true,
  required: true,
  strict: true,
  methods: true,
  effects: true,
  commits: true,
  steps: true,
  effectsBegin: true,
  onAmbiguous: true,
  finality: true,
  waitMs: true,
  maxRunTime: true,
  authorizeReplay: true,
  failOpen: true,
  sendUnkept: true,
  observe: true,
  fingerprint: true,
  mode: true,
  fingerprintHeaders: true,
  ignore: true,
  store: true,
  keepHeaders: true,
  dropHeaders: true,
  maxRequestBytes: true,
  maxResponseBytes: true,
};

const page = readFileSync(join(import.meta.dirname, "../../docs/guide/routes.md"), "utf8");

test("the page of routes names every option that a route takes, and no other", () => {
  const [, table = ""] = /^\| option .*\n\| -[^\n]*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = table
    .trim()
    .split("\n")
    .map((row) => row.split("|").map((cell) => cell.trim()));
  for (const [, name, ...said] of rows) {
    const [byDefault, meaning, limits] = said;
    expect([byDefault, meaning, limits], `${name} says default, meaning and limits`).not.toContain("");
  }
  const named = rows.map(([, name = ""]) => name.replaceAll("`", ""));
  expect(named.toSorted()).toEqual(Object.keys(OPTIONS).toSorted());
});

test("what the page says more of leads to a heading of its own", () => {
  const slugs = [...page.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, slug = ""]) => slug);
  expect(links.length).toBeGreaterThan(4);
  for (const link of links) expect(slugs).toContain(link);
});
