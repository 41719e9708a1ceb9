import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, test } from "vitest";
import { placeOf, readLayers, trespassesOf } from "./support/architecture/layers.ts";
import { shapeFaultsOf } from "./support/architecture/shape.ts";
import { importsOf, parseSource, readSources } from "./support/architecture/source.ts";

const root = dirname(import.meta.dirname);
const layers = readLayers(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"));
const entryPoints = entryPointsOf(readFileSync(join(root, "package.json"), "utf8"));
const library = readSources({ root, folders: ["src"] });
const around = readSources({ root, folders: ["examples", "bench"] }).filter(
  ({ path }) => !/\/test\//.test(path),
);

describe("who may import whom", () => {
  test("every file keeps to its row of the table in ARCHITECTURE.md", () => {
    expect([...library, ...around].flatMap((source) => trespassesOf(source, layers))).toEqual([]);
  });

  test("every import of a file of ours names a file that exists", () => {
    const missing = [...library, ...around].flatMap((source) =>
      importsOf(source)
        .filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => posix.join(posix.dirname(source.path), specifier))
        .filter((path) => !existsSync(join(root, path))),
    );
    expect(missing).toEqual([]);
  });

  test("no row of the table is left over from files that are gone", () => {
    const used = new Set([...library, ...around].map(({ path }) => placeOf(path, layers)?.layer));
    expect(layers.filter((layer) => !used.has(layer)).map(({ files }) => files)).toEqual([]);
  });
});

describe("how a file is written", () => {
  test("every file of the library keeps the rules on size, types, names and side effects", () => {
    expect(library.flatMap((source) => shapeFaultsOf(source, { entryPoints }))).toEqual([]);
  });

  test("the main entry re-exports and does nothing else", () => {
    const others: string[] = [];
    library
      .find(({ path }) => path === "src/index.ts")
      ?.visit({
        Program: ({ body }) => {
          const reexport = /^Export(All|Named)Declaration$/;
          for (const statement of body) {
            const exported =
              reexport.test(statement.type) && "source" in statement && statement.source !== null;
            if (!exported) others.push(statement.type);
          }
        },
      });
    expect(others).toEqual([]);
  });
});

describe("these tests can fail", () => {
  const trespass: readonly (readonly [path: string, text: string, expected: RegExp])[] = [
    ["src/core/a.ts", 'import { createHash } from "node:crypto";', /may not import node:crypto \(value\)/],
    ["src/core/a.ts", 'import type { Engine } from "../engine/engine.ts";', /engine\.ts \(type\)/],
    ["src/core/a.ts", 'export type { Engine } from "../engine/engine.ts";', /engine\.ts \(type\)/],
    ["src/core/a.ts", 'type Hash = import("node:crypto").Hash;', /node:crypto \(type\)/],
    ["src/core/a.ts", "export const now = () => Date.now();", /may not use Date/],
    ["src/core/a.ts", "export const at = (when: Date) => when;", /may not use Date/],
    ["src/core/a.ts", "export const later = () => setTimeout(() => 1, 2);", /may not use setTimeout/],
    ["src/core/a.ts", "export async function wait() {}", /may not use async/],
    ["src/core/a.ts", "export type Later = Promise<void>;", /may not use Promise/],
    ["src/core/a.ts", "export const chance = () => Math.random();", /may not use Math\.random/],
    ["src/errors.ts", 'import type { KeyRecord } from "./core/record.ts";', /record\.ts \(type\)/],
    ["src/stores/store.ts", 'import { decide } from "../core/decide.ts";', /decide\.ts \(value\)/],
    ["src/stores/postgres/index.ts", 'import type { Pool } from "pg";', /may not import pg \(type\)/],
    ["src/stores/postgres/index.ts", 'import "../sqlite/index.ts";', /sqlite\/index\.ts \(value\)/],
    ["src/stores/memory.ts", 'import { run } from "../engine/engine.ts";', /engine\.ts \(value\)/],
    ["src/engine/a.ts", 'const store = () => import("../stores/memory.ts");', /memory\.ts \(dynamic\)/],
    ["src/engine/a.ts", "const any = (name: string) => import(name);", /\(computed\) \(dynamic\)/],
    ["src/http/hono.ts", 'import { Hono } from "hono";', /hono \(value\)/],
    ["src/http/guard.ts", 'import type { Context } from "hono";', /hono \(type\)/],
    ["src/http/nest-route.ts", 'import { of } from "rxjs";', /rxjs \(value\)/],
    ["src/http/nest.ts", 'import { NestFactory } from "@nestjs/core";', /core \(value\)/],
    ["src/http/deep/guard.ts", 'import type { Context } from "hono";', /hono \(type\)/],
    ["src/conformance/laws/a.ts", 'import { test } from "vitest";', /vitest/],
    ["src/cli/main.ts", 'import pg from "pg";', /pg \(value\)/],
    ["src/index.ts", 'export { main } from "./cli/main.ts";', /cli\/main\.ts/],
    ["examples/settlement/src/a.ts", 'import { x } from "../../../src/index.ts";', /src\/index\.ts/],
    ["src/unheard/of.ts", "export {};", /belongs to no row/],
  ];
  test.each(trespass)("a trespass in %s is reported: %s", (path, text, expected) => {
    expect(trespassesOf(parseSource({ path, text }), layers).join("\n")).toMatch(expected);
  });

  const allowed: readonly (readonly [path: string, text: string])[] = [
    [
      "src/core/a.ts",
      'import { decide } from "./decide.ts"; export const seen = { Date: 1, process: decide }.Date;',
    ],
    ["src/stores/store.ts", 'import type { KeyRecord } from "../core/record.ts";'],
    [
      "src/stores/sqlite/index.ts",
      'import { rows } from "./migrations.ts"; import { join } from "node:path/posix";',
    ],
    ["src/http/hono.ts", 'import type { Context } from "hono"; import type { H } from "hono/types";'],
    ["src/http/nest.ts", 'import { Inject } from "@nestjs/common"; import { of } from "rxjs";'],
    ["src/cli/commands/migrate.ts", 'export const pool = async () => (await import("pg")).Pool;'],
    [
      "examples/settlement/src/a.ts",
      'import "oncekey/sqlite"; import "hono"; import("" + 1); import "./b.ts";',
    ],
  ];
  test.each(allowed)("%s may: %s", (path, text) => {
    expect(trespassesOf(parseSource({ path, text }), layers)).toEqual([]);
  });

  const faults: readonly (readonly [expected: RegExp, text: string])[] = [
    [/has 301 lines/, "export const a = 1;\n".repeat(301)],
    [/a function of 41 lines/, `export function a() {\n${"  b();\n".repeat(39)}}`],
    [/a function of 41 lines/, `export const a = { b() {\n${"  c();\n".repeat(39)}} };`],
    [/casts to string/, "export const a = b as string;"],
    [/casts to unknown/, "export const a = b as unknown as string;"],
    [/casts with <…>/, "export const a = <string>b;"],
    [/asserts with !/, "export const a = b!.c;"],
    [/asserts with ! that a variable/, "let a!: string; export { a };"],
    [/uses any/, "export const a: any = 1;"],
    [/declares an enum/, "export enum A { b }"],
    [/exports a default/, "export default 1;"],
    [/exports a default/, "const a = 1; export { a as default };"],
    [/re-exports/, 'export * from "./b.ts";'],
    [/re-exports/, 'export { b } from "./b.ts";'],
    [/classes are for errors/, "export class Thing {}"],
    [/is a default/, "export const a = (b: 1) => { switch (b) { case 1: return 2; default: return 3; } };"],
    [/acts while it is imported/, "start();"],
    [/acts while it is imported/, "if (b) start();"],
  ];
  test.each(faults)("a fault is reported: %s", (expected, text) => {
    expect(shapeFaultsOf(parseSource({ path: "src/engine/a.ts", text }), { entryPoints }).join("\n")).toMatch(
      expected,
    );
  });

  test.each(["src/utils.ts", "src/http/key-helpers.ts", "src/common/a.ts", "src/engine/lock-manager.ts"])(
    "the name %s is reported",
    (path) => {
      const source = parseSource({ path, text: "export const a = 1;" });
      expect(shapeFaultsOf(source, { entryPoints }).join("\n")).toMatch(/says nothing/);
    },
  );

  test("only Nest's own file may name a module by a class, and only by one without members", () => {
    const faultsOf = (path: string, text: string) =>
      shapeFaultsOf(parseSource({ path, text }), { entryPoints });
    expect(faultsOf("src/http/nest.ts", "class Module {}")).toEqual([]);
    expect(faultsOf("src/http/nest.ts", "class Module { start() {} }").join()).toMatch(/is a class/);
    expect(faultsOf("src/http/nest-route.ts", "class Module {}").join()).toMatch(/is a class/);
  });

  test("what is allowed is not reported", () => {
    const text =
      "export class Late extends OncekeyError {}\nexport const a = { b: 1 } as const satisfies object;";
    expect(shapeFaultsOf(parseSource({ path: "src/errors.ts", text }), { entryPoints })).toEqual([]);
    const cast = parseSource({
      path: "src/stores/row.ts",
      text: "export const a = (b: unknown) => b as string;",
    });
    expect(shapeFaultsOf(cast, { entryPoints })).toEqual([]);
  });

  test("a page without the table, or with two, is refused", () => {
    expect(() => readLayers("# Nothing")).toThrow(/holds 0/);
    const table = "| layer | may import | never |\n| --- | --- | --- |\n| `a` | `b` | c |\n";
    expect(() => readLayers(`${table}\n${table}`)).toThrow(/holds 2/);
  });
});

function entryPointsOf(packageText: string): readonly string[] {
  const files = [...packageText.matchAll(/"default": "\.\/dist\/([^"]+)\.js"/g)];
  return files.map(([, file]) => `src/${file}.ts`);
}
