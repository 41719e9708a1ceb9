import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { InProgress } from "../../src/core/record.ts";
import { release, seen } from "../../src/core/transition.ts";
import type { TransactionSource } from "../../src/stores/postgres/index.ts";
import type { FencedEnd, TransactionalStore } from "../../src/stores/store.ts";
import { type OpenedLayer, undoneBySavepoint } from "./bridges-layers.ts";
import { begun, completedFrom } from "./postgres-server.ts";
import { claimOf } from "./sample.ts";

/** Who says what became of a unit where the layer's word and the database's differ. */
export function verdictTests<Tx>(given: () => OpenedLayer<Tx>): void {
  test.each(["23505", "25P02", "40001"])(
    "whose layer fails with %s after its COMMIT is a success: a step of the layer's own undoes nothing",
    async (code) => {
      const { source, storeThrough, effects } = given();
      const store = storeThrough({
        ...source,
        open: async (work, bounds) => {
          await source.open(work, bounds);
          throw Object.assign(new Error("after the commit: duplicate key"), { code });
        },
      });
      const { unit } = await unitOn(given(), store, `hook ${code}`);
      const end = unit(async (record) => ({ kind: "commit", write: completedFrom(record), value: code }));
      expect(await end).toMatchObject({ kind: "committed", value: code });
      expect(await effects()).toContain(`hook ${code}`);
    },
  );

  test("that frees its key is a success, though a rival has claimed the key before anybody could look", async () => {
    const { source, storeThrough, other, effects } = given();
    const record = await begun(other, "freed");
    const { identity } = record;
    const write = release(record, { writeId: randomUUID(), retainMs: 60_000 });
    const rival = claimOf(identity);
    const store = storeThrough({
      ...source,
      open: async (work, bounds) => {
        const value = await source.open(work, bounds);
        await other.replace({ ...seen(record), revision: record.revision + 1 }, rival, "wait");
        return value;
      },
    });
    const end = store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
      await given().statement(tx, "insert into effects values ('freed')");
      return { kind: "commit", write, value: 1 };
    });
    expect(await end).toMatchObject({ kind: "committed", record: { state: "released" } });
    expect((await other.read(identity)).record).toMatchObject({ owner: rival.owner });
    expect(await effects()).toContain("freed");
  });

  test("whose freeing of its key a savepoint undid is no success", async () => {
    const { source, statement, storeThrough } = given();
    const store = storeThrough(undoneBySavepoint(source, statement));
    const { unit } = await unitOn(given(), store, "not freed");
    const end = unit(async (record) => {
      const write = release(record, { writeId: randomUUID(), retainMs: 60_000 });
      return { kind: "commit", write, value: 1 };
    });
    await expect(end).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/open whether/),
    });
  });

  test("sends again only what its write changes, where the caller has the version itself", async () => {
    const { source, storeThrough } = given();
    const sent: string[] = [];
    const heard: TransactionSource<Tx> = {
      ...source,
      send: (tx, text) => {
        sent.push(text);
        return source.send(tx, text);
      },
    };
    const store = storeThrough(heard);
    const record = await begun(store, "the same");
    const write = completedFrom(record);
    const end = await store.fenced({ kind: "held", seen: seen(record), from: record }, async () => {
      return { kind: "commit", write, value: 1 };
    });
    const updates = sent.filter((text) => text.includes("oncekey_conclude"));
    expect(updates).toHaveLength(1);
    expect(updates.join()).not.toMatch(/fingerprint|operation/);
    const kept = (await store.read(record.identity)).record;
    expect(kept).toEqual(end.kind === "committed" ? end.record : null);
    expect(kept).toMatchObject({ fingerprint: record.fingerprint, operation: record.operation });
  });
}

/** Units on a record that is in progress, which leave an effect of the same name. */
async function unitOn<Tx>(
  { statement }: OpenedLayer<Tx>,
  store: TransactionalStore<Tx, "async">,
  name: string,
): Promise<{
  readonly unit: <T>(
    work: (record: InProgress) => Promise<FencedEnd<T>>,
  ) => ReturnType<typeof store.fenced<T>>;
}> {
  const record = await begun(store, name);
  return {
    unit: (work) =>
      store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
        await statement(tx, `insert into effects values ('${name}')`);
        return await work(record);
      }),
  };
}
