import { KINDS, type Kind } from "../kinds.ts";
import type { Fared, Mutant } from "./mutant.ts";

const [FROM, TO] = ["<!-- mutants: begin -->", "<!-- mutants: end -->"];

const SHORT: Readonly<Record<Kind, string>> = {
  local: "local",
  "local, one commit": "one commit",
  undeclared: "undeclared",
  "declared repeatable": "d. repeatable",
  "declared keyed": "d. keyed",
  "declared query": "d. query",
  "declared blind": "d. blind",
  "operation repeatable": "o. repeatable",
  "operation keyed": "o. keyed",
  "operation query": "o. query",
  "operation blind": "o. blind",
};

/** How every mutant fared on every kind. */
export type Matrix = ReadonlyMap<Mutant, ReadonlyMap<Kind, Fared>>;

/** The page with the matrix in its place. */
export function paged(page: string, matrix: Matrix): string {
  const [before, rest] = page.split(FROM);
  const after = rest?.split(TO)[1];
  if (before === undefined || after === undefined) throw new Error("The page has no place for the matrix.");
  return `${before}${FROM}\n\n${tableOf(matrix)}\n\n${reasonsOf(matrix)}\n\n${TO}${after}`;
}

function tableOf(matrix: Matrix): string {
  const head = ["an engine that", ...KINDS.map((kind) => SHORT[kind]), "breaks"];
  const rows = [...matrix].map(([mutant, fared]) => {
    const cells = KINDS.map((kind) => cellOf(fared.get(kind)));
    return row([mutant.name, ...cells, brokenBy(mutant, fared)]);
  });
  return [row(head), row(head.map(() => "---")), ...rows].join("\n");
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function cellOf(fared: Fared | undefined): string {
  return fared?.kind === "killed" ? String(fared.after) : "–";
}

function brokenBy({ equivalent }: Mutant, fared: ReadonlyMap<Kind, Fared>): string {
  const broken = new Set<string>();
  for (const each of fared.values()) if (each.kind === "killed") broken.add(each.violation.invariant);
  if (broken.size > 0) return [...broken].sort().join(", ");
  return equivalent === undefined ? "" : "nothing";
}

function reasonsOf(matrix: Matrix): string {
  const reasons = [...matrix.keys()].flatMap(({ name, fault, equivalent }) =>
    equivalent === undefined ? [] : [`- *${name}* (${fault}): ${equivalent}.`],
  );
  return ["Those that broke nothing, and why:", "", ...reasons].join("\n");
}
