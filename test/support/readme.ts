import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { NotPerformed } from "oncekey";

/** What the README and the small examples came to. */
export interface Compiled {
  /** What tsc had to say; nothing where all is well. */
  readonly complaints: string;
  /** One compiled file: `readme.js`, or that of an example. */
  readonly load: <Module>(file: string) => Promise<Module>;
  readonly remove: () => void;
}

/**
 * Compiles the blocks of a README and some examples by the repository's own strict rules, in a folder of their own that
 * knows the package as a project does that has installed it: by its public name only.
 */
export async function compileShown({
  root,
  readme = readFileSync(join(root, "README.md"), "utf8"),
  examples,
}: {
  readonly root: string;
  readonly readme?: string;
  readonly examples: readonly string[];
}): Promise<Compiled> {
  const shown = moduleOf(readme);
  const folder = mkdtempSync(join(tmpdir(), "oncekey-readme-"));
  writeFileSync(join(folder, "readme.ts"), shown);
  const guides = guideModules(root);
  for (const { file, text } of guides) writeFileSync(join(folder, file), text);
  for (const example of examples) cpSync(join(root, "examples", example), join(folder, example));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const ours = { rootDir: ".", declaration: false, isolatedDeclarations: false };
  const compilerOptions = { ...ours, experimentalDecorators: true }; // as Nest's users compile theirs
  const files = ["readme.ts", ...guides.map(({ file }) => file), ...examples];
  const project = { extends: join(root, "tsconfig.base.json"), compilerOptions, files };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  return {
    complaints: await complaintsOf(folder, root),
    load: (file) => import(pathToFileURL(join(folder, file)).href),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Each block of the guides is a file of its own, `<guide>-<number>.ts`; what shows a route only gets what is around it. */
function guideModules(root: string): readonly { readonly file: string; readonly text: string }[] {
  const guides = readdirSync(join(root, "docs/guide")).filter((name) => name.endsWith(".md"));
  return guides.flatMap((guide) => {
    const blocks = readFileSync(join(root, "docs/guide", guide), "utf8").matchAll(/^```ts\n(.*?)^```$/gms);
    return [...blocks].map(([, text = ""], number) => ({
      file: `${guide.replace(".md", "")}-${number}.ts`,
      text: text.includes("export ") ? text : AROUND_A_ROUTE.join(text),
    }));
  });
}

const AROUND_A_ROUTE = [
  `import type { Hono } from "hono";
import type { Engine } from "oncekey";
import { protect } from "oncekey/hono";
import type { PoolClient } from "pg";
export function mount(app: Hono<{ Variables: { caller: string } }>, engine: Engine<PoolClient, "async">): void {
`,
  "}",
];

/** The README's bank, in memory: it deduplicates by key, can be asked, and cancels. */
export function openBank() {
  const paid = new Map<string, { readonly number: number }>();
  let mood: "pays" | "refuses" | "goes silent" = "pays";
  const find = async (key: string) => {
    const result = paid.get(key);
    return result === undefined ? { kind: "not_found" as const } : { kind: "found" as const, result };
  };
  return {
    ask: (next: typeof mood) => {
      mood = next;
    },
    payments: () => paid.size,
    pay: async (_order: object, { key }: { readonly key: string }) => {
      if (mood === "refuses") throw new NotPerformed("The bank is closed.");
      const payment = paid.get(key) ?? { number: paid.size + 1 };
      paid.set(key, payment);
      if (mood === "goes silent") throw new Error("The connection broke off.");
      return payment;
    },
    find,
    cancel: async (key: string) => {
      const seen = await find(key);
      return seen.kind === "found" ? seen : { kind: "cancelled" as const };
    },
  };
}

/** The README's Stripe: a client of a till in another process, which charges each key once and may lose its replies. */
export function stripeOf(url: string) {
  let mood: "answers" | "holds" = "answers";
  const create = async (charge: object, { idempotencyKey }: { readonly idempotencyKey: string }) => {
    const headers = { "idempotency-key": idempotencyKey, "x-mood": mood };
    const signal = AbortSignal.timeout(mood === "holds" ? 500 : 20_000);
    const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(charge), signal });
    return await reply.json();
  };
  return {
    charges: { create },
    ask: (next: typeof mood) => {
      mood = next;
    },
  };
}

/** Their imports on top, each block inside what a reader would have around it. */
function moduleOf(readme: string): string {
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ""]) => text);
  if (blocks.length !== AROUND.length)
    throw new Error(
      `The README has ${blocks.length} blocks of TypeScript; say in AROUND what stands around each.`,
    );
  const imports = blocks.flatMap((text) => text.match(IMPORT) ?? []);
  const wrapped = blocks.map((text, index) => (AROUND[index] ?? []).join(`\n${text.replaceAll(IMPORT, "")}`));
  return [PRELUDE, ...imports, ...wrapped].join("\n");
}

const IMPORT = /^import .*;\n/gm;

/** What stands around each block of the README, in their order: only what a reader would have of their own. */
const AROUND: readonly (readonly [before: string, after: string])[] = [
  ["export function postgresTransfers({ app, engine }: Place<PoolClient, 'async'>): void {", "}"],
  ["export function engineOf(connectionString: string) {", "return engine; }"],
  ["export function sqliteTransfers({ app, engine }: Place<SqliteConnection, 'sync'>): void {", "}"],
  [
    "export function shopOf({ connectionString, kysely }: { connectionString: string; kysely: Kysely<unknown> }) {",
    "return shop; }",
  ],
  [
    `export function watching<Tx, Settles extends Settling>({ engine, appPool }:
      { engine: Engine<Tx, Settles>; appPool: Pool }) {`,
    "return watched; }",
  ],
  [
    `export function charging<Tx, Settles extends Settling>({ app, engine, stripe }: Charging<Tx, Settles>): void {`,
    "}",
  ],
  [
    `export function settlements<Tx, Settles extends Settling>(
      { app, engine, bank, upsertPending, writeFinal, markAbandoned }: Settlements<Tx, Settles>): void {`,
    "}",
  ],
  [
    `export async function invoiced<Tx, Settles extends Settling>({ engine, createInvoice }:
      { engine: Engine<Tx, Settles>; createInvoice: (order: { order: number }) => { number: number } }) {`,
    "return invoice; }",
  ],
];

const PRELUDE = `
import type { Hono } from "hono";
import type { Kysely } from "kysely";
import type { AnswerInit, Cancelled, Engine, Returned, Settling } from "oncekey";
import type { SqliteConnection } from "oncekey/sqlite";
interface Place<Tx, Settles extends Settling> {
  app: Hono<{ Variables: { caller: string } }>;
  engine: Engine<Tx, Settles>;
}
interface Charging<Tx, Settles extends Settling> extends Place<Tx, Settles> {
  stripe: {
    charges: {
      create: (charge: { amount: number; currency: string }, how: { idempotencyKey: string }) => Promise<{ id: string }>;
    };
  };
}
interface Order { amount: number }
interface Payment { number: number }
interface Settlements<Tx, Settles extends Settling> extends Place<Tx, Settles> {
  bank: {
    pay: (order: Order, how: { key: string; signal: AbortSignal }) => Promise<Payment>;
    find: (key: string) => Promise<{ kind: "found"; result: Payment } | { kind: "not_found" }>;
    cancel: (key: string) => Promise<Cancelled<Payment>>;
  };
  upsertPending: (tx: Tx, id: string, order: Order) => Returned<Settles, string>;
  writeFinal: (tx: Tx, id: string, payment: Payment) => Returned<Settles, AnswerInit>;
  markAbandoned: (tx: Tx, id: string) => Returned<Settles, void>;
}
`;

async function complaintsOf(folder: string, root: string): Promise<string> {
  return await promisify(execFile)("npx", ["--no-install", "tsc", "-p", folder], { cwd: root }).then(
    () => "",
    (error: { readonly stdout?: string }) => error.stdout || String(error),
  );
}
