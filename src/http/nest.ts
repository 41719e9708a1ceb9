import {
  type DynamicModule,
  type ExecutionContext,
  type FactoryProvider,
  Inject,
  type ModuleMetadata,
  type NestInterceptor,
  type Provider,
  UseInterceptors,
} from "@nestjs/common";
import { from, isObservable, lastValueFrom, mergeMap, of } from "rxjs";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import { MOUNTED } from "./mounted.ts";
import { type NestRequest, type NestResponse, nestExchangeOf } from "./nest-platform.ts";
import { attemptAt, guard, isGuarded, onTheWay, protectedBy, type Way } from "./nest-route.ts";
import { isCaptured } from "./node-capture.ts";
import { createNodeRoute, type ServeCall } from "./node-route.ts";
import type { RouteOptions } from "./route.ts";
import type { Running } from "./route-options.ts";

export type { NestRequest } from "./nest-platform.ts";
export type {
  BeginningContext,
  DeclaredContext,
  RouteOptions,
  RunContext,
  TransactionContext,
} from "./route.ts";
export type { KeptAnswer } from "./transaction-door.ts";

/** What the protected routes of an application share. */
export interface OncekeySettings<Tx, Settles extends Settling, Request> {
  readonly engine: Engine<Tx, Settles>;
  /** Whose key it is, where a route does not say otherwise. */
  readonly principal?: (request: Request) => unknown;
}

/** As `protect` of the other hosts takes them; `principal` may be the module's. */
export type IdempotentOptions<Request> = Omit<RouteOptions<Request>, "principal"> &
  Pick<OncekeySettings<never, never, Request>, "principal"> &
  Running;

/**
 * Makes a handler of a controller safe to send twice. Guards and pipes come first; what is kept is what leaves after
 * interceptors and exception filters. With an operation the handler's own body never runs. The options are checked when
 * Nest starts: a bad one is a `ConfigurationError`.
 */
export function Idempotent<Request = NestRequest>(
  options?: IdempotentOptions<Request>,
  operation?: OperationRoute<Request> | (() => OperationRoute<Request>),
): (prototype: object, name: string | symbol, descriptor: PropertyDescriptor) => void;
export function Idempotent(
  options: IdempotentOptions<NestRequest> = {},
  operation?: OperationRoute<NestRequest> | (() => OperationRoute<NestRequest>),
): (prototype: object, name: string | symbol, descriptor: PropertyDescriptor) => void {
  return (prototype, name, descriptor) => {
    guard(prototype, name, descriptor);
    function Protection({ engine, ...shared }: Settings): NestInterceptor {
      const route = typeof operation === "function" ? operation() : operation;
      const serve = createNodeRoute(
        engine,
        { ...options, principal: principalOf(shared, options) },
        route ?? null,
      );
      return {
        intercept: (context, next) => onTheWay(wayOf(serve, context), () => next.handle()),
      };
    }
    Inject(SETTINGS)(Protection, undefined, 0);
    UseInterceptors(Protection)(prototype, name, descriptor);
  };
}

/** The attempt, as a handler of `@Idempotent` is handed it: `@Attempt() { transaction }: TransactionContext<PoolClient, "async">`. */
export function Attempt(): (prototype: object, name: string | symbol | undefined, index: number) => void {
  return attemptAt;
}

/** Protects every POST and PATCH that brings a key: `app.useGlobalInterceptors(idempotency(engine, { principal }))`. */
export function idempotency<Tx, Settles extends Settling, Request = NestRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<Request>,
): NestInterceptor;
export function idempotency(engine: Engine<unknown>, options: RouteOptions<NestRequest>): NestInterceptor {
  const serve = createNodeRoute(engine, { ...MOUNTED, ...options }, null);
  return {
    intercept: (context, next) => {
      if (context.getType() !== "http" || isGuarded(context.getHandler())) return next.handle();
      const answered = wayOf(serve, context)(async () => next.handle());
      return from(answered).pipe(mergeMap((value) => (isObservable(value) ? value : of(value))));
    },
  };
}

/** `OncekeyModule.forRoot({ engine, principal })` among the imports of the application's module; it is global. */
export const OncekeyModule: {
  readonly forRoot: <Tx, Settles extends Settling, Request = NestRequest>(
    settings: OncekeySettings<Tx, Settles, Request>,
  ) => DynamicModule;
  /** The settings may be a promise, and be made of what Nest injects. */
  readonly forRootAsync: (
    factory: Pick<FactoryProvider, "inject" | "useFactory"> & Pick<ModuleMetadata, "imports">,
  ) => DynamicModule;
} = {
  forRoot: (settings) => moduleOf({ provide: SETTINGS, useValue: settings }),
  forRootAsync: ({ imports = [], inject = [], useFactory }) => ({
    ...moduleOf({ provide: SETTINGS, inject, useFactory }),
    imports,
  }),
};

type Settings = OncekeySettings<unknown, Settling, NestRequest>;

/** Named for whoever reads in Nest's complaint that it is not there. */
const SETTINGS = Symbol("OncekeyModule.forRoot");

/** What Nest calls the module by. */
class Oncekey {}

function moduleOf(settings: Provider): DynamicModule {
  return { module: Oncekey, global: true, providers: [settings], exports: [SETTINGS] };
}

function principalOf(...sources: readonly Pick<Settings, "principal">[]): (request: NestRequest) => unknown {
  const principal = sources.reduce<Settings["principal"]>(
    (last, { principal = last }) => principal,
    undefined,
  );
  if (principal !== undefined) return principal;
  throw new ConfigurationError("principal", "must be given to OncekeyModule.forRoot or to @Idempotent");
}

function wayOf(serve: ServeCall<NestRequest, unknown, Settling>, context: ExecutionContext): Way {
  const http = context.switchToHttp();
  const [request, response] = [http.getRequest<NestRequest>(), http.getResponse<NestResponse>()];
  const way = protectedBy(serve, () => nestExchangeOf(request, response));
  return (run) =>
    way(async (attempt) => {
      const value = await run(attempt);
      // An answer is made of the last value; events, which are nobody's answer, go on by themselves.
      if (!isObservable(value) || !isCaptured("raw" in response ? response.raw : response)) return value;
      return await lastValueFrom(value);
    });
}
