import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Settling } from "../engine/returned.ts";
import { ConfigurationError } from "../errors.ts";
import type { NestExchange, NestRequest } from "./nest-platform.ts";
import { isCaptured } from "./node-capture.ts";
import type { ServeCall } from "./node-route.ts";
import type { Outgoing } from "./outgoing.ts";
import type { RouteContext } from "./route.ts";

/** One request's way through a protected route, to what Nest is to answer with. */
export type Way = (run: (attempt: RouteContext<unknown, Settling>) => Promise<unknown>) => Promise<unknown>;

/** The way leads through once: a second claim would meet the first. */
export function protectedBy(
  serve: ServeCall<NestRequest, unknown, Settling>,
  exchangeNow: () => NestExchange,
): Way {
  let entered = false;
  return async (run) => {
    if (entered) throw new Error(ENTERED_TWICE);
    entered = true;
    const { request, call, sending, answer } = exchangeNow(); // with the headers that others have set by now
    let running: Promise<unknown> | null = null;
    const handover = await serve(request, call, (attempt, ended) => {
      if (ended !== null) sending(ended);
      running = run(attempt).then((value) => breakingWith(value, call.response));
      return running;
    });
    switch (handover.kind) {
      case "done":
        await Promise.allSettled([running]); // its failure was told by then
        return undefined;
      case "returned":
        return handover.value;
      case "reply":
        await answer(handover.outgoing);
        return shown(handover.outgoing);
      case "threw":
        throw handover.error;
    }
  };
}

const ENTERED_TWICE =
  "A protected handler was called a second time for one request, by an interceptor that retries or by another handler; only the first call runs.";

/** What interceptors see of an answer that has left; whatever they make of it goes nowhere. */
function shown({ headers, body }: Outgoing): unknown {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (!(body instanceof Uint8Array) || !/^application\/([\w.-]+\+)?json\b/i.test(type)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined; // it says that it is JSON, and that is its handler's affair
  }
}

/** What was sent half way is not to end as if it were whole: that is how a file that fails may be ended. */
function breakingWith<T>(value: T, response: ServerResponse): T {
  if (!isCaptured(response) || typeof value !== "object" || value === null) return value;
  const getStream: unknown = Reflect.get(value, "getStream");
  const stream: unknown = typeof getStream === "function" ? Reflect.apply(getStream, value, []) : null;
  if (stream instanceof Readable) stream.once("error", (error) => response.destroy(error));
  return value;
}

const requests = new AsyncLocalStorage<Way>();

/** Lets a handler find the way through its protection, which only an interceptor of Nest can lay. */
export function onTheWay<T>(way: Way, go: () => T): T {
  return requests.run(way, go);
}

/** Puts a controller's handler behind protection: guards and pipes have had their say when it is called. */
export function guard(prototype: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  const method: unknown = descriptor.value;
  if (typeof method !== "function")
    throw new ConfigurationError("Idempotent", "stands on a method of a controller");
  const places = attempts.get(prototype)?.get(name) ?? [];
  const handler = async function (this: unknown, ...given: readonly unknown[]): Promise<unknown> {
    const way = requests.getStore();
    if (way === undefined) throw new ConfigurationError("Idempotent", NO_REQUEST);
    return await way(async (attempt) => {
      const all = [...given];
      for (const index of places) all[index] = attempt;
      return await Reflect.apply(method, this, all);
    });
  };
  Object.defineProperty(handler, "name", { value: method.name, configurable: true });
  // What decorators below this one said of the method.
  for (const key of Reflect.getOwnMetadataKeys(method))
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), handler);
  descriptor.value = handler;
  handlers.add(handler);
}

const NO_REQUEST =
  "protects handlers of HTTP routes, which Nest calls; this one was called by something else, so nothing was run";

const handlers = new WeakSet<object>();

/** Whether a handler has protection of its own. */
export function isGuarded(handler: object): boolean {
  return handlers.has(handler);
}

/** Notes where a handler wants its attempt. Decorators of parameters are evaluated before those of their method. */
export function attemptAt(prototype: object, name: string | symbol | undefined, index: number): void {
  if (name === undefined) throw new ConfigurationError("Attempt", "stands on a parameter of a handler");
  const ofClass = attempts.get(prototype) ?? new Map<string | symbol, readonly number[]>();
  attempts.set(prototype, ofClass.set(name, [...(ofClass.get(name) ?? []), index]));
}

const attempts = new WeakMap<object, Map<string | symbol, readonly number[]>>();
