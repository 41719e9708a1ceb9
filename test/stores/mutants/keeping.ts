import type { Answer, Identity, RecordWrite } from "../../../src/core/record.ts";
import { identityText } from "../../../src/stores/codec.ts";
import { identities, type Mutant, records, times, verbs, writes } from "./mutant.ts";

/** Wrong ways to keep what was written, to tell identities apart and to tell the time. */
export const keepingMutants: readonly Mutant[] = [
  {
    fault: "a body is cut at 64 KiB",
    killedBy: ["keeping/large-answer"],
    make: writes(answers((answer) => ({ ...answer, body: answer.body?.subarray(0, 65_535) ?? null }))),
  },
  {
    fault: "a body loses its last byte",
    killedBy: ["keeping/answer-of-any-bytes", "keeping/large-answer"],
    make: writes(answers((answer) => ({ ...answer, body: answer.body?.subarray(0, -1) ?? null }))),
  },
  {
    fault: "a body is kept as UTF-8 text",
    killedBy: ["keeping/answer-of-any-bytes"],
    make: writes(answers((answer) => ({ ...answer, body: answer.body && asText(answer.body) }))),
  },
  {
    fault: "an empty body is kept as none",
    killedBy: ["keeping/empty-is-not-absent"],
    make: writes(answers((answer) => ({ ...answer, body: answer.body?.length ? answer.body : null }))),
  },
  {
    fault: "a body that was not kept comes back empty",
    killedBy: ["keeping/empty-is-not-absent", "keeping/every-field-of-every-state"],
    make: writes(answers((answer) => ({ ...answer, body: answer.body ?? new Uint8Array() }))),
  },
  {
    fault: "what came sealed is kept as a body",
    killedBy: ["keeping/sealed-stays-sealed"],
    make: writes(
      answers(({ sealed, ...answer }) => (sealed === undefined ? answer : { ...answer, body: sealed })),
    ),
  },
  {
    fault: "of repeated headers the last one is kept",
    killedBy: ["keeping/headers-as-sent"],
    make: writes(answers((answer) => ({ ...answer, headers: [...new Map(answer.headers)] }))),
  },
  {
    fault: "header names are written small",
    killedBy: ["keeping/headers-as-sent"],
    make: writes(
      answers((answer) => ({
        ...answer,
        headers: answer.headers.map(([name, value]) => [name.toLowerCase(), value] as const),
      })),
    ),
  },
  {
    fault: "header values lose what is not ASCII",
    killedBy: ["keeping/headers-as-sent"],
    make: writes(
      answers((answer) => ({
        ...answer,
        headers: answer.headers.map(([name, value]) => [name, value.replace(/[^ -~]/g, "?")] as const),
      })),
    ),
  },
  {
    fault: "steps are kept as the members of an object",
    killedBy: ["keeping/steps-of-any-name"],
    make: writes((write) => {
      const members: Record<string, unknown> = {};
      for (const [name, step] of write.steps) members[name] = step;
      return { ...write, steps: new Map([...write.steps].filter(([name]) => Object.hasOwn(members, name))) };
    }),
  },
  {
    fault: "steps and reference of an earlier version shine through",
    killedBy: ["keeping/steps-move-on", "keeping/versions-replace-each-other-whole"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const earlier = (await store.read(seen.identity)).record;
        const lost = [...(earlier?.steps ?? [])].filter(([name]) => !write.steps.has(name));
        const steps = new Map([...write.steps, ...lost.map(([name]) => [name, CLEAR] as const)]);
        const reference = write.reference ?? earlier?.reference ?? null;
        return store.replace(seen, { ...write, steps, reference }, patience);
      },
    })),
  },
  {
    fault: "a reason is kept as UTF-8 up to the first NUL",
    killedBy: ["keeping/reasons-of-any-text"],
    make: writes((write) => {
      if (write.state !== "unknown") return write;
      const [reason = ""] = Buffer.from(write.evidence.reason).toString().split("\0");
      return { ...write, evidence: { ...write.evidence, reason } };
    }),
  },
  {
    fault: "the correlation id is forgotten",
    killedBy: ["keeping/every-field-of-every-state"],
    make: writes((write) => ({ ...write, correlationId: null })),
  },
  {
    fault: "numbers are cut to 32 bits",
    killedBy: ["keeping/numbers-of-any-size"],
    make: writes((write) => {
      const steps = [...write.steps].map(([name, step]) => {
        if (step.state === "clear" || step.keyTtlMs === null) return [name, step] as const;
        return [name, { ...step, keyTtlMs: Math.min(step.keyTtlMs, 2_147_483_647) }] as const;
      });
      return { ...write, steps: new Map(steps) };
    }),
  },
  {
    fault: "the caller's own bytes are kept, and handed out again",
    killedBy: ["keeping/is-a-copy"],
    make: (subject) => {
      const bodies = new Map<string, Uint8Array | null>();
      const remembering = writes(
        answers((answer, { identity }) => {
          bodies.set(identityText(identity), answer.body);
          return answer;
        }),
      );
      const handingOut = records((record) => {
        if (record.state !== "completed") return record;
        const body = bodies.get(identityText(record.identity)) ?? record.answer.body;
        return { ...record, answer: { ...record.answer, body } };
      });
      return handingOut(remembering(subject));
    },
  },
  {
    fault: "another handle is a copy that lags behind",
    killedBy: ["replace/next-version-stands", "insert/loser-rewrites-nothing"],
    make: (subject) => ({
      ...subject,
      another: async () => {
        const other = await subject.another();
        return { ...other, read: async (identity) => ({ ...(await other.read(identity)), record: null }) };
      },
    }),
  },
  {
    fault: "keys and principals are folded to small letters",
    killedBy: ["identity/spelling-is-exact"],
    make: identities(names((name) => name.toLowerCase())),
  },
  {
    fault: "blanks at the end do not count",
    killedBy: ["identity/spelling-is-exact"],
    make: identities(names((name) => name.trimEnd())),
  },
  {
    fault: "names are normalised",
    killedBy: ["identity/spelling-is-exact"],
    make: identities(names((name) => name.normalize("NFC"))),
  },
  {
    fault: "names are cut after 255 characters",
    killedBy: ["identity/long-names-are-whole"],
    make: identities(names((name) => name.slice(0, 255))),
  },
  {
    fault: "the principal is left out",
    killedBy: ["identity/principals-are-apart"],
    make: identities((identity) => ({ ...identity, principal: "everybody" })),
  },
  {
    fault: "principal and key are joined with a colon",
    killedBy: ["identity/parts-do-not-flow-together"],
    make: identities((identity) => {
      if (identity.kind === "run") return identity;
      return { ...identity, principal: "joined", key: `${identity.principal}:${identity.key}` };
    }),
  },
  {
    fault: "the operation is left out of an identity of run",
    killedBy: ["identity/http-and-run-are-apart"],
    make: identities(({ principal, key }) => ({ kind: "http", principal, key })),
  },
  {
    fault: "durations are taken for seconds",
    killedBy: ["time/durations-count-from-now"],
    make: writes(times((due) => ("at" in due ? due : { inMs: due.inMs * 1_000 }))),
  },
  {
    fault: "durations are cut to a thousandth",
    killedBy: ["time/durations-count-from-now"],
    make: writes(times((due) => ("at" in due ? due : { inMs: Math.ceil(due.inMs / 1_000) }))),
  },
  {
    fault: "a renewed lease counts from the claim",
    killedBy: ["time/a-replacement-counts-from-its-own-now"],
    make: verbs((store) => ({
      replace: async (seen, write, patience) => {
        const claimedAt = (await store.read(seen.identity)).record?.claimedAt ?? 0;
        const fromClaim = times((due) => ("at" in due ? due : { at: claimedAt + due.inMs }));
        return store.replace(seen, fromClaim(write), patience);
      },
    })),
  },
  {
    fault: "instants are kept in whole seconds",
    killedBy: ["keeping/every-field-of-every-state", "time/instants-are-kept"],
    make: writes(times((due) => ("at" in due ? { at: Math.floor(due.at / 1_000) * 1_000 } : due))),
  },
  {
    fault: "the steps are stamped again with every write",
    killedBy: ["time/steps-are-stamped-once"],
    make: writes((write) => ({ ...write, steps: times(() => ({ inMs: 0 }))(write).steps })),
  },
  {
    fault: "a lease counts from the moment of the look",
    killedBy: ["time/a-read-moves-nothing"],
    make: verbs((store) => ({
      read: async (identity) => {
        const { record, now } = await store.read(identity);
        if (record?.state !== "in_progress") return { record, now };
        return { record: { ...record, leaseUntil: record.leaseUntil + now - record.updatedAt }, now };
      },
    })),
  },
  {
    fault: "the clock is set back now and then",
    killedBy: ["time/now-never-goes-back"],
    make: verbs((store) => {
      let looks = 0;
      const back = () => (looks++ % 7 === 6 ? 5_000 : 0);
      return {
        read: async (identity) => {
          const looked = await store.read(identity);
          return { ...looked, now: looked.now - back() };
        },
      };
    }),
  },
  {
    fault: "the clock counts seconds",
    killedBy: ["time/is-the-time-of-day"],
    make: verbs((store) => ({
      read: async (identity) => {
        const looked = await store.read(identity);
        return { ...looked, now: Math.floor(looked.now / 1_000) };
      },
    })),
  },
  {
    fault: "every handle has a clock of its own",
    killedBy: ["time/handles-share-one-clock"],
    make: (subject) => ({
      ...subject,
      another: async () => {
        const other = await subject.another();
        const late = async (identity: Identity) => {
          const looked = await other.read(identity);
          return { ...looked, now: looked.now - 30_000 };
        };
        return { ...other, read: late };
      },
    }),
  },
];

const CLEAR = { state: "clear", generation: 0 } as const;

function answers(spoil: (answer: Answer, write: RecordWrite) => Answer): (write: RecordWrite) => RecordWrite {
  return (write) => {
    if (write.state !== "completed" && write.state !== "failed_permanent") return write;
    return { ...write, answer: spoil(write.answer, write) };
  };
}

function names(fold: (name: string) => string): (identity: Identity) => Identity {
  return (identity) => {
    const { principal, key } = identity;
    const folded = { principal: fold(principal), key: fold(key) };
    if (identity.kind === "http") return { kind: "http", ...folded };
    return { kind: "run", ...folded, operation: fold(identity.operation) };
  };
}

function asText(bytes: Uint8Array): Uint8Array {
  return new TextEncoder().encode(new TextDecoder().decode(bytes));
}
