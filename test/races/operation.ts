import type { OperationDefinition } from "../../src/index.ts";
import { answerText, valueIn } from "./judge.ts";
import {
  type Asking,
  failsNow,
  KEY_TTL_MS,
  providerKindOf,
  type Server,
  type ServerOptions,
  VALID_FOR_MS,
} from "./kinds.ts";
import type { OpenTx } from "./open-tx.ts";
import type { Seen, Word } from "./provider.ts";

interface Charge {
  readonly scope: string;
  readonly input: string;
}

/** The door of an operation, which each engine makes known once. */
export function operationDoor(options: ServerOptions): Server["ask"] {
  const { library, engine } = options;
  const operation = library.operation<OpenTx, "async", Asking, Charge, Word>(engine, definitionOf(options));
  return async ({ principal, key, input }) => {
    const identity = { kind: "run", principal, operation: "pay", key } as const;
    const material = { raw: bytesOf(input), canonical: () => bytesOf(input) };
    const fingerprint = { version: "1", material: () => material };
    const executed = await operation.execute({ identity, fingerprint }, { principal, key, input });
    switch (executed.kind) {
      case "settled":
      case "replay":
        return { kind: "final", value: valueIn(executed.answer.body) };
      default:
        return { kind: "not now", why: executed.kind };
    }
  };
}

/** As long as a digest. */
function bytesOf(input: string): Uint8Array {
  return Buffer.alloc(32, input);
}

function definitionOf(options: ServerOptions): Definition {
  const { kind, provider, process, judge, world } = options;
  const offered = providerKindOf(kind);
  const timed = {
    ...(offered === "repeatable" ? { keyTtl: KEY_TTL_MS } : {}),
    ...(offered === "query" ? { validFor: VALID_FOR_MS } : {}),
  };
  const look: Definition["look"] = async ({ attempt }) =>
    sighted(await provider.look(process, attempt.downstreamKey));
  const cancel: Definition["cancel"] = async ({ attempt }) => {
    const word = await provider.cancel(process, attempt.downstreamKey);
    return word.kind === "cancelled" ? word : { kind: "found", result: word };
  };
  return {
    ...{ name: "pay", provider: offered, ...timed },
    ...(offered === "keyed" || offered === "query" ? { look } : {}),
    ...(offered === "keyed" ? { cancel } : {}),
    open: (tx, { input, attempt }) => {
      const scope = `${input.principal}/${input.key}`;
      tx.rows.push({ scope, attempt: attempt.number, what: "open" });
      return { scope, input: input.input }; // the same row, for what is asked now
    },
    perform: async ({ reference: { scope, input }, attempt: { number, downstreamKey, validUntil } }) => {
      judge.started(scope, number);
      const call = {
        key: downstreamKey,
        scope,
        input,
        attempt: number,
        validUntil: validUntil?.getTime() ?? null,
      };
      return await provider.call(process, { ...call });
    },
    finish: (tx, { reference: { scope, input }, result, attempt: { number } }) => {
      failsNow(world);
      tx.rows.push({ scope, attempt: number, what: result.kind === "done" ? result.id : "abandoned" });
      if (result.kind === "declined") return { status: 402, body: result.value };
      return { status: 201, body: answerText(scope, input, number, result.id) };
    },
    abandon: (tx, { reference: { scope } }) => {
      tx.rows.push({ scope, attempt: -1, what: "abandoned" });
    },
  };
}

type Definition = OperationDefinition<OpenTx, "async", Asking, Charge, Word>;

function sighted(seen: Seen) {
  switch (seen.kind) {
    case "done":
    case "declined":
      return { kind: "found", result: seen } as const;
    case "not_found":
    case "pending":
      return { kind: seen.kind };
  }
}
