/** A member of a JSON object: its name in quotes, and the canonical text of name and value. */
export interface Member {
  readonly quoted: string;
  readonly text: string;
}

/**
 * The members of the object that a canonical text is of, in its order; `null` where it is of another value, or where
 * they are more than `most`. The text is one that `canonicalJson` wrote: there are no blanks in it.
 */
export function topLevelMembers(canonical: string, most: number): readonly Member[] | null {
  if (canonical.charCodeAt(0) !== OBJECT) return null;
  const members: Member[] = [];
  let at = 1;
  while (at < canonical.length - 1) {
    if (members.length === most) return null;
    const nameEnd = endOfString(canonical, at);
    const end = endOfValue(canonical, nameEnd + 1);
    members.push({ quoted: canonical.slice(at, nameEnd), text: canonical.slice(at, end) });
    at = end + 1;
  }
  return members;
}

const [QUOTE, COMMA, ARRAY, BACKSLASH, ARRAY_END, OBJECT, OBJECT_END] = [
  0x22, 0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d,
];

/** Behind the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

/** Where the comma or the bracket stands that follows the value which begins at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (depth === 0 && (code === COMMA || code === OBJECT_END)) return at;
    if (code === OBJECT || code === ARRAY) depth += 1;
    if (code === OBJECT_END || code === ARRAY_END) depth -= 1;
    at = code === QUOTE ? endOfString(text, at) : at + 1;
  }
}
