import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor, type VisitorObject } from "oxc-parser";

/** One parsed file; `path` is relative to the root of the repository and has forward slashes. */
export type Source = {
  readonly path: string;
  readonly text: string;
  readonly visit: (visitor: VisitorObject) => void;
  readonly lineAt: (offset: number) => number;
};

/** Parses one file; a file that does not parse is an error, for nothing could be said about it. */
export function parseSource({ path, text }: { readonly path: string; readonly text: string }): Source {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]?.message}`);
  return {
    path,
    text,
    visit: (visitor) => new Visitor(visitor).visit(program),
    lineAt: (offset) => text.slice(0, offset).split("\n").length,
  };
}

/** Reads every TypeScript file and plain module below the folders, except what is built or installed. */
export function readSources({ root, folders }: SourceFolders): readonly Source[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
        (file) => `${folder}/${file}`,
      ),
    )
    .filter((path) => /\.(ts|mjs)$/.test(path) && !/\/(dist|node_modules)\//.test(path))
    .map((path) => parseSource({ path, text: readFileSync(join(root, path), "utf8") }));
}

type SourceFolders = { readonly root: string; readonly folders: readonly string[] };

/** One import: how it is done, and what it names as written. A name that is computed is `(computed)`. */
export type Import = {
  readonly kind: "value" | "type" | "dynamic";
  readonly specifier: string;
  readonly line: number;
};

/** Finds every import: static, type-only, re-exporting, dynamic, and `import("…")` in a type. */
export function importsOf(source: Source): readonly Import[] {
  const found: Import[] = [];
  const add = (kind: Import["kind"], specifier: unknown, offset: number) =>
    found.push({
      kind,
      specifier: typeof specifier === "string" ? specifier : "(computed)",
      line: source.lineAt(offset),
    });
  const kindOf = (word: string | undefined) => (word === "type" ? "type" : "value");
  source.visit({
    ImportDeclaration: (node) => add(kindOf(node.importKind), node.source.value, node.start),
    ExportAllDeclaration: (node) => add(kindOf(node.exportKind), node.source.value, node.start),
    ExportNamedDeclaration: (node) => {
      if (node.source !== null) add(kindOf(node.exportKind), node.source.value, node.start);
    },
    ImportExpression: (node) =>
      add("dynamic", node.source.type === "Literal" ? node.source.value : undefined, node.start),
    TSImportType: (node) => add("type", node.source.value, node.start),
    TSImportEqualsDeclaration: (node) => add("value", undefined, node.start),
  });
  return found;
}

/** A name the code uses, or the word `async` or `await`; a call on an object counts as `Math.random`, not as `random`. */
export type UsedName = { readonly name: string; readonly line: number };

/** Finds every name that reaches outside: not the keys of objects, not what stands behind a dot. */
export function namesOf(source: Source): readonly UsedName[] {
  const found: UsedName[] = [];
  const keys = new Set<number>();
  const add = (name: string, offset: number) => found.push({ name, line: source.lineAt(offset) });
  const key = (node: { computed: boolean; key: { start: number } }) =>
    !node.computed && keys.add(node.key.start);
  const asynchronous = (node: { async: boolean; start: number }) => node.async && add("async", node.start);
  source.visit({
    MemberExpression: (node) => {
      if (node.computed) return;
      keys.add(node.property.start);
      if (node.object.type === "Identifier") add(`${node.object.name}.${node.property.name}`, node.start);
    },
    Property: (node) => !node.shorthand && key(node),
    TSPropertySignature: key,
    TSMethodSignature: key,
    PropertyDefinition: key,
    MethodDefinition: key,
    FunctionDeclaration: asynchronous,
    FunctionExpression: asynchronous,
    ArrowFunctionExpression: asynchronous,
    AwaitExpression: (node) => add("await", node.start),
    ForOfStatement: (node) => node.await && add("await", node.start),
    Identifier: (node) => !keys.has(node.start) && add(node.name, node.start),
  });
  return found;
}
