/**
 * A body that means something else: of a JSON document one number or text is changed, of anything else one character.
 * Null where there is nothing to change.
 */
export function otherThan(body: Buffer): Buffer | null {
  const text = body.toString("utf8");
  if (text.trim() === "" || !Buffer.from(text).equals(body)) return null;
  const changed = otherDocument(text);
  if (changed !== null) return Buffer.from(changed);
  return /\w$/.test(text) ? Buffer.from(`${text}1`) : null;
}

/** The spelling around the change stays as it is. */
function otherDocument(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null; // no JSON: the caller has another way
  }
  for (const [pattern, change] of CHANGES) {
    const changed = text.replace(pattern, (_, before: string, value: string) => before + change(value));
    if (changed !== text) return changed;
  }
  return null;
}

/** Amounts first, since they are what servers take any of; a digit moves by one and never becomes a leading zero. */
const CHANGES: readonly (readonly [RegExp, (value: string) => string])[] = [
  [/([:[]\s*)(-?\d+(?:\.\d+)?)(?=\s*[,}\]])/, otherNumber],
  [/([:[]\s*")(\d+(?:\.\d+)?)(?=")/, otherNumber],
  [/([:[]\s*"(?:[^"\\]|\\.)*)()(?=")/, () => "1"],
];

function otherNumber(value: string): string {
  const last = value.slice(-1);
  return value.slice(0, -1) + (last === "9" ? "8" : String(Number(last) + 1));
}
