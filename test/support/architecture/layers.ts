import { posix } from "node:path";
import { type Import, importsOf, namesOf, type Source } from "./source.ts";

/** One row of the table in ARCHITECTURE.md. */
export type Layer = {
  readonly files: readonly string[];
  readonly may: readonly string[];
  readonly never: readonly string[];
};

/** Reads the table with the columns `layer`, `may import`, `never`; anything but one such table is an error. */
export function readLayers(markdown: string): readonly Layer[] {
  const lines = markdown.split("\n");
  const heads = lines.flatMap((line, at) =>
    cellsOf(line).join("|") === "layer|may import|never" ? [at] : [],
  );
  const [head] = heads;
  if (head === undefined || heads.length > 1) {
    throw new Error(
      `ARCHITECTURE.md must hold one table "layer | may import | never", and holds ${heads.length}.`,
    );
  }
  const length = lines.slice(head).findIndex((line) => !line.startsWith("|"));
  const rows = lines.slice(head + 2, length === -1 ? undefined : head + length);
  return rows.map((row) => {
    const [files = "", may = "", never = ""] = cellsOf(row);
    return { files: quotedIn(files), may: quotedIn(may), never: quotedIn(never) };
  });
}

function cellsOf(row: string): readonly string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function quotedIn(cell: string): readonly string[] {
  const quoted = [...cell.matchAll(/`([^`]+)`/g)].map(([, item]) => item ?? "");
  return /\bany package\b/.test(cell) ? [...quoted, anyPackage] : quoted;
}

const anyPackage = "any package";

/** The row that a file belongs to, with what the row's `<name>` stands for in this file's path. */
export type Place = { readonly layer: Layer; readonly names: Readonly<Record<string, string>> };

/** Finds the first row that matches a path. */
export function placeOf(path: string, layers: readonly Layer[]): Place | undefined {
  for (const layer of layers) {
    for (const glob of layer.files) {
      const match = patternOf(glob).exec(path);
      if (match !== null) return { layer, names: { ...match.groups } };
    }
  }
  return undefined;
}

/** Says, line by line, what a file imports or names against the table. */
export function trespassesOf(source: Source, layers: readonly Layer[]): readonly string[] {
  const place = placeOf(source.path, layers);
  if (place === undefined) return [`${source.path} belongs to no row of the table`];
  const imports = importsOf(source).filter((each) => !isAllowed(each, { source, place }));
  const forbidden = new Set(place.layer.never.filter(isName));
  const names = namesOf(source).filter(({ name }) => forbidden.has(name));
  return [
    ...imports.map(
      ({ kind, specifier, line }) => `${source.path}:${line} may not import ${specifier} (${kind})`,
    ),
    ...names.map(({ name, line }) => `${source.path}:${line} may not use ${name}`),
  ];
}

type Whereabouts = { readonly source: Source; readonly place: Place };

function isAllowed({ kind, specifier }: Import, { source, place: { layer, names } }: Whereabouts): boolean {
  const inside = specifier.startsWith(".");
  const target = inside ? posix.join(posix.dirname(source.path), specifier) : specifier;
  const covers = (item: string) => (item === anyPackage ? !inside : patternOf(item, names).test(target));
  const permits = (item: string) => {
    const only = /^(?:type (?<type>.+)|import\((?<dynamic>.+)\))$/.exec(item)?.groups;
    if (only === undefined) return covers(item);
    const { type = "", dynamic = "" } = only;
    return (kind === "type" && covers(type)) || (kind === "dynamic" && covers(dynamic));
  };
  return (
    layer.may.some(permits) &&
    !layer.never.some((item) => !isName(item) && item !== anyPackage && covers(item))
  );
}

/** In the column `never`, what has neither a slash nor a colon is a name in code and not a file or a package. */
function isName(item: string): boolean {
  return !/[/:]/.test(item) && item !== anyPackage;
}

/** `**` is any path, `*` any part of one, `<name>` one part: any where `names` is not given, else the one it stands for. */
function patternOf(glob: string, names?: Readonly<Record<string, string>>): RegExp {
  const source = glob.replace(/\*\*|\*|<(\w+)>|[^\w/]/g, (token, name: string | undefined) => {
    if (token === "**" || (token === "*" && glob.startsWith("node:"))) return ".*";
    if (token === "*") return "[^/]*";
    if (name === undefined) return `\\${token}`;
    if (names === undefined) return `(?<${name}>[^/]+)`;
    return names[name]?.replaceAll(/[^\w/]/g, "\\$&") ?? matchesNothing;
  });
  return new RegExp(`^${source}$`);
}

const matchesNothing = "(?!)";
