import { ParseError, parseItem } from "structured-headers";

/** What the `Idempotency-Key` lines of one request say; `reason` is the same every time for the same lines. */
export type KeyHeader =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "missing" }
  | { readonly kind: "invalid"; readonly reason: string };

/** The longest key of a header, in characters, without its quotes and escapes. */
export const maxKeyLength = 255;

/**
 * Reads the key off the header lines as they were received, one string for each line.
 *
 * The quoted form is an RFC 9651 string, whose parameters are ignored; `strict` accepts nothing else. A bare value is
 * the key as it stands, so `abc` and `"abc"` are one key, and a `;` belongs to a bare key. A comma or a quote in a
 * bare value is refused: it is what two lines look like after something joined them, or a quoting gone wrong.
 */
export function parseKeyHeader(
  values: readonly string[],
  { strict = false }: { readonly strict?: boolean } = {},
): KeyHeader {
  const [line, ...others] = values;
  if (line === undefined) return { kind: "missing" };
  if (others.length > 0) return invalid("Send exactly one Idempotency-Key header; there were more.");
  const value = withoutSurroundingSpace(line);
  if (value === "") return invalid("The Idempotency-Key header is empty.");
  if (!/^[\x20-\x7e]*$/.test(value)) {
    return invalid(
      "The Idempotency-Key header may hold printable ASCII only: no tabs, controls or other alphabets.",
    );
  }
  if (value.startsWith('"')) return quotedKey(value);
  if (strict) return invalid('The Idempotency-Key must be in double quotes, such as "8e03978e-40d5-43dd".');
  if (value.includes('"')) {
    return invalid(
      "The Idempotency-Key has a double quote in or behind it; quote the whole key or nothing of it.",
    );
  }
  if (value.includes(",")) {
    return invalid("The Idempotency-Key has a comma, as if there were two keys; quote a key that has one.");
  }
  return withinLimits(value);
}

function invalid(reason: string): KeyHeader {
  return { kind: "invalid", reason };
}

/** Optional white space (RFC 9110, 5.6.3) around a field value is no part of it. */
function withoutSurroundingSpace(line: string): string {
  let start = 0;
  let end = line.length;
  while (start < end && isSpace(line.charAt(start))) start += 1;
  while (end > start && isSpace(line.charAt(end - 1))) end -= 1;
  return line.slice(start, end);
}

function isSpace(character: string): boolean {
  return character === " " || character === "\t";
}

function quotedKey(value: string): KeyHeader {
  try {
    const [item] = parseItem(value);
    if (typeof item === "string") return withinLimits(item);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
  }
  return invalid(
    'The quoting of the Idempotency-Key is broken: send "key", with \\" for a quote and \\\\ for a backslash in it.',
  );
}

function withinLimits(key: string): KeyHeader {
  if (/^ *$/.test(key)) return invalid("The Idempotency-Key is blank.");
  if (key.length > maxKeyLength) {
    return invalid(`The Idempotency-Key has ${key.length} characters; at most ${maxKeyLength} are allowed.`);
  }
  return { kind: "key", key };
}
