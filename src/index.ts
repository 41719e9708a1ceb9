export type { Match, OnAmbiguous } from "./core/decide.ts";
export type { Duration, Policy, PolicySettings } from "./core/policy.ts";
export type { Answer, Effects, Identity, KeyRecord, ProviderKind, RecordState } from "./core/record.ts";
export type { AnswerInit } from "./engine/answer.ts";
export type { Attempt, Ended } from "./engine/attempt.ts";
export type { Answered, BeginRequest, Begun } from "./engine/begin.ts";
export { declareSteps } from "./engine/declared.ts";
export type { Call, CallContext, Effect } from "./engine/effects.ts";
export type { EngineSettings } from "./engine/engine.ts";
export type { EngineEvent, Listener, Outcome } from "./engine/events.ts";
export type { Executed } from "./engine/execute.ts";
export { NotRun } from "./engine/not-run.ts";
export {
  type AttemptView,
  type Cancelled,
  type Operation,
  type OperationDefinition,
  type OperationRoute,
  operation,
  type RunningAttempt,
  type Sighted,
} from "./engine/operation.ts";
export type { ProtectedRoute } from "./engine/protected-route.ts";
export type { Awaitable, Returned, Settling } from "./engine/returned.ts";
export type {
  Ran,
  RunAttempt,
  RunRequest,
  TransactionAttempt,
  TransactionRequest,
} from "./engine/run.ts";
export type { DeclaredAttempt, DeclaredRequest } from "./engine/run-declared.ts";
export type { InlineStep, StepDefinition, StepDefinitions, StepSighted } from "./engine/step-definitions.ts";
export {
  ConfigurationError,
  type ErrorCode,
  LeaseLost,
  NotPerformed,
  OncekeyError,
  OutcomeUnknown,
  PermanentFailure,
  RecordCorrupt,
  StoreContention,
  StoreUnavailable,
} from "./errors.ts";
export { CORS_LISTS, type CorsLists } from "./http/cors.ts";
export { type SharedPrincipal, sharedPrincipal } from "./http/guests.ts";
export { type PolicyDocument, policyDocument } from "./http/policy/document.ts";
export type { OpenApiFragment } from "./http/policy/openapi.ts";
export type { PolicyRoute } from "./http/policy/rules.ts";
export type { Store, TransactionalStore } from "./stores/store.ts";
export { createEngine, type Engine } from "./worker/engine.ts";
export { type WorkerHealth, workersHealth } from "./worker/health.ts";
export { type Deciding, type PersonsVerdict, type Resolved, resolve } from "./worker/resolve.ts";
export { type Stats, stats } from "./worker/stats.ts";
export { purge, reconcile, sweep } from "./worker/tick.ts";
export type { Workers } from "./worker/workers.ts";
