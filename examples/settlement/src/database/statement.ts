/** A value that both databases take and give back unchanged. */
export type Value = string | bigint | Uint8Array | null;

/** One row, every column of it text or null: no driver's idea of a number touches money. */
export type Row = Readonly<Record<string, unknown>>;

/** One statement in the SQL that both databases speak, or a part of one; its values stay apart from its text. */
export interface Statement {
  readonly tokens: readonly Token[];
  /** Locks the rows that it reads until the transaction ends, where others could write meanwhile. */
  readonly locks: boolean;
}

type Token = { readonly text: string } | { readonly value: Value };

/** Work inside one transaction, or one look: it yields statements and is given their rows. */
export type Unit<T> = Generator<Statement, T, readonly Row[]>;

/** Writes a statement as it reads; what stands in `${…}` becomes a parameter, or a part if it is a statement itself. */
export function sql(parts: TemplateStringsArray, ...inserts: readonly (Value | Statement)[]): Statement {
  const tokens = parts.flatMap((text, index): readonly Token[] => {
    const insert = inserts[index];
    if (insert === undefined) return [{ text }];
    return isStatement(insert) ? [{ text }, ...insert.tokens] : [{ text }, { value: insert }];
  });
  return { tokens, locks: false };
}

/** The same query, whose rows nobody else changes until the transaction ends. */
export function locking(statement: Statement): Statement {
  return { ...statement, locks: true };
}

/** The text and the values for a driver, which says how the parameter of a number, from 1, is written. */
export function rendered(
  { tokens }: Statement,
  parameter: (number: number) => string,
): { readonly text: string; readonly values: readonly Value[] } {
  const values: Value[] = [];
  const text = tokens.map((token) => ("text" in token ? token.text : parameter(values.push(token.value))));
  return { text: text.join(""), values };
}

/** Runs a unit to its end against something that answers at once. */
export function driveNow<T>(unit: Unit<T>, answer: (statement: Statement) => readonly Row[]): T {
  let step = unit.next();
  while (step.done !== true) step = unit.next(answer(step.value));
  return step.value;
}

/** Runs a unit to its end against something that takes its time. */
export async function drive<T>(
  unit: Unit<T>,
  answer: (statement: Statement) => Promise<readonly Row[]>,
): Promise<T> {
  let step = unit.next();
  while (step.done !== true) step = unit.next(await answer(step.value));
  return step.value;
}

/** The text in a column that always has one. */
export function textIn(row: Row, column: string): string {
  const text = textOrNullIn(row, column);
  if (text === null) throw new TypeError(`Column ${column} holds nothing, and must hold a text.`);
  return text;
}

/** The text in a column, if it has one. */
export function textOrNullIn(row: Row, column: string): string | null {
  const value = row[column];
  if (typeof value === "string" || value === null) return value;
  throw new TypeError(
    `Column ${column} holds a ${typeof value}, and must hold a text; cast it in the query.`,
  );
}

function isStatement(insert: Value | Statement): insert is Statement {
  return typeof insert === "object" && insert !== null && "tokens" in insert;
}
