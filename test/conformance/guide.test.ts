import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HistoryEffect } from "../../src/conformance/history/history.ts";
import { type Compiled, compileShown } from "../support/readme.ts";

interface Shown {
  readonly pay: (url: string, principal: string, key: string, body: string) => Promise<void>;
  readonly judge: (effects: readonly HistoryEffect[]) => readonly string[];
}

let compiled: Compiled;

beforeAll(async () => {
  compiled = await compileShown({ root: dirname(dirname(import.meta.dirname)), examples: [] });
});
afterAll(() => compiled?.remove());

test("the guide's recorder finds out a service that pays twice, and accuses nobody else", async () => {
  const { pay, judge } = await compiled.load<Shown>("history-0.js");
  const service = await openService();
  try {
    await pay(service.url, "alice", "sound", "pay 5");
    await pay(service.url, "alice", "sound", "pay 5");
    await pay(service.url, "alice", "sound", "pay 6");
    expect(judge(service.paid)).toEqual([]);
    service.forget();
    await pay(service.url, "alice", "sound", "pay 5");
    await pay("http://127.0.0.1:1/", "alice", "nobody heard", "pay 5");
    expect(judge(service.paid)).toEqual([
      expect.stringMatching(/^G3 alice sound: was answered 201 .*, and then 201 /),
      expect.stringMatching(/^G1 alice sound: has 2 effects/),
    ]);
  } finally {
    service.close();
  }
});

/** Remembers its answers until it is told to forget them. */
async function openService() {
  const kept = new Map<string, { readonly intent: string; readonly answer: string }>();
  const paid: HistoryEffect[] = [];
  const server = createServer(async (request, response) => {
    const intent = (await request.toArray()).join("");
    const key = String(request.headers["idempotency-key"]);
    const known = kept.get(key);
    if (known !== undefined && known.intent !== intent) {
      response.writeHead(422, { "content-type": "application/problem+json" });
      return response.end(JSON.stringify({ code: "key_reused" }));
    }
    const id = randomUUID();
    if (known === undefined) paid.push({ principal: "alice", key, id });
    const { answer } = known ?? { answer: JSON.stringify({ id }) };
    kept.set(key, { intent, answer });
    return response.writeHead(201, { "content-type": "application/json" }).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = portOf(server.address());
  return { url: `http://127.0.0.1:${port}/`, paid, forget: () => kept.clear(), close: () => server.close() };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("The service listens on no port.");
  return address.port;
}
