import { setTimeout as pause } from "node:timers/promises";
import { CannotProbeError } from "./refusal.ts";
import type { Counting } from "./settings.ts";
import { exchange, type WireLimits } from "./wire.ts";

/** How many effects there are so far, by the server's own word. */
export async function countEffects(
  counting: Counting,
  limits: Omit<WireLimits, "mayLeave">,
): Promise<number> {
  const { target, headers, settleMs, pointer } = counting;
  if (settleMs > 0) await pause(settleMs);
  const request = { method: "GET", url: target.url, headers, body: Buffer.alloc(0) };
  const heard = await exchange(request, { ...limits, mayLeave: target.mayLeave });
  if (heard.kind === "none") throw new CannotProbeError(`--count-url cannot be read: ${heard.reason}.`);
  const { status, body } = heard.answer;
  if (status !== 200) {
    throw new CannotProbeError(
      `--count-url was answered ${status}; give what it asks for by --count-header.`,
    );
  }
  const number = numberIn(body.toString("utf8"), pointer);
  if (number === null) {
    const where = pointer === "" ? "its answer" : `${pointer} of its answer`;
    throw new CannotProbeError(
      `--count-url: ${where} is neither a number nor an array. Say where one is by --count-pointer.`,
    );
  }
  return number;
}

/** The number in a text, or at a place in a JSON document; of an array the number of its members. */
export function numberIn(text: string, pointer: string): number | null {
  const value = pointer === "" ? documentIn(text.trim()) : placeIn(documentIn(text), pointer);
  if (Array.isArray(value)) return value.length;
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : null;
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

function documentIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** RFC 6901. */
function placeIn(document: unknown, pointer: string): unknown {
  let value = document;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Object.entries(value).find(([each]) => each === name)?.[1];
  }
  return value;
}
