import type { Answer, Due, ProviderKind, RecordWrite, StepOf } from "../core/record.ts";
import { completed, failedPermanent, inProgress, randomBytes, released, unknown } from "./draft.ts";
import type { StoreSubject } from "./subject.ts";

type Seeded = Pick<StoreSubject, "random">;

/** Every value that a byte can have, the ones that look like text included. */
export const EVERY_BYTE: Uint8Array = Uint8Array.from({ length: 256 }, (_, value) => value);

/** One write for every state with every field filled, and one for every state with all that may be empty empty. */
export function everyState(subject: Seeded): readonly RecordWrite[] {
  return [
    inProgress(subject, { ...FILLED, leaseUntil: at(3) }),
    inProgress(subject, { ...BARE, leaseUntil: at(3) }),
    released(subject, { ...FILLED, retainUntil: at(3) }),
    released(subject, { ...BARE, retainUntil: at(3) }),
    unknown(subject, { ...FILLED, ...DOUBT }),
    unknown(subject, { ...BARE, ...HELD }),
    unknown(subject, { ...BARE, ...HELD, disposition: "review", retainUntil: null }),
    completed(subject, { ...FILLED, answer: fullAnswer(subject), ...KEPT_LONG }),
    completed(subject, { ...BARE, answer: { status: 204, headers: [], body: null }, retainUntil: at(3) }),
    failedPermanent(subject, { ...FILLED, answer: fullAnswer(subject), ...KEPT_LONG }),
    failedPermanent(subject, {
      ...BARE,
      answer: { status: 422, headers: [], body: null },
      retainUntil: at(3),
    }),
  ];
}

/** A step of every state and of every kind of provider, under names that are easily lost. */
export function everyStep(): ReadonlyMap<string, StepOf<Due>> {
  const providers: readonly ProviderKind[] = ["repeatable", "keyed", "query", "blind"];
  const names = ["__proto__", "constructor", "", "mail 📧", "a.b/c", "A.B/C", "toString", "0"];
  const marks = providers.flatMap((provider, n): readonly StepOf<Due>[] => {
    const plain = { provider, generation: n, openedAt: at(n), keyTtlMs: null, validUntil: null };
    const dated = { ...plain, keyTtlMs: 86_400_000 + n, validUntil: at(100 + n) };
    return [
      { ...plain, state: "open" },
      { ...dated, state: "open" },
      { ...plain, state: "finished", result: EVERY_BYTE },
      { ...dated, state: "refused", result: new Uint8Array() },
      { state: "clear", generation: n },
    ];
  });
  return new Map(marks.map((mark, n) => [names[n] ?? `step ${n}`, mark] as const));
}

/** The n-th of a row of instants, far in the future and never alike. */
export function at(n: number): Due {
  return { at: 4_000_000_000_000 + 1_001 * n };
}

const FILLED = {
  operation: "charge é 🧾",
  effects: "declared",
  reference: EVERY_BYTE,
  correlationId: "4bf92f3577b34da6",
  steps: everyStep(),
  createdAt: at(1),
  claimedAt: at(2),
} as const;

const BARE = {
  operation: "",
  effects: "transaction",
  reference: null,
  correlationId: null,
  steps: new Map<string, StepOf<Due>>(),
  createdAt: at(1),
  claimedAt: at(1),
} as const;

const DOUBT = {
  evidence: { reason: 'The reply was lost: "ECONNRESET"\n', result: EVERY_BYTE },
  looks: 3,
  nextLookAt: at(4),
  disposition: "reconcile",
  retainUntil: null,
} as const;

const KEPT_LONG = { retainUntil: at(3), tombstoneMs: 86_400_000 } as const;

const HELD = {
  evidence: { reason: "", result: null },
  looks: 0,
  nextLookAt: null,
  disposition: "hold",
  retainUntil: at(5),
} as const;

function fullAnswer(subject: Seeded): Answer {
  const headers = [
    ["Content-Type", "application/octet-stream"],
    ["X-Thing", ""],
  ] as const;
  return { status: 599, headers, body: randomBytes(subject, 1_000) };
}
