import type { PolicySettings } from "../../src/core/policy.ts";
import type { KeyRecord } from "../../src/core/record.ts";
import type { AnswerInit } from "../../src/engine/answer.ts";
import type { Commits } from "../../src/engine/begin.ts";
import type { Effect } from "../../src/engine/effects.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import type { FingerprintKey } from "../../src/engine/keyring.ts";
import type { Awaitable } from "../../src/engine/returned.ts";
import type { Runtime } from "../../src/engine/runtime.ts";
import type { StepDefinitions } from "../../src/engine/step-definitions.ts";
import type { ReplayView } from "../../src/http/authorising.ts";
import type { RouteSettings } from "../../src/http/guard.ts";
import type { KeptAnswer } from "../../src/http/transaction-door.ts";
import type { SeededRandom } from "../support/seed.ts";

/** One promise that every host keeps on every store: data, with no test runner in it. */
export interface HostLaw {
  readonly id: string;
  readonly promise: string;
  readonly needs?: HostNeed;
  readonly check: (subject: HostSubject) => Promise<void>;
}

/**
 * What a law needs of a store: commits of the record with the user's own rows, ones that may wait, tables to be without;
 * or of a host: an error page of its own that headers can be added to, repeated header lines that are not joined yet,
 * handlers whose answer is what they return, a router that takes paths which are no text.
 */
export type HostNeed =
  | "transactions"
  | "waiting transactions"
  | "tables"
  | "error page"
  | "header lines"
  | "returned answers"
  | "damaged paths";

/** A host on a store, on trial. */
export interface HostSubject {
  /** Serves routes on a port of its own through an engine and a store handle of its own: another process to the store. */
  readonly serve: (service: Service) => Promise<Served>;
  /** A key that no other law uses. */
  readonly newKey: () => string;
  /** How many effects handlers made for a key, over all servers. */
  readonly effects: (key: string) => Promise<number>;
  /** How often a handler was entered for a key. */
  readonly runs: (key: string) => number;
  readonly random: SeededRandom;
  /** Whether hundreds of requests cost little here: nothing is made durable. */
  readonly cheap: boolean;
}

export interface Service {
  readonly routes: readonly Route[];
  readonly policy?: PolicySettings;
  readonly runtime?: Runtime;
  readonly fingerprintSecret?: readonly FingerprintKey[];
  /** `silent`: a store that never answers; `bare`: one without its tables. */
  readonly store?: "shared" | "silent" | "bare";
}

export interface Served {
  readonly port: number;
  readonly events: readonly EngineEvent[];
  /** What handlers threw and the host's error handler got. */
  readonly errors: readonly unknown[];
  /** The verbs that this server asked its store for. */
  readonly storeCalls: readonly string[];
  /** Cuts this server off from its store, or joins them again. */
  readonly cutOff: (cut: boolean) => void;
  /** Loses the next replies of the store: what was asked for is done, and nobody hears of it. */
  readonly loseReplies: (count: number) => void;
  readonly record: (key: string, principal?: string) => Promise<KeyRecord | null>;
  readonly drain: () => Promise<void>;
}

/** A request as every host can show it. */
export interface RequestView {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  readonly text: () => Promise<string>;
}

/** What a handler of a law works with. */
export interface Work {
  readonly request: RequestView;
  readonly signal: AbortSignal;
  readonly number: number;
  /** Makes this request's effect outside of any transaction. */
  readonly effect: () => void;
}

/** Runs inside the transaction; a promise is for stores whose transactions may wait. */
export type MakeAnswer = () => Awaitable<AnswerInit>;

export interface TransactionWork extends Work {
  /** Writes this request's effect and keeps the answer, in one transaction. */
  readonly commit: (answer: AnswerInit | MakeAnswer) => Promise<KeptAnswer>;
}

/** What a route says that is the same whatever its host hands to it. */
export interface LawSettings extends RouteSettings {
  readonly authorizeReplay?: (record: ReplayView) => Awaitable<boolean>;
  readonly fingerprint?: () => unknown;
}

interface RouteOf<Effects, Given, Answered> {
  readonly path: string;
  readonly effects?: Effects;
  readonly settings?: LawSettings;
  /** The header `X-User`, or "alice", where nothing is said. */
  readonly principal?: (request: RequestView) => unknown;
  readonly handle: (work: Given) => Awaitable<Answered>;
}

export type PlainRoute = RouteOf<undefined, Work, Response>;
export type TransactionRoute = RouteOf<"transaction", TransactionWork, KeptAnswer | Response> & {
  readonly effects: "transaction";
  readonly commits?: Commits;
};

/** An operation whose provider cannot be asked; `finish` makes this request's effect and the answer. */
export interface OperationRoute {
  readonly path: string;
  readonly effects: "operation";
  readonly settings?: LawSettings;
  readonly principal?: (request: RequestView) => unknown;
  readonly perform: (work: Work) => Promise<string>;
  readonly finish: (result: string) => AnswerInit;
}

export interface DeclaredWork extends Work {
  readonly step: Effect;
  readonly downstreamKey: (step: string) => string;
}

/** Every effect is a step. */
export type DeclaredRoute = RouteOf<"declared", DeclaredWork, Response> & {
  readonly effects: "declared";
  readonly steps?: StepDefinitions;
};

export interface BeginningWork extends Work {
  readonly begin: () => Promise<void>;
}

/** The handler says when its effects begin. */
export type BeginningRoute = RouteOf<"begin", BeginningWork, Response> & { readonly effects: "begin" };

/** Served for every method that a law may ask for. */
export type Route = PlainRoute | TransactionRoute | OperationRoute | DeclaredRoute | BeginningRoute;
