import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { reconcile, sweep } from "../../src/worker/tick.ts";
import { freshSqliteFile, sqliteDriver } from "../support/databases.ts";
import { startProcess, until } from "../support/processes.ts";
import { openBank, order, paying } from "./bank.ts";
import { sqlEngineOn, standing } from "./engines.ts";
import { onEverySqlStore, type Sql } from "./stores.ts";

describe("an operation whose process is killed", () => {
  onEverySqlStore((given) => {
    crashes(given);
  });
});

/** A bank that outlives the process that pays at it. */
function openBankFile() {
  const { path, remove } = freshSqliteFile();
  const file = new (sqliteDriver())(path);
  file.exec("CREATE TABLE payments (key TEXT PRIMARY KEY)");
  onTestFinished(() => {
    file.close();
    remove();
  });
  const paid = () => file.prepare("SELECT key FROM payments").all();
  const has = (key: string) => file.prepare("SELECT 1 FROM payments WHERE key = ?").get(key) !== undefined;
  const add = (key: string) =>
    void file.prepare("INSERT INTO payments (key) VALUES (?) ON CONFLICT DO NOTHING").run(key);
  return { path, paid, has, add };
}

/** Runs the operation in a process that kills itself there; resolves when it is dead. */
async function dies({ url }: { readonly url: string }, bankFile: string, key: string, moment: string) {
  const script = fileURLToPath(new URL("operation-child.mjs", import.meta.url));
  const child = await startProcess({ command: process.execPath, args: [script, url, bankFile, key, moment] });
  const exit = await child.exited;
  expect([child.stdout, child.stderr, exit.signal]).toEqual([[moment], [], "SIGKILL"]);
}

function crashes<Tx>(given: () => Sql<Tx>): void {
  /** The process that finds what the dead one left. */
  function survivor(bank: ReturnType<typeof openBankFile>) {
    const { store } = given();
    const { engine, events } = sqlEngineOn(store, { sweepGrace: 1 });
    const result = { kind: "paid", number: 1 } as const;
    const { pay } = paying(engine, given(), openBank(), {
      perform: async ({ attempt }) => {
        bank.add(attempt.downstreamKey);
        return result;
      },
      look: async ({ attempt: { downstreamKey } }) =>
        bank.has(downstreamKey) ? { kind: "found", result } : { kind: "not_found" },
      cancel: async () => ({ kind: "cancelled" }),
    });
    return { engine, pay, events };
  }

  const fingerprint = {
    version: "value 1",
    material: () => ({ raw: new Uint8Array(32), canonical: () => new Uint8Array(32) }),
  };
  const request = (key: string) => ({ ...order(key), fingerprint });

  test("before its claim and its row are committed has left neither, and runs when it is asked again", async () => {
    const { store, rows } = given();
    const bank = openBankFile();
    await dies(given(), bank.path, "in open", "in open");
    expect((await store.read(request("in open").identity)).record).toBeNull();
    expect(await rows("in open")).toEqual([]);
    expect(await survivor(bank).pay(request("in open"))).toMatchObject({ kind: "settled" });
    expect([(await rows("in open")).length, bank.paid().length]).toEqual([1, 1]);
  });

  test("before the provider is called is swept, looked for, cancelled and released; the next attempt has another key", async () => {
    const { store, rows } = given();
    const bank = openBankFile();
    await dies(given(), bank.path, "unpaid", "before the payment");
    expect(await rows("unpaid")).toMatchObject([{ state: "pending" }]);
    const { engine, pay } = survivor(bank);
    await until(async () => (await sweep(engine)).doubted === 1);
    expect(await reconcile(engine)).toMatchObject({ released: 1 });
    const released = await standing(store, request("unpaid"));
    expect(released).toMatchObject({ state: "released" });
    expect(released.steps.get("perform")).toEqual({ state: "clear", generation: 1 });
    const [row] = await rows("unpaid");
    expect(row?.state).toBe("abandoned");
    expect(await pay(request("unpaid"))).toMatchObject({ kind: "settled" });
    expect(await rows("unpaid")).toEqual([{ ...row, state: "paid" }]);
    expect(bank.paid()).toHaveLength(1);
  });

  test.each(["after the payment", "in finish"])(
    "%s ends with the provider's truth: one payment, one row",
    async (moment) => {
      const { store, rows } = given();
      const bank = openBankFile();
      await dies(given(), bank.path, moment, moment);
      expect(await rows(moment)).toMatchObject([{ state: "pending" }]);
      const { engine, pay, events } = survivor(bank);
      await until(async () => (await sweep(engine)).doubted === 1);
      expect(await reconcile(engine)).toMatchObject({ settled: 1 });
      expect(await standing(store, request(moment))).toMatchObject({ state: "completed" });
      expect(await rows(moment)).toMatchObject([{ state: "paid" }]);
      expect(await pay(request(moment))).toMatchObject({ kind: "replay", answer: { status: 201 } });
      expect(bank.paid()).toHaveLength(1);
      expect(
        events.flatMap((event) => (event.type === "transition" ? [[event.by, event.from, event.to]] : [])),
      ).toEqual([
        ["sweeper", "in_progress", "unknown"],
        ["reconciler", "unknown", "completed"],
      ]);
    },
  );

  test("between its commit and its answer replays the answer", async () => {
    const { rows } = given();
    const bank = openBankFile();
    await dies(given(), bank.path, "unanswered", "before the answer");
    const { pay } = survivor(bank);
    expect(await pay(request("unanswered"))).toMatchObject({ kind: "replay", answer: { status: 201 } });
    expect(await rows("unanswered")).toMatchObject([{ state: "paid" }]);
    expect(bank.paid()).toHaveLength(1);
  });

  test("while a duplicate waits is judged by the duplicate as soon as its lease has lapsed", async () => {
    const { rows } = given();
    const bank = openBankFile();
    await dies(given(), bank.path, "duplicate", "after the payment");
    const { engine, pay } = survivor(bank);
    await until(async () => (await pay(request("duplicate"))).kind === "outcome_unknown");
    expect(await reconcile(engine)).toMatchObject({ settled: 1 });
    expect(await pay(request("duplicate"))).toMatchObject({ kind: "replay" });
    expect(await rows("duplicate")).toMatchObject([{ state: "paid" }]);
  });
}
