// Tests the bridge to Prisma, which is too large to be a dependency of development: installs it into a temporary folder,
// generates a client there, and checks types and behaviour against it. Needs the npm registry and nothing else.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const PACKAGES = ["prisma@7.10.1", "@prisma/client@7.10.0", "@prisma/adapter-pg@7.10.1"];
const root = dirname(import.meta.dirname);
const home = mkdtempSync(join(tmpdir(), "oncekey-prisma-"));

try {
  put("package.json", '{ "name": "prisma-under-test", "private": true, "type": "module" }');
  run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...PACKAGES]);
  put("schema.prisma", schema());
  put("prisma.config.ts", 'export default { schema: "schema.prisma" };');
  // The schema engine only migrates. Without this the command would download it before it does anything.
  run("npx", ["--no-install", "prisma", "generate"], { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath });
  put("types.ts", types());
  put("tsconfig.json", JSON.stringify({ extends: join(root, "tsconfig.test.json"), include: ["types.ts"] }));
  run(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.json"]);
  run("npx", ["--no-install", "vitest", "run"], { PRISMA_HOME: home }, root);
} finally {
  rmSync(home, { recursive: true, force: true });
}

function put(name, text) {
  writeFileSync(join(home, name), text);
}

function run(command, parameters, environment = {}, cwd = home) {
  const env = { ...process.env, CHECKPOINT_DISABLE: "1", ...environment };
  const { status, error } = spawnSync(command, parameters, { cwd, env, stdio: "inherit" });
  if (status !== 0) throw new Error(`${command} ${parameters.join(" ")} failed`, { cause: error });
}

function schema() {
  return `generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model Effect {
  id String @id
  @@map("effects")
}
`;
}

/** Units get the client's own transaction type, without a cast. */
function types() {
  return `import { fromPrisma, type PostgresPool, postgresStore } from "${root}/src/stores/postgres/index.ts";
import type { Prisma, PrismaClient } from "./generated/client.ts";

export function typed(pool: PostgresPool, client: PrismaClient): void {
  const store = postgresStore({ pool, transactions: fromPrisma(client) });
  void store.transaction(async (tx) => {
    const same: Prisma.TransactionClient = tx;
    await tx.effect.create({ data: { id: "typed" } });
    // @ts-expect-error there is no such model
    await tx.nothing.create({ data: {} });
    return { kind: "commit", value: same };
  });
}
`;
}
