import { randomUUID } from "node:crypto";
import type { Answer, Identity, RecordWrite } from "../../src/core/record.ts";
import { type Claim, claim } from "../../src/core/transition.ts";

/** An identity over HTTP. */
export function httpIdentity(key: string, principal = "alice"): Identity {
  return { kind: "http", principal, key };
}

/** What a first attempt writes, with an owner and a write id of its own. */
export function claimOf(identity: Identity, change: Partial<Omit<Claim, "identity">> = {}): RecordWrite {
  return claim({
    identity,
    operation: "POST /payments",
    effects: "transaction",
    fingerprint: {
      version: "1",
      salt: new Uint8Array(16).fill(1),
      raw: new Uint8Array(32).fill(2),
      canonical: new Uint8Array(32).fill(3),
    },
    owner: randomUUID(),
    writeId: randomUUID(),
    correlationId: null,
    leaseMs: 90_000,
    steps: new Map(),
    ...change,
  });
}

/** A 201 with this body. */
export function answerOf(body: Uint8Array | null, headers: Answer["headers"] = []): Answer {
  return { status: 201, headers, body };
}
