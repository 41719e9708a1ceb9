import { isPromise } from "../engine/command.ts";
import type { Engine } from "../engine/engine.ts";
import type { OperationRoute } from "../engine/operation.ts";
import type { Settling } from "../engine/returned.ts";
import { type Handover, type NodeCall, served } from "./node-host.ts";
import { createRoute, type RouteOptions, unsafeOnly } from "./route.ts";
import type { Running } from "./route-options.ts";

/** Serves a call of a protected route up to where its host has to go on. */
export type ServeCall<HostRequest, Tx, Settles extends Settling> = (
  request: HostRequest,
  call: Omit<NodeCall<Tx, Settles>, "handle" | "tell">,
  handle: NodeCall<Tx, Settles>["handle"],
) => Promise<Handover>;

/** Joins guard, engine and handler for every host whose answers leave by Node's own response. */
export function createNodeRoute<Tx, Settles extends Settling, HostRequest>(
  engine: Engine<Tx, Settles>,
  options: RouteOptions<HostRequest> & Running,
  operation: OperationRoute<HostRequest> | null,
): ServeCall<HostRequest, Tx, Settles> {
  const serve = createRoute(engine, options, operation);
  return (request, call, handle) =>
    served<Tx, Settles>(
      {
        ...call,
        tell: (error) => engine.context.emit({ type: "failure", what: "answering a request", error }),
        handle: (context, ended) => {
          if (operation !== null) throw unsafeOnly();
          return handle(context, ended);
        },
      },
      (host) => serve(request, host),
    );
}

/** A handler to be called with whatever its host has for it; an operation has none. */
export function sidesOf<HostRequest>(handler: OperationRoute<HostRequest> | ((...given: never) => unknown)): {
  readonly run: (...given: readonly unknown[]) => unknown;
  readonly operation: OperationRoute<HostRequest> | null;
} {
  if (typeof handler !== "function") return { run: () => undefined, operation: handler };
  return { run: (...given) => Reflect.apply(handler, undefined, given), operation: null };
}

/**
 * When a handler that answers by itself has ended: a promise of its own says so; one without has ended when it has ended
 * the response, or has called `next`. An error that it hands to `next` it has thrown.
 */
export function untilEnded(
  ended: Promise<void> | null,
  next: Next,
  run: (next: Next) => unknown,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let over = false;
    const settle = (value: unknown) => {
      over = true;
      resolve(value);
    };
    const returned = run((error) => {
      if (!over && !handsOn(error)) return reject(error);
      next(error);
      settle(undefined);
    });
    if (isPromise(returned)) void returned.then(settle, reject);
    else if (ended === null) settle(undefined);
    else void ended.then(settle);
  });
}

export type Next = (error?: unknown) => void;

/** Express' own words for what is to be left out are no errors. */
function handsOn(error: unknown): boolean {
  return error === undefined || error === null || error === "route" || error === "router";
}
