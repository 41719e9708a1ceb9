import { fileURLToPath } from "node:url";
import { freePort, startProcess } from "./processes.ts";

/** What the provider did: its charges, and the keys of all requests for one. */
export interface Charged {
  readonly charges: readonly { readonly id: string; readonly amount: number }[];
  readonly asked: readonly string[];
}

/** A provider, in a process of its own, that charges each idempotency key once. */
export async function startTill(): Promise<{
  readonly url: string;
  readonly charged: () => Promise<Charged>;
}> {
  const port = await freePort();
  const script = fileURLToPath(new URL("till.mjs", import.meta.url));
  await startProcess({
    command: process.execPath,
    args: [script],
    env: { PORT: String(port) },
    readyWhen: /http:/,
  });
  const url = `http://127.0.0.1:${port}/charges`;
  return { url, charged: async () => chargedOf(await (await fetch(url)).json()) };
}

function chargedOf(told: unknown): Charged {
  if (typeof told !== "object" || told === null || !("charges" in told) || !("asked" in told))
    throw new Error("The till told something else.");
  return { charges: listOf(told.charges), asked: listOf(told.asked) };
}

function listOf<T>(value: readonly T[] | unknown): readonly T[] {
  if (Array.isArray(value)) return value;
  throw new Error("The till told no list.");
}
