import { expect, test } from "vitest";
import type { Effect } from "../../src/engine/effects.ts";
import { createEngine } from "../../src/engine/engine.ts";
import { protect } from "../../src/http/fetch.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { Store } from "../../src/stores/store.ts";

function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

const BLIND = { provider: "blind" } as const;

test("an answer of 200 never leaves while its record is released: what a call brings while another is being kept counts", async () => {
  const kept = memoryStore();
  const [first, second, keeping, judged] = [gate(), gate(), gate(), gate()];
  const replace: Store["replace"] = async (seen, write, patience) => {
    const has = (step: string) => write.steps.get(step)?.state === "finished";
    if (write.state === "in_progress" && has("a") && !has("b")) {
      keeping.open();
      await second.opened; // the handler has answered by now, and the other call is back
    }
    if (write.state === "in_progress" && has("b")) await judged.opened;
    return await kept.replace(seen, write, patience);
  };
  const engine = createEngine({ store: { ...kept, replace } });
  const effects: Promise<unknown>[] = [];
  const other = gate();
  const calling = async ({ effect }: { readonly effect: Effect }) => {
    effects.push(
      effect("a", BLIND, () => first.opened),
      effect("b", BLIND, () => other.opened),
    );
    while (Object.keys((await marks()) ?? {}).length < 2) await new Promise((go) => setTimeout(go, 1));
    first.open();
    await keeping.opened;
    return new Response("made");
  };
  const identity = { kind: "http", principal: "alice", key: "late" } as const;
  const marks = async () => Object.fromEntries((await kept.read(identity)).record?.steps ?? []);
  const route = protect(engine, { principal: () => "alice", effects: "declared" }, (_, given) =>
    calling(given),
  );
  const headers = { "idempotency-key": identity.key };
  const answering = route(new Request("http://shop.test/", { method: "POST", headers, body: "x" }));
  await keeping.opened;
  await new Promise((go) => setTimeout(go, 30));
  other.open();
  await new Promise((go) => setTimeout(go, 10));
  second.open();
  await new Promise((go) => setTimeout(go, 30));
  judged.open();
  const answer = await answering;
  await Promise.all(effects);
  const { record } = await kept.read(identity);
  expect([answer.status, record?.state]).toEqual([200, "completed"]);
  await engine.close({ drain: 1 });
});
