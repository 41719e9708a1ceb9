import {
  type Duration,
  type Policy,
  type PolicySettings,
  parseDuration,
  settlePolicy,
} from "../core/policy.ts";
import type { Identity } from "../core/record.ts";
import { ConfigurationError } from "../errors.ts";
import type { Looked, Settling, Store, TransactionalStore } from "../stores/store.ts";
import { askedFor, type BeginRequest, type Begun, beginOne, beginWith } from "./begin.ts";
import { claimFlow } from "./claim.ts";
import { read } from "./command.ts";
import type { Context } from "./context.ts";
import { createDisclaim } from "./disclaim.ts";
import { createDriver } from "./driver.ts";
import { createEvents, type Listener } from "./events.ts";
import { type FingerprintKey, fingerprintKeyring } from "./keyring.ts";
import { createLookout } from "./lookout.ts";
import { createTellOverride } from "./override.ts";
import type { ProtectedRoutes } from "./protected-route.ts";
import { passes } from "./retry.ts";
import type { Returned } from "./returned.ts";
import type { TransactionAttempt, TransactionRequest } from "./run.ts";
import { type AttemptRun, type Run, runsOf } from "./runs.ts";
import { nodeRuntime, type Runtime } from "./runtime.ts";
import type { DeclaredStep, Settler } from "./settler.ts";
import { createWatch, type Watch } from "./watch.ts";

/** Settings of an engine; every duration is milliseconds or a text like `"30s"`. */
export interface EngineSettings extends PolicySettings {
  /** Part of every downstream key: two services that share a provider's account must differ in it. */
  readonly namespace?: string;
  readonly listeners?: readonly Listener[];
  /**
   * Keys the fingerprints of requests besides their salt, so that whoever reads the store cannot guess what was sent.
   * The first key signs, all verify; a record whose key is gone is refused with `fingerprint_unverifiable`.
   */
  readonly fingerprintSecret?: readonly FingerprintKey[];
  /** Says that losing every record with the process is acceptable; production refuses such a store without it. */
  readonly allowMemoryStore?: boolean;
  /** Refuses a request with a key, 400, where a host's `unprotected` stands; such a request runs where nothing is said. */
  readonly rejectUnsupported?: boolean;
  /** Whether this is production; `NODE_ENV` where nothing is said. */
  readonly production?: boolean;
  /** This process's clock and randomness, for tests. */
  readonly runtime?: Runtime;
}

/** The one engine behind every door: routes, functions, operations, workers. */
export interface Engine<Tx = never, Settles extends Settling = Settling> {
  readonly store: Store;
  /** The same store where it can commit the record with the user's own rows, else `null`. */
  readonly transactions: TransactionalStore<Tx, Settles> | null;
  readonly policy: Policy;
  /** Claims, or says why not. A store out of reach is an answer, not a throw; nothing ran then. */
  readonly begin: (request: BeginRequest) => Promise<Begun<Tx>>;
  /** Runs a function once per (principal, operation, key) and keeps its value; throws `NotRun` where it may not run. */
  readonly run: Run;
  /** The same, with every outcome as a value. */
  readonly attemptRun: AttemptRun;
  /** Commits what the function does through `tx` together with the record and its value. */
  readonly runInTransaction: <T>(
    request: TransactionRequest,
    work: (tx: Tx, attempt: TransactionAttempt) => Returned<Settles, T>,
  ) => Promise<T>;
  /** Hears of everything that happens; returns what stops the listening. */
  readonly subscribe: (listener: Listener) => () => void;
  /**
   * For development: stands in for the application's own pool, client or SQLite database, and raises
   * `write_outside_transaction` where an attempt with `effects: "transaction"` writes through it.
   */
  readonly watch: Watch["watch"];
  /** Refuses new claims, lets running attempts end within `drain`, judges at once what is left. The store stays open. */
  readonly close: (options?: { readonly drain?: Duration }) => Promise<void>;
  /** How a worker ends what a crash of an operation left, by the operation's name. */
  readonly settlers: Map<string, Settler<Tx>>;
  /** The external effects of routes and functions with `effects: "declared"`, by the operation's name. */
  readonly steps: Map<string, ReadonlyMap<string, DeclaredStep>>;
  /** Whether a key is refused where nothing heeds it. */
  readonly rejectUnsupported: boolean;
  /** What is protected in this process, and how. */
  readonly routes: ProtectedRoutes;
  /** For the parts of Oncekey that stand on an engine. */
  readonly context: Context<Tx>;
}

export function createEngine<Tx, Settles extends Settling>(
  options: EngineSettings & { readonly store: TransactionalStore<Tx, Settles> },
): Engine<Tx, Settles>;
export function createEngine<Tx = never, Settles extends Settling = never>(
  options: EngineSettings & { readonly store: Store },
): Engine<Tx, Settles>;
export function createEngine<Tx, Settles extends Settling>(
  options: EngineSettings & { readonly store: Store | TransactionalStore<Tx, Settles> },
): Engine<Tx, Settles> {
  const { store, namespace = "", listeners = [], runtime = nodeRuntime() } = options;
  const { rejectUnsupported = false } = options;
  refuseVolatile(options);
  const policy = policyOf(options);
  const { emit, subscribe } = createEvents(listeners);
  const transactions = isTransactional(store) ? store : null;
  const watch = createWatch(emit);
  const parts = { store, transactions, storeTimeoutMs: policy.storeTimeoutMs, runtime, emit };
  const driver = createDriver<Tx>({ ...parts, ours: watch.ours, onLateFailure: lateFailure(emit) });
  const shared = { driver, policy, runtime, emit };
  const lookout = createLookout({ runtime, look: lookOn(shared) });
  let draining = false;
  const context: Context<Tx> = {
    ...{ ...shared, namespace, draining: () => draining, disclaim: createDisclaim(shared) },
    ...{ lookout, watch, tellOverride: createTellOverride(parts) },
    keyed: fingerprintKeyring(options.fingerprintSecret),
    running: new Set(),
    beginning: new Set(),
  };
  const begin = beginOn(context);
  const steps: Engine<Tx, Settles>["steps"] = new Map();
  return {
    ...{ store, transactions, policy, context, begin },
    ...runsOf<Tx, Settles>(context, begin, { transactions, steps }),
    ...{ subscribe, watch: watch.watch },
    ...{ settlers: new Map(), steps, routes: new Map(), rejectUnsupported },
    close: async ({ drain = 10_000 } = {}) => {
      const drainMs = durationOf("drain", drain);
      draining = true;
      lookout.close();
      await drained(context, drainMs);
    },
  };
}

/** A look that the store does not answer is told once, however many wait for it; the next one may find more. */
function lookOn<Tx>({ driver, emit }: Pick<Context<Tx>, "driver" | "emit">) {
  return async (identity: Identity): Promise<Looked | null> => {
    try {
      return await driver.drive(read(identity));
    } catch (error) {
      if (!passes(error)) throw error;
      emit({ type: "failure", what: "waiting for the end of a running request", error });
      return null;
    }
  };
}

function lateFailure(emit: Listener): (error: unknown) => void {
  return (error) => emit({ type: "failure", what: "a store call given up on", error });
}

function beginOn<Tx>(context: Context<Tx>): (request: BeginRequest) => Promise<Begun<Tx>> {
  return async (request) => {
    if (request.commits === "one") return await beginOne(context, request);
    const asked = askedFor(context, request);
    return await beginWith(context, request, asked, (budget) =>
      context.driver.drive(claimFlow(asked, budget), budget),
    );
  };
}

/** Waits for the running attempts, then judges those that are left by what they may have done. */
async function drained<Tx>({ running, beginning, runtime }: Context<Tx>, drainMs: number): Promise<void> {
  const untilMs = runtime.monotonicMs() + drainMs;
  while (running.size > 0 && runtime.monotonicMs() < untilMs) await runtime.sleep(DRAIN_POLL_MS);
  await Promise.allSettled(beginning); // the store timeout bounds them
  await Promise.all(
    [...running].map((attempt) => attempt.abandon("The process had to stop before the work ended.")),
  );
}

const DRAIN_POLL_MS = 20;

function policyOf(options: EngineSettings): Policy {
  const {
    namespace,
    listeners,
    fingerprintSecret,
    allowMemoryStore,
    production,
    runtime,
    rejectUnsupported,
    ...rest
  } = options;
  if (rejectUnsupported !== undefined && typeof rejectUnsupported !== "boolean")
    throw new ConfigurationError("rejectUnsupported", "must be true or false");
  const settings: PolicySettings & { store?: unknown } = rest;
  const { store, ...durations } = settings;
  const settled = settlePolicy(durations);
  if (settled.kind === "bad") throw new ConfigurationError(settled.field, settled.reason);
  return settled.policy;
}

function refuseVolatile({
  store,
  allowMemoryStore = false,
  production,
}: EngineSettings & { readonly store: Store }): void {
  if (store?.capabilities === undefined)
    throw new ConfigurationError("store", "must be a store, such as sqliteStore({ … })");
  const isProduction = production ?? process.env["NODE_ENV"] === "production";
  if (store.capabilities.durable || allowMemoryStore || !isProduction) return;
  const reason = `is "${store.name}", which forgets every key when the process ends; take a durable store, or set allowMemoryStore`;
  throw new ConfigurationError("store", reason);
}

function isTransactional<Tx, Settles extends Settling>(
  store: Store | TransactionalStore<Tx, Settles>,
): store is TransactionalStore<Tx, Settles> {
  return store.capabilities.transactions && "transaction" in store;
}

/** A duration in milliseconds; a bad one names the field that it was given for. */
export function durationOf(field: string, value: Duration): number {
  const duration = parseDuration(value);
  if (duration.kind === "bad") throw new ConfigurationError(field, `must be ${duration.reason}`);
  return duration.ms;
}
