import type { AnswerInit } from "oncekey";

/** What is wrong with one field of a request. */
export interface FieldProblem {
  readonly field: string;
  readonly detail: string;
}

/** What a caller is told instead of what was asked for. */
export interface Problem {
  readonly status: number;
  /** Stable, for programs. */
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly fields?: readonly FieldProblem[];
  /** `maybe` where nobody knows whether something was done; nothing was where it is left out. */
  readonly effect?: "maybe";
}

/** The answer of RFC 9457 that says so, in the words that Oncekey uses for its own. */
export function problemAnswer({ status, code, title, detail, fields = [], effect }: Problem): AnswerInit {
  const retry = status >= 500 ? "same_key_later" : "never";
  const type = `urn:settlement:error:${code}`;
  const [first] = fields;
  const named = first === undefined ? {} : { field: first.field, errors: fields };
  const json = { type, title, status, detail, code, retry, effect: effect ?? "none", ...named };
  return {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store" },
    json,
  };
}

/** The same as a response, with headers of its own where the problem has some. */
export function problemResponse(problem: Problem, added: Readonly<Record<string, string>> = {}): Response {
  const { headers, json } = problemAnswer(problem);
  const own = Object.entries({ ...headers, ...added }).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return new Response(JSON.stringify(json), { status: problem.status, headers: own });
}

/** Fields that cannot be used as they are; every one of them is named. */
export function invalidFields(fields: readonly FieldProblem[]): Problem {
  const detail = `${fields.map(({ field, detail }) => `${field} ${detail}`).join("; ")}.`;
  return {
    status: 422,
    code: "invalid_field",
    title: "A field of the request cannot be used",
    detail,
    fields,
  };
}
