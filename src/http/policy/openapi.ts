import { type ErrorCode, REGISTRY } from "../../errors.ts";
import { EXPIRES_HEADER, REPLAYED_HEADER, STATUS_HEADER } from "../exchange.ts";
import { type PolicyRoute, problemsAt } from "./rules.ts";

/** Any value of a JSON document. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A part of an OpenAPI 3.1 description: merge it into your own. */
export interface OpenApiFragment {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Json } };
  readonly components: { readonly [kind: string]: { readonly [name: string]: Json } };
}

/** What OpenAPI says of protected routes: the header to send, the headers to expect and the problems to meet. */
export function openApiOf(routes: readonly PolicyRoute[]): OpenApiFragment {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const operations = paths[route.path] ?? {};
    operations[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = operations;
  }
  return { paths, components: { parameters: parametersOf(routes), headers: HEADERS, schemas: { Problem } } };
}

function operationOf(route: PolicyRoute): Json {
  const problems = [...problemsAt(route)].map(
    ([status, codes]) => [String(status), responseOf(codes)] as const,
  );
  return {
    parameters: [{ $ref: `#/components/parameters/${parameterOf(route)}` }],
    responses: { default: ANSWER, ...Object.fromEntries(problems) },
  };
}

/** The handler's own answers are described by whoever made it; these headers are ours. */
const ANSWER: Json = {
  description: "The handler's own answer, the first time and on every replay.",
  headers: {
    [headerName(REPLAYED_HEADER)]: { $ref: "#/components/headers/IdempotentReplayed" },
    [headerName(EXPIRES_HEADER)]: { $ref: "#/components/headers/IdempotencyExpires" },
    [headerName(STATUS_HEADER)]: { $ref: "#/components/headers/IdempotencyStatus" },
  },
};

function responseOf(codes: readonly ErrorCode[]): Json {
  const waits = codes.some((code) => REGISTRY[code].retry === "same_key_later");
  return {
    description: codes.map((code) => `${code}: ${REGISTRY[code].title}.`).join(" "),
    ...(waits ? { headers: { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } } : {}),
    content: {
      "application/problem+json": {
        schema: {
          allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { code: { enum: [...codes] } } }],
        },
      },
    },
  };
}

/** One of the four forms of the key's header. */
function parameterOf({ options: { required = true, strict = false } }: PolicyRoute): string {
  return `IdempotencyKey${required ? "" : "Optional"}${strict ? "Quoted" : ""}`;
}

function parametersOf(routes: readonly PolicyRoute[]): { readonly [name: string]: Json } {
  return Object.fromEntries(
    routes.map((route) => {
      const { required = true, strict = false } = route.options;
      return [parameterOf(route), keyParameter(required, strict)];
    }),
  );
}

function keyParameter(required: boolean, strict: boolean): Json {
  const quoted = "a string in double quotes (RFC 9651)";
  return {
    name: "Idempotency-Key",
    in: "header",
    required,
    description: `A new value for every new request, the same for every retry of it; ${
      strict ? quoted : `bare, or ${quoted}`
    }, 1 to 255 characters of printable ASCII.`,
    schema: strict
      ? { type: "string", minLength: 3, pattern: '^".+"' }
      : { type: "string", minLength: 1, pattern: "^[\\x20-\\x7e]+$" },
    example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
  };
}

const HEADERS: { readonly [name: string]: Json } = {
  IdempotentReplayed: {
    description: "There where the answer is a kept one, and the work was not done again.",
    schema: { const: "true" },
  },
  IdempotencyExpires: {
    description: "Until when copies of this request will be given this answer (an HTTP date).",
    schema: { type: "string" },
  },
  IdempotencyStatus: {
    description:
      "`unprotected` where the work ran without a record, `unknown` where nobody knows what it did, `unrecorded` where its answer could not be kept.",
    schema: { enum: ["unprotected", "unknown", "unrecorded"] },
  },
  RetryAfter: { description: "Whole seconds.", schema: { type: "integer", minimum: 1 } },
};

const Problem: Json = {
  type: "object",
  description: "RFC 9457. Take a new key for the same intent only where `effect` is `none`.",
  required: ["type", "title", "status", "detail", "code", "retry", "effect"],
  properties: {
    type: { type: "string", format: "uri" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    code: { type: "string" },
    retry: { enum: ["same_key", "same_key_later", "never"] },
    effect: { enum: ["none", "done", "maybe"] },
    docs: { type: "string" },
    firstRequestAt: { type: "string", format: "date-time" },
    firstCorrelationId: { type: "string" },
    firstRequest: { type: "string" },
    originalStatus: { type: "integer" },
  },
};

/** As people write it: names are compared without regard to case (RFC 9110, 5.1). */
function headerName(lower: string): string {
  return lower.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
