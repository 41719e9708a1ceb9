import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { fromPrisma } from "../../src/stores/postgres/index.ts";
import { unitLaws } from "../stores/bridges-laws.ts";
import { givenBy, layer } from "../stores/bridges-layers.ts";
import { unitTests } from "../stores/bridges-units.ts";
import { verdictTests } from "../stores/bridges-verdicts.ts";
import { begun, completedFrom } from "../stores/postgres-server.ts";

/** What the generated client has of use here; its own types are checked by `scripts/test-prisma.mjs`. */
interface Tx {
  readonly effect: { create(row: { readonly data: { readonly id: string } }): Promise<unknown> };
  $queryRawUnsafe(text: string): Promise<unknown>;
  $executeRawUnsafe(text: string): Promise<unknown>;
}

interface Client extends Tx {
  $transaction<T>(work: (tx: Tx) => Promise<T>, options: object): Promise<T>;
  $disconnect(): Promise<void>;
}

const home = process.env["PRISMA_HOME"] ?? "";
const { PrismaClient } = await import(pathToFileURL(join(home, "generated/client.ts")).href);
const { PrismaPg } = await import(
  pathToFileURL(join(home, "node_modules/@prisma/adapter-pg/dist/index.mjs")).href
);

function onPrisma(url: string) {
  const options = "-c default_transaction_isolation=serializable";
  const client: Client = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url, options, max: 4 }),
  });
  const statement = (tx: Tx, text: string) => tx.$executeRawUnsafe(text);
  const untilSent = async () => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { ...layer(fromPrisma(client), statement, () => client.$disconnect()), untilSent };
}

describe("Prisma", () => {
  const given = givenBy(onPrisma);
  unitLaws()(given);
  unitTests(given);
  verdictTests(given);

  test("keeps what its models write together with the record", async () => {
    const { store, effects } = given();
    const record = await begun(store, "model");
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
      await tx.effect.create({ data: { id: "model" } });
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    expect((await unit).kind).toBe("committed");
    expect(await effects()).toContain("model");
  });

  test("TX-03: its own limit of five seconds ends no unit whose attempt has more time", async () => {
    const { store } = given();
    const record = await begun(store, "TX-03");
    const ground = { kind: "held", seen: seen(record) } as const;
    const work = async (tx: Tx) => {
      await tx.$executeRawUnsafe("select pg_sleep(6)");
      return { kind: "commit", write: completedFrom(record), value: null } as const;
    };
    expect((await store.fenced(ground, work, { idleMs: 15_000 })).kind).toBe("committed");
  });

  test("TX-03: a unit that it ends for its time is out of reach, has no effect, and leaves the key free", async () => {
    const { source, storeThrough, effects } = given();
    const store = storeThrough({
      ...source,
      open: (work) => source.open(work, { idleMs: 100, longestMs: 100 }),
    });
    const record = await begun(store, "too slow");
    const unit = store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
      await tx.effect.create({ data: { id: "too slow" } });
      await tx.$executeRawUnsafe("select pg_sleep(0.3)");
      await tx.$executeRawUnsafe("select 1");
      return { kind: "commit", write: completedFrom(record), value: null };
    });
    await expect(unit).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await effects()).not.toContain("too slow");
    expect((await store.replace(seen(record), completedFrom(record), "never")).kind).toBe("replaced");
  });
});
