/** Reads a JSON value as an object of exactly these members; every one that is wrong is named. */
export function readObject<Value extends object>(body: unknown, members: Members<Value>): Reading<Value> {
  return conforms(body, members)
    ? { kind: "valid", value: body }
    : { kind: "invalid", problems: problemsWith(body, members) };
}

/** Either what was asked for, or what is wrong with it: at least one problem. */
export type Reading<Value> =
  | { readonly kind: "valid"; readonly value: Value }
  | { readonly kind: "invalid"; readonly problems: readonly Problem[] };

/** A field that is wrong, and what would be right. */
export interface Problem {
  readonly field: string;
  readonly detail: string;
}

/** What each member of an object must be. One that may be absent accepts `undefined`. */
export type Members<Value extends object> = { readonly [Name in keyof Value]-?: Member };

/** What one member must be, as a test and in words. */
export interface Member {
  readonly accepts: (value: unknown) => boolean;
  readonly expected: string;
}

function conforms<Value extends object>(body: unknown, members: Members<Value>): body is Value {
  return problemsWith(body, members).length === 0;
}

function problemsWith<Value extends object>(body: unknown, members: Members<Value>): readonly Problem[] {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return [{ field: "body", detail: "must be a JSON object" }];
  }
  const given = new Map<string, unknown>(Object.entries(body));
  const known = new Map<string, Member>(Object.entries(members));
  const unknown = [...given.keys()].filter((field) => !known.has(field));
  const wrong = [...known].filter(([field, { accepts }]) => !accepts(given.get(field)));
  return [
    ...unknown.map((field) => ({ field, detail: `is not one of ${[...known.keys()].join(", ")}` })),
    ...wrong.map(([field, { expected }]) => ({ field, detail: expected })),
  ];
}
