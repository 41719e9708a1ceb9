/** What was said of a key, a principal or an operation: it stands as given, there was none, or it cannot be used. */
export type CheckedName =
  | { readonly kind: "valid"; readonly value: string }
  | { readonly kind: "missing" }
  | { readonly kind: "invalid"; readonly reason: string };

/** The longest key, principal or operation in bytes of UTF-8: above any identifier in use, and a record stays small. */
export const maxNameBytes = 1024;

/**
 * Checks a key of the programmatic API: any well-formed Unicode without NUL, not blank, up to `maxNameBytes`.
 *
 * Whatever is no string, and the empty string, counts as missing: a caller whose look-up found nothing must never
 * share a record with another such caller. A valid key is the string as given, never trimmed, folded or normalised.
 */
export function checkKey(value: unknown): CheckedName {
  return checkName("key", value);
}

/** Checks a principal, by the rules of `checkKey`. */
export function checkPrincipal(value: unknown): CheckedName {
  return checkName("principal", value);
}

/** Checks an operation's name, by the rules of `checkKey`. */
export function checkOperation(value: unknown): CheckedName {
  return checkName("operation", value);
}

/**
 * Joins strings so that no two different lists give the same text, whatever is in them: each part stands behind its
 * length. The text is always well-formed, so that this holds for the hash of its UTF-8 bytes too.
 */
export function lengthPrefixed(parts: readonly string[]): string {
  return parts.map(prefixed).join("");
}

function checkName(noun: string, value: unknown): CheckedName {
  if (typeof value !== "string" || value === "") return { kind: "missing" };
  if (/^[\s\p{White_Space}]+$/u.test(value))
    return invalid(`The ${noun} is blank: it has nothing but white space.`);
  if (value.includes("\0")) {
    return invalid(`The ${noun} has a NUL character, which some databases cannot keep; leave it out.`);
  }
  if (loneSurrogate.test(value)) {
    return invalid(
      `The ${noun} is damaged Unicode: it has half of a surrogate pair. Encode binary keys as text.`,
    );
  }
  if (value.length * 3 > maxNameBytes && utf8Length(value) > maxNameBytes) {
    return invalid(`The ${noun} is longer than ${maxNameBytes} bytes in UTF-8; use a hash of it.`);
  }
  return { kind: "valid", value };
}

function invalid(reason: string): CheckedName {
  return { kind: "invalid", reason };
}

const loneSurrogate = /\p{Surrogate}/u;

/** No more than three bytes for a code unit. */
function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
  }
  return length;
}

/** `2:ab`; a part with lone surrogates, which UTF-8 cannot tell apart, is spelled in hexadecimal: `4~d800`. */
function prefixed(part: string): string {
  if (!loneSurrogate.test(part)) return `${part.length}:${part}`;
  let spelled = "";
  for (let index = 0; index < part.length; index += 1) {
    spelled += part.charCodeAt(index).toString(16).padStart(4, "0");
  }
  return `${spelled.length}~${spelled}`;
}
