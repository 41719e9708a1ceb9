import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type FieldProblem, invalidFields, type Problem, problemResponse } from "./problem.ts";

/** Either what was asked for, or what is wrong with it. */
export type Reading<Value> =
  | { readonly kind: "valid"; readonly value: Value }
  | { readonly kind: "invalid"; readonly problems: readonly FieldProblem[] };

/** A JSON body that is checked in one place and used in another. */
export interface JsonBody<Value> {
  /** Answers 400 to what is no JSON, and 422 to JSON that `read` refuses; stands before anything that is kept. */
  readonly checked: MiddlewareHandler;
  /** The body of a request that was let on. */
  readonly of: (c: Context) => Value;
}

/** Reads bodies with `read`, which names every field that is wrong. */
export function jsonBody<Value>(read: (body: unknown) => Reading<Value>): JsonBody<Value> {
  const values = new WeakMap<Context, { readonly value: Value }>();
  return {
    checked: async (c, next) => {
      const parsed = parse(await c.req.arrayBuffer());
      if (parsed.kind === "malformed") return problemResponse(MALFORMED);
      const reading = read(parsed.value);
      if (reading.kind === "invalid") return problemResponse(invalidFields(reading.problems));
      values.set(c, { value: reading.value });
      return await next();
    },
    of: (c) => {
      const kept = values.get(c);
      if (kept !== undefined) return kept.value;
      throw new Error(
        `${c.req.method} ${c.req.path} uses a body that was not checked; mount its check first.`,
      );
    },
  };
}

/** Answers 413 to a body that is longer than anything the service understands. */
export function limitedBody(): MiddlewareHandler {
  return bodyLimit({ maxSize: LONGEST_BODY, onError: () => problemResponse(TOO_LARGE) });
}

const LONGEST_BODY = 64 * 1024;

const TOO_LARGE: Problem = {
  status: 413,
  code: "body_too_large",
  title: "The request is too large",
  detail: `A body may have ${LONGEST_BODY} bytes.`,
};

const MALFORMED: Problem = {
  status: 400,
  code: "malformed_json",
  title: "The body is not JSON",
  detail: "Send one JSON object in UTF-8.",
};

type Parsed = { readonly kind: "json"; readonly value: unknown } | { readonly kind: "malformed" };

function parse(bytes: ArrayBuffer): Parsed {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return { kind: "json", value };
  } catch (error) {
    // The decoder's word for bytes that are no UTF-8 is TypeError, the parser's for no JSON is SyntaxError.
    if (error instanceof SyntaxError || error instanceof TypeError) return { kind: "malformed" };
    throw error;
  }
}
