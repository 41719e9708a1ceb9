import { OncekeyError, StoreContention, StoreUnavailable } from "../../errors.ts";
import { fileOf, type SqliteConnection } from "./connection.ts";

/** Whether somebody else's lock was in the way, so that the same thing may be tried again. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code === "BUSY" || code === "LOCKED";
}

/** Whether this transaction read before it wrote and others wrote since: only the whole of it may be tried again. */
export function isOutdated(error: unknown): boolean {
  return isBusy(error) && extendedCodeOf(error) === BUSY_SNAPSHOT;
}

/** Whether something of the user's holds the row that was to go: a foreign key (RESTRICT has a code of its own), or a trigger. */
export function isResistance(error: unknown): boolean {
  const code = extendedCodeOf(error);
  return code === CONSTRAINT_FOREIGNKEY || code === CONSTRAINT_TRIGGER;
}

/** What a driver's error means to those who use the store; errors that mean nothing to them stay as they are. */
export function translated(error: unknown, connection: SqliteConnection | null): unknown {
  if (error instanceof OncekeyError) return error;
  const cause = { cause: error };
  const said = error instanceof Error ? error.message : String(error);
  const file = connection === null ? "the database" : nameOf(connection);
  switch (codeOf(error)) {
    case "BUSY":
    case "LOCKED":
      return new StoreContention(
        `${file} was locked by another transaction. Nothing was applied; try again.`,
        cause,
      );
    case "TOOBIG":
      return new OncekeyError("record_too_large", `${file} refuses a record of this size (${said}).`, cause);
    case "ERROR":
      return MISSING.test(said) ? schemaMissing(file, cause) : error;
    case "PERM":
    case "NOMEM":
    case "READONLY":
    case "IOERR":
    case "CORRUPT":
    case "FULL":
    case "CANTOPEN":
    case "PROTOCOL":
    case "NOTADB":
    case "CLOSED":
      return new StoreUnavailable(
        `${file} could not be used (${said}). See that it is there, writable and whole.`,
        cause,
      );
    case "CONSTRAINT":
    case undefined:
      return error;
  }
}

/** Says how the tables come to be; a store never makes them by itself. */
export function schemaMissing(file: string, options?: ErrorOptions): OncekeyError {
  const command = `oncekey migrate sqlite:${file}`;
  return new OncekeyError(
    "schema_missing",
    `The tables of Oncekey are missing in ${file}, or too old. Run: ${command}`,
    options,
  );
}

/** The path of the file, or words where it cannot be asked for. */
export function nameOf(connection: SqliteConnection): string {
  try {
    return fileOf(connection) || "the database";
  } catch {
    return "the database"; // a closed or broken connection; the error at hand says so
  }
}

/** Primary result codes of SQLite by number, which two of the drivers give; the third gives their names. */
const CODES = {
  1: "ERROR",
  3: "PERM",
  5: "BUSY",
  6: "LOCKED",
  7: "NOMEM",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  15: "PROTOCOL",
  18: "TOOBIG",
  19: "CONSTRAINT",
  26: "NOTADB",
} as const;

type Code = (typeof CODES)[keyof typeof CODES] | "CLOSED";

/** SQLite's own words for them: some drivers leave the code out where they read rows. */
const WORDS: readonly (readonly [words: RegExp, code: Code])[] = [
  [/database is locked/, "BUSY"],
  [/database table is locked|database schema is locked/, "LOCKED"],
  [/too big/, "TOOBIG"],
  [/attempt to write a readonly database/, "READONLY"],
  [/disk I\/O error/, "IOERR"],
  [/database disk image is malformed/, "CORRUPT"],
  [/database or disk is full/, "FULL"],
  [/unable to open database file/, "CANTOPEN"],
  [/locking protocol/, "PROTOCOL"],
  [/file is not a database/, "NOTADB"],
  [/no such table|no such column|has no column named/, "ERROR"],
];

const BUSY_SNAPSHOT = 517;
const CONSTRAINT_FOREIGNKEY = 787;
/** Of RESTRICT too, which SQLite makes a trigger of. */
const CONSTRAINT_TRIGGER = 1811;
const EXTENDED: Readonly<Record<string, number>> = {
  SQLITE_BUSY_SNAPSHOT: BUSY_SNAPSHOT,
  SQLITE_CONSTRAINT_FOREIGNKEY: CONSTRAINT_FOREIGNKEY,
  SQLITE_CONSTRAINT_TRIGGER: CONSTRAINT_TRIGGER,
};

const MISSING = /no such table: (main\.)?oncekey_|no such column|has no column named/;

function codeOf(error: unknown): Code | undefined {
  if (!(error instanceof Error)) return undefined;
  if (/database( connection)? is not open/.test(error.message)) return "CLOSED";
  if ("errcode" in error && typeof error.errcode === "number") {
    const primary = error.errcode & 0xff;
    return Object.entries(CODES).find(([number]) => Number(number) === primary)?.[1];
  }
  const name = /^SQLITE_([A-Z]+)/.exec(symbolOf(error))?.[1];
  if (name !== undefined) return Object.values(CODES).find((code) => code === name);
  return WORDS.find(([words]) => words.test(error.message))?.[1];
}

function extendedCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode;
  return EXTENDED[symbolOf(error)];
}

function symbolOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}
