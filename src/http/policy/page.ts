import type { Policy } from "../../core/policy.ts";
import { type ErrorCode, REGISTRY } from "../../errors.ts";
import { reasonOf, SHORTEST_SHARED_KEY } from "../guests.ts";
import { fatesOf, inWords, type PolicyRoute, problemsAt, sameness } from "./rules.ts";

/** The page for the people who call the routes, in Markdown. */
export function pageOf(title: string, policy: Policy, routes: readonly PolicyRoute[]): string {
  const parts = [
    [`# ${title}`, INTRODUCTION],
    ["## The key", keyRules(routes)],
    ["## How long an answer is kept", retention(policy)],
    ["## What is the same request", ...routesBy(routes, (route) => sameness(route).join(" "))],
    ["## What a repeated request gets", ANSWERS, ...routesBy(routes, fates)],
    ["## Errors", ERRORS, table(routes)],
  ];
  return `${parts.flat().join("\n\n")}\n`;
}

const INTRODUCTION =
  "Requests to the routes below are safe to send twice: send a key with the request, and send the same request with the same key again whenever you do not know what became of it.";

function keyRules(routes: readonly PolicyRoute[]): string {
  const lines = [
    "The key is sent in the header `Idempotency-Key`, once per request: 1 to 255 characters of printable ASCII, bare or in double quotes (RFC 9651). A key with a comma or a quote in it must be quoted.",
    "Make a new key for every new request, a random UUID for instance, and keep it until you have an answer that is final. Upper and lower case are two keys. A key is yours alone: another caller may use the same one, and neither learns of the other.",
    ...routes.flatMap(({ method, path, options: { principal } }) => {
      const reason = reasonOf(principal);
      const guests = `callers are not known, who share their keys: take at least ${SHORTEST_SHARED_KEY} characters at random`;
      return reason === null ? [] : [`- At \`${method} ${path}\` (${reason}) ${guests}.`];
    }),
    ...routes.map(({ method, path, options: { required = true, strict = false } }) => {
      const need = required ? "must have a key" : "may have a key; without one it is not protected";
      return `- \`${method} ${path}\` ${need}${strict ? ", in double quotes" : ""}.`;
    }),
  ];
  return lines.join("\n\n").replaceAll("\n\n- ", "\n- ");
}

function retention({ retentionMs, tombstoneMs, unknownRetentionMs, releasedRetentionMs }: Policy): string {
  const expired = `For ${inWords(tombstoneMs ?? 0)} after that a request with this key is answered 409 \`key_expired\`, and nothing is done; then the key is as new`;
  return [
    `An answer is kept for ${inWords(retentionMs)} from the end of the request; \`Idempotency-Expires\` says until when. ${tombstoneMs === null ? "After that the key is as new" : expired}: do not retry later than that.`,
    `What nobody knows the outcome of is remembered for at least ${inWords(unknownRetentionMs)}. A request of which nothing was done may be repeated for ${inWords(releasedRetentionMs)} and goes on where it stopped.`,
  ].join(" ");
}

const ANSWERS =
  "A repeated request gets the first answer, byte for byte, with `Idempotent-Replayed: true`. Which answers are kept depends on their status:";

function fates(route: PolicyRoute): string {
  const found = fatesOf(route);
  if (found === null)
    return "every answer that ends the operation is kept; an outcome that nobody knows is found out by the server.";
  const kept =
    route.options.store === "none"
      ? "the answer itself is not kept, a repeated request hears `response_not_stored` and the status"
      : "kept and repeated";
  const unknown =
    route.options.onAmbiguous === "rerun"
      ? "a repeated request runs the work again"
      : "a repeated request is told so";
  const said = [
    `${kept}: ${found.kept}`,
    ...(found.again === "" ? [] : [`nothing was done, a repeated request runs anew: ${found.again}`]),
    ...(found.unknown === "" ? [] : [`the outcome is unknown, ${unknown}: ${found.unknown}`]),
  ];
  const own = route.options.finality === undefined ? "" : "; the route may judge an answer otherwise";
  return `${said.join("; ")}${own}.`;
}

const ERRORS =
  "Errors of this layer are problem documents (RFC 9457) with a `code`. While `retry` is not `never`, send the same request with the same key again, after `Retry-After` where there is one. Take a new key for the same intent only where `effect` is `none`.";

function table(routes: readonly PolicyRoute[]): string {
  const met = new Map<ErrorCode, Set<number>>();
  for (const route of routes)
    for (const [status, codes] of problemsAt(route))
      for (const code of codes) met.set(code, (met.get(code) ?? new Set()).add(status));
  const rows = [...met].map(([code, statuses]) => {
    const { title, retry, effect } = REGISTRY[code];
    return `| \`${code}\` | ${[...statuses].join(", ")} | ${title} | \`${retry}\` | \`${effect}\` |`;
  });
  return [
    "| code | status | what happened | retry | effect |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

/** What is said of every route once, and of several together where it is the same. */
function routesBy(routes: readonly PolicyRoute[], said: (route: PolicyRoute) => string): readonly string[] {
  const bySaying = new Map<string, string[]>();
  for (const route of routes) {
    const text = said(route);
    bySaying.set(text, [...(bySaying.get(text) ?? []), `\`${route.method} ${route.path}\``]);
  }
  return [...bySaying].map(([text, names]) => `${names.join(", ")}: ${text}`);
}
