import type { OnAmbiguous } from "../core/decide.ts";
import { checkKey, checkOperation } from "../core/key.ts";
import { type Duration, type Policy, parseDuration } from "../core/policy.ts";
import type { Answered, BeginRequest } from "../engine/begin.ts";
import type { Context } from "../engine/context.ts";
import { type HeaderPolicy, type HeaderSettings, headerPolicy } from "../engine/header-policy.ts";
import type { Awaitable } from "../engine/returned.ts";
import { ConfigurationError, type ErrorCode } from "../errors.ts";
import { contentOf } from "./content.ts";
import { type Exchange, isSafe, KEY_HEADER, type Reply } from "./exchange.ts";
import type { JudgeFinality } from "./finality.ts";
import { type FingerprintSettings, fingerprintRule, recognisable } from "./fingerprint.ts";
import { GUESSABLE, ownerOf } from "./guests.ts";
import { parseKeyHeader } from "./key-header.ts";
import { problem } from "./problems.ts";
import { replyToAnswered } from "./replies.ts";

/** What every protected route says of itself, whatever its host. */
export interface RouteSettings extends FingerprintSettings, HeaderSettings {
  /** What is being done, as people call it; the method and the route's pattern where nothing is said. */
  readonly operation?: string;
  /** Whether a request without a key is refused; yes where nothing is said. */
  readonly required?: boolean;
  /** Accepts only the quoted form of the key header (RFC 9651). */
  readonly strict?: boolean;
  /**
   * Runs the handler for every request, unprotected, and tells the listeners what would have been replayed or refused:
   * the way to roll out on a live API.
   */
  readonly observe?: boolean;
  /** Runs the work unprotected when the store is out of reach, and says so in the answer. */
  readonly failOpen?: boolean;
  /**
   * Sends an answer that could not be kept within `completionTimeout`, and says so in it. Its copies are told that nobody
   * knows, until it is kept after all.
   */
  readonly sendUnkept?: boolean;
  /**
   * What becomes of an outcome that nobody knows, by your word: `rerun` runs the work again for the next copy, `replay`
   * keeps the handler's error as the answer. Both are told to the listeners, and are written to the store's audit.
   */
  readonly onAmbiguous?: OnAmbiguous;
  /**
   * What a handler's answers mean, where the default does not fit. Heard only of the handler's own answers, and only as
   * far as nothing that is proved speaks against it: neither a committed transaction nor a call in doubt is asked about.
   */
  readonly finality?: JudgeFinality;
  /**
   * How long a copy waits for the answer of a running request before it is told 409 `in_progress`; not at all where nothing
   * is said. Shorter than `requestTimeout`. It holds no connection to the store, and ends when its client is gone.
   */
  readonly waitMs?: Duration;
  /** For work that may take longer than `requestTimeout`. */
  readonly maxRunTime?: Duration;
  /** Which methods are protected; every one that asks for a change where nothing is said. */
  readonly methods?: readonly string[];
  /** Longer requests are refused before the store is asked; 1 MiB where nothing is said. */
  readonly maxRequestBytes?: number;
  /** Longer answers are sent whole and not kept; 1 MiB where nothing is said. */
  readonly maxResponseBytes?: number;
  /** `none` keeps that the work is done and not what it answered: a copy is told 409 `response_not_stored`. For secrets. */
  readonly store?: "none";
}

/** Who sent a request; asked only where the answer matters. */
export interface Caller {
  readonly principal: () => Awaitable<unknown>;
  readonly correlationId: () => unknown;
  /** What stands for the body; nothing, where it stands for itself. */
  readonly fingerprint: () => unknown;
}

/** What a request is allowed to do. */
export type Admission =
  /** Safe method, or no key on a route that does not ask for one: not ours. */
  | { readonly kind: "pass" }
  | { readonly kind: "refuse"; readonly code: ErrorCode; readonly reply: Reply }
  | { readonly kind: "admit"; readonly request: Omit<BeginRequest, "effects"> };

/** A route's rules, host-neutral: who may go on under which key, and what an outcome looks like to a client. */
export interface Guard {
  readonly admit: (exchange: Exchange, caller: Caller) => Promise<Admission>;
  /** `null` where the route runs its work although the store is out of reach. */
  readonly refuse: (answered: Answered) => Reply | null;
  readonly keeps: HeaderPolicy;
  readonly keepsBody: boolean;
  readonly maxResponseBytes: number;
  readonly sendsUnkept: boolean;
  /** The route's own word about its handler's answers. */
  readonly finality: JudgeFinality | null;
  /** An error whose effect nobody knows is kept as the answer. */
  readonly replaysErrors: boolean;
}

const MIB = 1_048_576;

export function createGuard<Tx>({ emit, policy }: Context<Tx>, settings: RouteSettings): Guard {
  const { required = true, strict = false, failOpen = false, observe = false } = settings;
  const { maxRequestBytes = MIB, maxResponseBytes = MIB } = settings;
  refuseUnusable({ ...settings, maxRequestBytes, maxResponseBytes });
  const covers = coverageOf(settings);
  const rule = fingerprintRule(settings);
  const route = routeOf(settings);
  const waitMs = waitOf(settings, policy);
  const refuse = (operation: string, code: "key_missing" | "key_invalid", detail: string): Admission => {
    emit({ type: "request", operation, outcome: code, ...(observe ? { observed: observe } : {}) });
    return { kind: "refuse", code, reply: problem(code, { detail, advice: "Nothing was done." }) };
  };
  return {
    admit: async (exchange, caller) => {
      if (!covers(exchange.method)) return { kind: "pass" };
      const operation = operationOf(settings, exchange);
      const parsed = parseKeyHeader(exchange.header(KEY_HEADER), { strict });
      if (parsed.kind === "invalid") return refuse(operation, "key_invalid", parsed.reason);
      if (parsed.kind === "missing")
        return required ? refuse(operation, "key_missing", MISSING) : { kind: "pass" };
      const owner = ownerOf(await caller.principal(), parsed.key);
      if (owner.kind === "guessable") return refuse(operation, "key_invalid", GUESSABLE);
      if (owner.kind === "nobody") return unresolved();
      const identity = { kind: "http", principal: owner.principal, key: parsed.key } as const;
      const bodyRule = { rule, maxBytes: maxRequestBytes, said: caller.fingerprint };
      const content = await contentOf(exchange, bodyRule);
      if (content === null) return tooLarge(maxRequestBytes);
      const fingerprint = recognisable(rule, exchange, content);
      const told = { ...correlation(caller), ...standingBy(observe ? null : waitMs, exchange) };
      return { kind: "admit", request: { identity, operation, fingerprint, ...route, ...told } };
    },
    refuse: (answered) =>
      failOpen && answered.kind === "store_unavailable" ? null : replyToAnswered(answered),
    ...{ keeps: headerPolicy(settings), maxResponseBytes },
    keepsBody: settings.store !== "none",
    sendsUnkept: settings.sendUnkept === true,
    finality: settings.finality ?? null,
    replaysErrors: settings.onAmbiguous === "replay",
  };
}

const MISSING =
  "Send a header Idempotency-Key with a value that is new for every new request and the same for every retry.";

/** Safe methods ask for no change, and are not protected whatever a route says. */
export function coverageOf({ methods }: RouteSettings): (method: string) => boolean {
  const named = methods?.map((method) => method.toUpperCase());
  return (method) => !isSafe(method) && (named === undefined || named.includes(method.toUpperCase()));
}

function tooLarge(maxBytes: number): Admission {
  const detail = `At most ${maxBytes} bytes are taken.`;
  return { kind: "refuse", code: "request_too_large", reply: problem("request_too_large", { detail }) };
}

function refuseUnusable(settings: RouteSettings): void {
  const { operation, maxRequestBytes, maxResponseBytes, store, finality } = settings;
  if (store !== undefined && store !== "none")
    throw new ConfigurationError("store", 'of a route can be "none", or left out to keep its answers');
  for (const [field, bytes] of Object.entries({ maxRequestBytes, maxResponseBytes })) {
    if (Number.isInteger(bytes) && Number(bytes) >= 1) continue;
    throw new ConfigurationError(field, `must be a whole number of at least 1; got ${bytes}`);
  }
  if (finality !== undefined && typeof finality !== "function")
    throw new ConfigurationError("finality", "must be a function of an answer and its attempt");
  if (operation === undefined || checkOperation(operation).kind === "valid") return;
  throw new ConfigurationError("operation", "must be a name of up to 1024 bytes, not blank and without NUL");
}

function routeOf({ onAmbiguous, maxRunTime }: RouteSettings): Pick<BeginRequest, "onAmbiguous" | "maxRunMs"> {
  if (onAmbiguous !== undefined && !AMBIGUOUS.has(onAmbiguous))
    throw new ConfigurationError("onAmbiguous", 'must be "keep", "rerun" or "replay"');
  const said = onAmbiguous === "rerun" ? { onAmbiguous } : {};
  if (maxRunTime === undefined) return said;
  const run = parseDuration(maxRunTime);
  if (run.kind === "bad") throw new ConfigurationError("maxRunTime", `must be ${run.reason}`);
  return { ...said, maxRunMs: run.ms };
}

function standingBy(ms: number | null, { onHungUp }: Exchange): Pick<BeginRequest, "standBy"> {
  return ms === null ? {} : { standBy: { ms, onHungUp } };
}

/** A proxy that gives the request up at its own limit would send the copy's copy, and never see the answer. */
function waitOf({ waitMs }: RouteSettings, { requestTimeoutMs }: Policy): number | null {
  if (waitMs === undefined) return null;
  const wait = parseDuration(waitMs);
  if (wait.kind === "bad") throw new ConfigurationError("waitMs", `must be ${wait.reason}`);
  if (wait.ms < requestTimeoutMs) return wait.ms;
  throw new ConfigurationError(
    "waitMs",
    `must be shorter than requestTimeout (${requestTimeoutMs} ms); got ${wait.ms} ms`,
  );
}

const AMBIGUOUS: ReadonlySet<string> = new Set(["keep", "rerun", "replay"] satisfies OnAmbiguous[]);

/** By the pattern and not by the path: the name becomes a label of metrics, and a path may hold keys and people. */
function operationOf({ operation }: RouteSettings, { method, pattern, path }: Exchange): string {
  if (operation !== undefined) return operation;
  const name = `${method.toUpperCase()} ${pattern ?? path}`;
  return checkOperation(name).kind === "valid" ? name : method.toUpperCase();
}

/** A help for support, often straight from a header: one that no store could keep is left out. */
function correlation({ correlationId }: Caller): Pick<BeginRequest, "correlationId"> {
  const checked = checkKey(correlationId());
  return checked.kind === "valid" ? { correlationId: checked.value } : {};
}

function unresolved(): Admission {
  const detail = "The route's principal function gave no name for the caller, so nothing was run.";
  return { kind: "refuse", code: "principal_unresolved", reply: problem("principal_unresolved", { detail }) };
}
