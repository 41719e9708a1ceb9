import type { History, HistoryCall, HistoryEffect, Told } from "../../src/conformance/history/history.ts";
import type { SeededRandom } from "../support/seed.ts";

/** The record of one key in a service that does what it promises. */
interface Record {
  state: "free" | "running" | "kept";
  intent: string;
  /** Until when it runs, or is kept. */
  untilMs: number;
  final: Extract<Told, { kind: "final" }> | null;
}

interface Draw {
  readonly random: SeededRandom;
  readonly key: string;
  readonly retentionMs: number;
}

/** What callers of a sound service saw of some keys, one answer in five lost on its way. */
export function soundHistory(random: SeededRandom, retentionMs = Number.POSITIVE_INFINITY): History {
  const keys = Array.from({ length: 3 }, (_, index) => seenOf({ random, key: `k${index}`, retentionMs }));
  return {
    calls: keys.flatMap(({ calls }) => calls),
    effects: keys.flatMap(({ effects }) => effects),
    retentionMs,
  };
}

function seenOf(draw: Draw): {
  readonly calls: readonly HistoryCall[];
  readonly effects: readonly HistoryEffect[];
} {
  const { random, key } = draw;
  const record: Record = { state: "free", intent: "", untilMs: 0, final: null };
  const effects: HistoryEffect[] = [];
  const calls: HistoryCall[] = [];
  let atMs = 100;
  for (let count = 2 + random.below(8); count > 0; count--) {
    atMs += 1 + random.below(40);
    const intent = random.below(4) === 0 ? "other" : "one";
    const { told, heardMs } = carriedOut(draw, record, { intent, atMs }, effects);
    const lost = random.below(5) === 0;
    calls.push({
      ...{ principal: "alice", key, intent, fromMs: atMs - random.below(20) },
      ...{ toMs: heardMs + random.below(20), told: lost ? { kind: "unheard" } : told },
    });
  }
  return { calls, effects };
}

/** At one instant the record says what there is to say; whoever claims it hears of it when the work is over. */
function carriedOut(
  { random, key, retentionMs }: Draw,
  record: Record,
  { intent, atMs }: { readonly intent: string; readonly atMs: number },
  effects: HistoryEffect[],
): { readonly told: Told; readonly heardMs: number } {
  if (record.state === "running" && atMs >= record.untilMs) {
    record.state = record.final === null ? "free" : "kept";
    record.untilMs += retentionMs;
  }
  if (record.state === "kept" && atMs >= record.untilMs) record.state = "free";
  if (record.state !== "free") {
    if (intent !== record.intent) return { told: { kind: "key_reused" }, heardMs: atMs };
    const told = record.state === "kept" ? record.final : null;
    return { told: told ?? { kind: "in_progress" }, heardMs: atMs };
  }
  const heardMs = atMs + random.below(60);
  const outcome = random.pick(["made", "made", "none", "released"] as const);
  const id = `${key}/${effects.length}/${atMs}`;
  const final = { kind: "final", answer: `answer ${id}`, effect: "none" } as const;
  Object.assign(record, { state: "running", intent, untilMs: heardMs });
  record.final = outcome === "released" ? null : final;
  if (outcome === "made") {
    effects.push({ principal: "alice", key, id });
    record.final = { ...final, effect: "made", effectId: id };
  }
  return { told: record.final ?? { kind: "not_performed" }, heardMs };
}
