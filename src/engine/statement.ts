/**
 * Whether a text of SQL, or one of the statements in it, changes anything. Where that is in doubt it does: a false alarm
 * is looked at, a missed write is not.
 */
export function writes(text: string): boolean {
  const plain = plainly(text);
  return UNENDED.test(plain) || plain.split(";").some(changes);
}

/** Whether a text opens a transaction. */
export function begins(text: string): boolean {
  return ["begin", "start"].includes(firstWord(plainly(text)));
}

/** The text without its comments, each literal and quoted name as one letter: what is left is SQL's own words. */
function plainly(text: string): string {
  return text
    .replace(QUOTED, (part) => (part.startsWith("--") || part.startsWith("/*") ? " " : " q "))
    .toLowerCase();
}

/** Comments; literals, with a backslash's escapes where they begin with E; names; PostgreSQL's dollar quotes. */
const QUOTED =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\b[eE]'[^'\\]*(?:\\[\s\S][^'\\]*)*'|'[^']*'|"[^"]*"|`[^`]*`|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/g;

/** A quote or a comment whose end was not found: what is behind it was not read. */
const UNENDED = /['"`]|\/\*|\*\//;

function firstWord(statement: string): string {
  return /^[\s(]*([a-z_]+)/.exec(statement)?.[1] ?? "";
}

function changes(statement: string): boolean {
  const first = firstWord(statement);
  switch (first) {
    case "":
      return /[^\s()]/.test(statement);
    case "select":
    case "values":
    case "table":
      return /\binto\b/.test(statement); // makes a table
    case "with":
      return changesWithin(statement);
    case "copy":
      return /^\s*copy\s*\(/.test(statement) ? changesWithin(statement) : /\bfrom\b/.test(statement);
    case "explain": {
      const { head = "", explained = "" } = EXPLAINING.exec(statement)?.groups ?? {};
      return /\banaly[sz]e\b/.test(head) && changes(explained); // it is carried out then
    }
  }
  return !HARMLESS.has(first);
}

const EXPLAINING =
  /^[\s(]*(?<head>explain(?:\s+analy[sz]e\b|\s+verbose\b|\s*\([^)]*\))*)(?<explained>[\s\S]*)$/;

function changesWithin(statement: string): boolean {
  return /\b(insert|update|delete|merge|into)\b/.test(statement.replace(LOCKING, " "));
}

const LOCKING = /\bfor\s+(?:no\s+key\s+)?update\b/g;

/** First words of statements that change no rows, nor what may hold any. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"],
  ...["set", "reset", "show", "pragma", "use", "describe", "desc", "discard"],
  ...["declare", "fetch", "move", "close", "deallocate", "listen", "unlisten", "lock"],
]);
