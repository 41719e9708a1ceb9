import { basename } from "node:path";
import type { Source } from "./source.ts";

/** The rules that hold for every file of the library, whatever its layer. */
export type ShapeRules = { readonly entryPoints: readonly string[] };

/** Says, line by line, where a file breaks the rules on size, types, names and side effects. */
export function shapeFaultsOf(source: Source, rules: ShapeRules): readonly string[] {
  const faults: string[] = [];
  const report = (offset: number, what: string) =>
    faults.push(`${source.path}:${source.lineAt(offset)} ${what}`);
  const seen = { source, rules, report };
  checkFile(seen);
  checkFunctions(seen);
  checkTypes(seen);
  checkForms(seen);
  checkImportTime(seen);
  return faults;
}

type Seen = {
  readonly source: Source;
  readonly rules: ShapeRules;
  readonly report: (offset: number, what: string) => void;
};

/** Longer files hold two things; longer functions do two things. */
const fileLines = 300;
const functionLines = 40;

function checkFile({ source, report }: Seen): void {
  const lines = source.text.trimEnd().split("\n").length;
  if (lines > fileLines) report(0, `has ${lines} lines; ${fileLines} is the limit`);
  const vague = /(^|[-./])(utils?|helpers?|commons?|misc|shared|managers?|services?|impl)([-./]|$)/i;
  if (vague.test(source.path)) report(0, "has a name that says nothing about what it holds");
}

function checkFunctions({ source, report }: Seen): void {
  const measure = ({ start, end }: { readonly start: number; readonly end: number }) => {
    const lines = source.lineAt(end) - source.lineAt(start) + 1;
    if (lines > functionLines)
      report(start, `is a function of ${lines} lines; ${functionLines} is the limit`);
  };
  source.visit({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  });
}

/** The two kinds of file whose work is to give raw data its type. */
const mayCast = /^(row|codec)\.ts$/;

function checkTypes({ source, report }: Seen): void {
  source.visit({
    TSAsExpression: ({ start, typeAnnotation }) => {
      const words = source.text.slice(typeAnnotation.start, typeAnnotation.end);
      if (words !== "const" && !mayCast.test(basename(source.path))) report(start, `casts to ${words}`);
    },
    TSTypeAssertion: ({ start }) => report(start, "casts with <…>"),
    TSNonNullExpression: ({ start }) => report(start, "asserts with ! that something is there"),
    VariableDeclarator: ({ start, definite }) =>
      definite && report(start, "asserts with ! that a variable is set"),
    PropertyDefinition: ({ start, definite }) =>
      definite && report(start, "asserts with ! that a field is set"),
    TSAnyKeyword: ({ start }) => report(start, "uses any"),
    TSEnumDeclaration: ({ start }) => report(start, "declares an enum"),
  });
}

/** Nest knows a module by a class; one without members is a name. */
const mayNameByClass = /^src\/http\/nest\.ts$/;

function checkForms({ source, rules, report }: Seen): void {
  const checkClass = ({
    start,
    superClass,
    body,
  }: {
    readonly start: number;
    readonly superClass: SpannedNode | null;
    readonly body: { readonly body: readonly unknown[] };
  }) => {
    if (mayNameByClass.test(source.path) && body.body.length === 0) return;
    const parent = superClass === null ? "" : source.text.slice(superClass.start, superClass.end);
    if (!parent.endsWith("Error")) report(start, "is a class, and classes are for errors");
  };
  const checkExported = ({ start }: SpannedNode) => {
    if (!rules.entryPoints.includes(source.path)) report(start, "re-exports, and is no entry point");
  };
  source.visit({
    ClassDeclaration: checkClass,
    ClassExpression: checkClass,
    ExportDefaultDeclaration: ({ start }) => report(start, "exports a default"),
    ExportAllDeclaration: checkExported,
    ExportNamedDeclaration: (node) => {
      if (node.source !== null) checkExported(node);
      const names = node.specifiers.map(({ exported }) => source.text.slice(exported.start, exported.end));
      if (names.includes("default")) report(node.start, "exports a default");
    },
    SwitchCase: ({ start, test }) =>
      test === null && report(start, "is a default, which hides a forgotten case"),
  });
}

type SpannedNode = { readonly start: number; readonly end: number };

/** A command's main file is run and not imported: running is what it is for. */
const runsWhenLoaded = /(^|\/)main\.ts$/;

function checkImportTime({ source, report }: Seen): void {
  if (runsWhenLoaded.test(source.path)) return;
  source.visit({
    Program: ({ body }) => {
      for (const statement of body.filter(({ type }) => acts.has(type))) {
        report(statement.start, "acts while it is imported");
      }
    },
  });
}

const acts: ReadonlySet<string> = new Set([
  "ExpressionStatement",
  "IfStatement",
  "ForStatement",
  "ForOfStatement",
  "ForInStatement",
  "WhileStatement",
  "DoWhileStatement",
  "TryStatement",
  "SwitchStatement",
  "ThrowStatement",
  "BlockStatement",
]);
