import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { importsOf, parseSource } from "./support/architecture/source.ts";

const run = promisify(execFile);
const root = dirname(import.meta.dirname);

type Manifest = {
  readonly name: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
};
const manifest: Manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entries = Object.entries(manifest.exports);
const modules = entries.flatMap(([path, target]) =>
  typeof target === "string" ? [] : [path.replace(/^\./, manifest.name)],
);

describe("what the package offers", () => {
  test.each(entries)("%s leads to files that were built", (_path, target) => {
    const files = typeof target === "string" ? [target] : Object.values(target);
    expect(files.filter((file) => !isFile(file))).toEqual([]);
  });

  test.each(modules)(
    "importing %s does nothing: no output, no warning, nothing left running",
    async (name) => {
      // `run` rejects unless the process ends by itself, in time, with code 0.
      const script = `${watch}; await import("${name}"); ${tell}`;
      const parameters = ["--input-type=module", "--eval", script];
      const { stdout, stderr } = await run(process.execPath, parameters, {
        cwd: root,
        timeout: 30_000,
        env: plainEnvironment(),
      });
      expect({ stdout, stderr }).toEqual({ stdout: "", stderr: "" });
    },
  );

  test("the check above notices a timer, a listener and a warning", async () => {
    const acts = 'setTimeout(() => {}, 9); process.on("SIGTERM", () => {}); process.emitWarning("careful")';
    const parameters = ["--input-type=module", "--eval", `${watch}; ${acts}; ${tell}`];
    const { stdout, stderr } = await run(process.execPath, parameters, {
      cwd: root,
      env: plainEnvironment(),
    });
    expect(stdout).toContain('["Timeout"]');
    expect(stdout).toContain('["SIGTERM"]');
    expect(stderr).toContain("careful");
  });

  test.each(Object.entries(manifest.bin))("the command %s is a file that Node runs", (_name, file) => {
    expect(readFileSync(join(root, file), "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  });
});

describe("what the package needs", () => {
  test("no import of the built code names anything but itself, Node and the declared dependencies; but for Nest's own", () => {
    const known = (specifier: string) =>
      /^(\.|node:)/.test(specifier) ||
      Object.keys(manifest.dependencies).some((name) => `${specifier}/`.startsWith(`${name}/`));
    const strangers = importsOfBuilt("dist").filter(
      ({ kind, specifier }) => kind === "value" && !known(specifier),
    );
    expect(strangers.map(({ file, specifier }) => `${file} ${specifier}`)).toEqual([
      "dist/http/nest.js @nestjs/common",
      "dist/http/nest.js rxjs",
    ]);
  });

  test("what a Request → Response handler asks of its runtime is what its page says", () => {
    const page = readFileSync(join(root, "docs/guide/hosts/fetch.md"), "utf8");
    const [, needs = ""] = page.split("## What it needs");
    const said = new Set([...needs.matchAll(/`(node:\w+)`/g)].map(([, name]) => name));
    const built = importsOfBuilt("dist");
    const reached = new Set(["dist/http/fetch.js", "dist/http/hono.js", "dist/index.js"]);
    for (const file of reached) {
      for (const each of built.filter((one) => one.file === file && one.specifier.startsWith(".")))
        reached.add(join(file, "..", each.specifier));
    }
    const asked = built.filter(({ file, specifier }) => reached.has(file) && specifier.startsWith("node:"));
    expect(new Set(asked.map(({ specifier }) => specifier))).toEqual(said);
  });

  test("the built core imports only itself", () => {
    expect(importsOfBuilt("dist/core").filter(({ specifier }) => !/^\.\/[^/]+$/.test(specifier))).toEqual([]);
  });
});

test("the tarball holds what was built, the three pages and the manifest, and nothing else", async () => {
  // Without scripts: packing must not rebuild what other tests are running.
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root });
  const [pack]: readonly { readonly files: readonly { readonly path: string }[] }[] = JSON.parse(stdout);
  const paths = (pack?.files ?? []).map(({ path }) => path);
  const pages = ["CHANGELOG.md", "LICENSE", "README.md", "package.json"];
  expect(paths.filter((path) => !path.startsWith("dist/")).sort()).toEqual(pages);
  expect(paths).toContain("dist/index.js");
});

/** Remembers what Node itself had before the import. */
const watch =
  "const before = new Set(process.eventNames()); const running = process.getActiveResourcesInfo().length";

/**
 * Prints what the import added to the process, if anything. A kind in "Req" is Node closing the file it has just read, a
 * "PipeWrap" the pipe to this test.
 */
const tell = `
const listeners = process.eventNames().filter((name) => !before.has(name));
const resources = process.getActiveResourcesInfo().filter((kind) => !kind.endsWith("Req") && kind !== "PipeWrap");
if (listeners.length > 0) console.log("listeners", JSON.stringify(listeners));
if (resources.length > 0) console.log("resources", JSON.stringify(resources))`;

function plainEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_ENV: _mode, ...rest } = process.env;
  return rest;
}

function isFile(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() ?? false;
}

function importsOfBuilt(folder: string) {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .flatMap((file) => {
      const path = `${folder}/${file}`;
      const source = parseSource({ path, text: readFileSync(join(root, path), "utf8") });
      return importsOf(source).map(({ kind, specifier }) => ({ file: path, kind, specifier }));
    });
}
