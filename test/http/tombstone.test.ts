import { describe, expect, test } from "vitest";
import type { Identity } from "../../src/core/record.ts";
import { createEngine, type EngineSettings } from "../../src/engine/engine.ts";
import { protect } from "../../src/http/fetch.ts";
import type { Store } from "../../src/stores/store.ts";
import { purge } from "../../src/worker/tick.ts";
import { onEveryStore } from "../engine/stores.ts";
import { endedAgo } from "../engine/tombstones.ts";
import { until } from "../support/processes.ts";

describe("a key that is used again after its retention", () => {
  onEveryStore((given) => {
    test("runs again where nothing else is said: the first answer told until when", async () => {
      const { store } = given();
      const { post, effects } = shop(store, { retention: "1s" });
      const first = await post("forgotten");
      const expires = Date.parse(first.headers.get("idempotency-expires") ?? "");
      expect(Math.abs(expires - Date.now() - 1_000)).toBeLessThan(30_000);
      await isOver(store, "forgotten");
      expect((await post("forgotten")).status).toBe(201);
      expect(effects()).toBe(2);
    });

    test("is 409 key_expired and runs nothing while its tombstone stands, whatever body it brings", async () => {
      const { store } = given();
      const { engine, post, effects } = shop(store, { retention: "1s", tombstone: "60s" });
      const first = await post("remembered");
      expect(first.headers.has("idempotency-expires")).toBe(true);
      const { record } = await store.read(identityOf("remembered"));
      await isOver(store, "remembered");
      for (const body of ["x", "x", "another"]) {
        const again = await post("remembered", body);
        expect(again.status).toBe(409);
        const said = await saidBy(again);
        expect(said).toMatchObject({ code: "key_expired", retry: "never", effect: "done" });
        expect(said.firstRequestAt).toBe(new Date(record?.createdAt ?? 0).toISOString());
        expect(said.detail).toContain(new Date(record?.createdAt ?? 0).toUTCString());
        expect(said.detail).toMatch(/a new key means a new request: .* a second time\./);
        expect(again.headers.has("idempotent-replayed")).toBe(false);
        await purge(engine);
      }
      expect(effects()).toBe(1);
    });

    test("says of a refusal that nothing was done, so that a new key is safe", async () => {
      const { store } = given();
      const { post } = shop(store, { tombstone: "60s" }, 402);
      await post("refused");
      const { record } = await store.read(identityOf("refused"));
      if (record?.state !== "completed") throw new Error("An undeclared 402 is an answer.");
      const refused = { ...record, state: "failed_permanent" } as const;
      const times = { createdAt: { at: record.createdAt }, claimedAt: { at: record.claimedAt } };
      const write = { ...refused, ...times, steps: new Map(), retainUntil: { inMs: 1 } };
      await store.replace(record, write, "wait");
      await isOver(store, "refused");
      const said = await saidBy(await post("refused"));
      expect(said).toMatchObject({ code: "key_expired", retry: "never", effect: "none" });
      expect(said.detail).toMatch(/was refused.*nothing was done by the first one, so that is safe\.$/);
    });

    test("is never answered with an answer that is still there", async () => {
      const { store } = given();
      const { post, effects } = shop(store, { tombstone: "1h" });
      const first = await (await post("still there")).text();
      await endedAgo(store, identityOf("still there"), 1);
      expect(await (await post("still there")).text()).not.toContain(first);
      expect(effects()).toBe(1);
    });
  });
});

function identityOf(key: string): Identity {
  return { kind: "http", principal: "alice", key };
}

function shop(store: Store, settings: EngineSettings, status = 201) {
  const engine = createEngine({ store, ...settings });
  let effects = 0;
  const route = protect(engine, { principal: () => "alice" }, () => {
    effects += 1;
    return new Response(`order ${effects}`, { status });
  });
  const post = (key: string, body = "x") =>
    route(new Request("http://shop.test/", { method: "POST", headers: { "idempotency-key": key }, body }));
  return { engine, post, effects: () => effects };
}

interface Said {
  readonly firstRequestAt: string;
  readonly detail: string;
}

async function saidBy(answer: Response): Promise<Said> {
  return JSON.parse(await answer.text());
}

async function isOver(store: Store, key: string): Promise<void> {
  await until(async () => {
    const { record, now } = await store.read(identityOf(key));
    return record !== null && "retainUntil" in record && (record.retainUntil ?? now) <= now;
  });
}
