import { describe, expect, test } from "vitest";
import { NO_STEPS } from "../../src/core/kept.ts";
import { renounce } from "../../src/core/transition.ts";
import { createAttempt } from "../../src/engine/attempt.ts";
import { call, fencedUntil, type Unit } from "../../src/engine/command.ts";
import { createDriver } from "../../src/engine/driver.ts";
import { bindFingerprint } from "../../src/engine/fingerprint.ts";
import { inputFingerprint } from "../../src/engine/input.ts";
import { LeaseLost } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { FencedEnd, FencedWork, TransactionalStore } from "../../src/stores/store.ts";
import { engineOn, proceeded, requestFor } from "./engines.ts";
import { virtualTime } from "./virtual-time.ts";

type Fencing = TransactionalStore<null, "async">["fenced"];

/** A driver in virtual time, on a store whose fenced units go as `fenced` says. */
function driverOn(fenced: Fencing) {
  const time = virtualTime();
  const failures: unknown[] = [];
  const transactions: TransactionalStore<null, "async"> = {
    ...memoryStore(),
    settles: "async",
    transaction: unasked,
    within: () => ({ tryClaim: unasked, insert: unasked, replace: unasked, read: unasked }),
    recordId: () => new Uint8Array(16),
    fenced,
  };
  const driver = createDriver<null>({
    store: transactions,
    transactions,
    storeTimeoutMs: 100,
    runtime: time.runtime,
    onLateFailure: (error) => failures.push(error),
    ours: (run) => run((part) => part()),
  });
  return { driver, time, failures };
}

const unasked = () => Promise.reject(new Error("Nobody asks for it."));

const GROUND = {
  kind: "claimable",
  identity: { kind: "http", principal: "alice", key: "fenced" },
  seen: null,
} as const;

const WRITE = renounce(
  {
    identity: GROUND.identity,
    operation: "work",
    effects: "transaction",
    fingerprint: bindFingerprint(inputFingerprint("input"), new Uint8Array(16)),
    owner: "owner",
    writeId: "write",
    correlationId: null,
    leaseMs: 1_000,
    steps: NO_STEPS,
  },
  { retainMs: 1_000 },
);

function* working(run: () => Promise<void>): Unit<FencedEnd<string>> {
  yield* call("work", run);
  return { kind: "commit", write: WRITE, value: "done" };
}

/** A unit whose work takes as long as that, within 1,000 ms. */
function unitOf(workMs: number, sleep: (ms: number) => Promise<void>, ran: string[] = []) {
  return fencedUntil(1_000, GROUND, (_tx: null) =>
    working(async () => {
      ran.push("ran");
      await sleep(workMs);
    }),
  );
}

async function ending<T>(work: FencedWork<null, T>): Promise<FencedEnd<T>> {
  return await work(null, 1);
}

describe("a fenced unit", () => {
  test("that has begun may take longer than the store's time", async () => {
    const { driver, time } = driverOn(async (_ground, work) => {
      const { kind, value } = await ending(work);
      expect(kind).toBe("commit");
      return { kind: "rolled_back", value };
    });
    const flow = unitOf(900, time.runtime.sleep);
    expect(await time.until(driver.drive(flow))).toEqual({ kind: "rolled_back", value: "done" });
  });

  test("that fails in time is heard by whoever waits for it, and by nobody else", async () => {
    const { driver, time, failures } = driverOn(async (_ground, work) => {
      await ending(work);
      throw new Error("The connection was lost.");
    });
    const driven = driver.drive(unitOf(500, time.runtime.sleep)).catch(String);
    expect(await time.until(driven)).toContain("The connection was lost.");
    await time.pass(5_000);
    expect(failures).toEqual([]);
  });

  test("is given up at its own bound, is told to undo everything, and its later failure is told", async () => {
    const ends: FencedEnd<unknown>[] = [];
    const failure = new Error("The connection was lost.");
    const { driver, time, failures } = driverOn(async (_ground, work) => {
      ends.push(await ending(work));
      throw failure;
    });
    const driven = driver.drive(unitOf(5_000, time.runtime.sleep)).catch(String);
    expect(await time.until(driven)).toContain("did not answer within 1000 ms");
    expect(time.elapsedMs()).toBe(1_000);
    await time.pass(5_000);
    expect(ends).toEqual([{ kind: "rollback", value: undefined }]);
    expect(failures).toEqual([failure]);
  });

  test("that cannot begin within the store's time is not run when it begins after all", async () => {
    const ran: string[] = [];
    const { driver, time, failures } = driverOn(async (_ground, work) => {
      await time.runtime.sleep(150);
      const { value } = await ending(work);
      return { kind: "rolled_back", value };
    });
    const driven = driver.drive(unitOf(1, time.runtime.sleep, ran)).catch(String);
    expect(await time.until(driven)).toContain("did not begin a transaction within 100 ms");
    expect(time.elapsedMs()).toBe(100);
    await time.pass(1_000);
    expect([ran, failures]).toEqual([[], []]);
  });
});

test("an attempt whose claim was heard of after its lease has lost its key before it can begin", async () => {
  const { engine } = engineOn(memoryStore());
  const { context, policy } = engine;
  const held = proceeded(await engine.begin(requestFor("heard late"))).record();
  if (held.state !== "in_progress") throw new Error("It runs.");
  const startedMs = context.runtime.monotonicMs() - policy.leaseMs - 1;
  const match = () => "same" as const;
  const start = { record: held, startedMs, maxRunMs: 1_000, match, onEnded: () => {} };
  const { signal } = createAttempt<never>(context, start);
  expect(signal.reason).toBeInstanceOf(LeaseLost);
});
