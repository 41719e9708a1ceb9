import { createHash } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { problemResponse } from "./problem.ts";

/** Lets only known bearers of a token on, as the principal that the token stands for. */
export function authenticated(principals: ReadonlyMap<string, string>): MiddlewareHandler {
  // Looked up by its hash, a token cannot be guessed from how long the answer takes.
  const known = new Map([...principals].map(([token, principal]) => [digestOf(token), principal] as const));
  return async (c, next) => {
    const token = tokenIn(c.req.header("authorization"));
    const principal = token === null ? undefined : known.get(digestOf(token));
    if (principal === undefined) return unauthorized(token);
    c.set(PRINCIPAL, principal);
    return await next();
  };
}

/** Whose request this is, behind `authenticated`. */
export function principalOf(c: Context): string {
  const principal: unknown = c.get(PRINCIPAL);
  if (typeof principal === "string") return principal;
  throw new Error(
    `${c.req.method} ${c.req.path} is served without authentication; mount it behind authenticated().`,
  );
}

const PRINCIPAL = "principal";

function tokenIn(header: string | undefined): string | null {
  return /^Bearer +([\w\-.~+/]+=*) *$/i.exec(header ?? "")?.[1] ?? null;
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function unauthorized(token: string | null): Response {
  const detail =
    token === null
      ? "Send a header Authorization: Bearer followed by your token."
      : "This token is not known here.";
  const problem = { status: 401, code: "unauthorized", title: "It is not known who you are", detail };
  const challenge =
    token === null ? 'Bearer realm="settlement"' : 'Bearer realm="settlement", error="invalid_token"';
  return problemResponse(problem, { "www-authenticate": challenge });
}
