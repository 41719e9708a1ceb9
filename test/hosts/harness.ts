import type { Identity } from "../../src/core/record.ts";
import type { AnswerInit } from "../../src/engine/answer.ts";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import type { EngineEvent } from "../../src/engine/events.ts";
import { type OperationRoute, operation } from "../../src/engine/operation.ts";
import type { Returned, Settling } from "../../src/engine/returned.ts";
import { StoreUnavailable } from "../../src/errors.ts";
import type { Store } from "../../src/stores/store.ts";
import { seededRandom } from "../support/seed.ts";
import type {
  HostLaw,
  HostNeed,
  HostSubject,
  MakeAnswer,
  OperationRoute as OperationOfLaw,
  RequestView,
  Route,
  Service,
  Work,
} from "./law.ts";

/** A host on trial: how it serves routes on a port. */
export interface HostUnderTest {
  readonly name: string;
  /** Laws that need one of these do not apply. */
  readonly lacks: readonly HostNeed[];
  /** Answers as `node:http` does, which is held to the laws on every store; itself it is on the memory store. */
  readonly standsOnNode?: boolean;
  /** A store beside the memory store that a host upon Node is held to the laws on. */
  readonly alsoOn?: string;
  readonly serve: <Tx, Settles extends Settling>(site: Site<Tx, Settles>) => Promise<Listening>;
}

export interface Listening {
  readonly port: number;
  readonly close: () => Promise<void>;
}

export interface Site<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly routes: readonly Route[];
  readonly principalOf: (route: Route, request: RequestView) => unknown;
  readonly workOf: (
    request: RequestView,
    attempt: { readonly signal: AbortSignal; readonly number: number },
  ) => Work;
  /** The unit of the store's transaction that writes this request's effect. */
  readonly unitOf: (
    request: RequestView,
    answer: AnswerInit | MakeAnswer,
  ) => (tx: Tx) => Returned<Settles, AnswerInit>;
  /** The operation of a law, as a host serves it that shows its requests so. */
  readonly operationOf: <HostRequest>(
    route: OperationOfLaw,
    viewOf: (request: HostRequest) => RequestView,
  ) => OperationRoute<HostRequest>;
  readonly onError: (error: unknown) => void;
}

/** A store on trial: what hosts share, and how to get at it. */
export interface Ground<Tx, Settles extends Settling> {
  /** A handle as another process would have one. */
  readonly connect: () => Held;
  /** A handle on a store that never answers. */
  readonly silent: () => Held;
  /** A handle on a store without its tables. */
  readonly bare: () => Held;
  readonly unit: (tx: Tx, key: string, answer: MakeAnswer) => Returned<Settles, AnswerInit>;
  /** A value as a function of a transaction returns it. */
  readonly given: <T>(value: T) => Returned<Settles, T>;
  /** How many rows units wrote for a key. */
  readonly written: (key: string) => Promise<number>;
  readonly cheap: boolean;
  readonly close: () => Promise<void>;
}

export interface Held {
  readonly store: Store;
  readonly end: () => Promise<void>;
}

export interface Trial {
  /** Checks one law, and ends the servers that it started. */
  readonly check: (law: HostLaw) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Puts a host on a store. */
export function trialOf<Tx, Settles extends Settling>(
  host: HostUnderTest,
  ground: Ground<Tx, Settles>,
): Trial {
  const open: (() => Promise<void>)[] = [];
  const subject = subjectOn(host, ground, (end) => open.unshift(end));
  const check = async (law: HostLaw) => {
    try {
      await law.check(subject);
    } finally {
      for (const end of open.splice(0)) await end();
    }
  };
  return { check, close: ground.close };
}

function subjectOn<Tx, Settles extends Settling>(
  host: HostUnderTest,
  ground: Ground<Tx, Settles>,
  endWith: (end: () => Promise<void>) => void,
): HostSubject {
  const entered = new Map<string, number>();
  const made = new Map<string, number>();
  let keys = 0;
  const workOf: Site<Tx, Settles>["workOf"] = (request, { signal, number }) => {
    const key = keyOf(request);
    count(entered, key);
    return { request, signal, number, effect: () => count(made, key) };
  };
  const unitOf: Site<Tx, Settles>["unitOf"] = (request, answer) => (tx) =>
    ground.unit(tx, keyOf(request), typeof answer === "function" ? answer : () => answer);
  return {
    newKey: () => {
      keys += 1;
      return `${host.name}-${keys}-${Math.floor(random.fraction() * 1e9).toString(36)}`;
    },
    effects: async (key) => (made.get(key) ?? 0) + (await ground.written(key)),
    runs: (key) => entered.get(key) ?? 0,
    random,
    cheap: ground.cheap,
    serve: async (service) => {
      const held = handleOf(ground, service.store ?? "shared");
      const errors: unknown[] = [];
      const started = engineOn<Tx, Settles>(held.store, service);
      const { engine } = started;
      const operationOf = operationsOn(engine, ground, workOf);
      const site = { engine, routes: service.routes, principalOf, workOf, unitOf, operationOf };
      const { port, close } = await host.serve({ ...site, onError: (error) => errors.push(error) });
      endWith(held.end);
      endWith(close);
      return { port, errors, ...started };
    },
  };
}

const random = seededRandom();

function handleOf<Tx, Settles extends Settling>(
  { connect, silent, bare }: Ground<Tx, Settles>,
  kind: NonNullable<Service["store"]>,
): Held {
  switch (kind) {
    case "shared":
      return connect();
    case "silent":
      return silent();
    case "bare":
      return bare();
  }
}

function operationsOn<Tx, Settles extends Settling>(
  engine: Engine<Tx, Settles>,
  ground: Ground<Tx, Settles>,
  workOf: Site<Tx, Settles>["workOf"],
): Site<Tx, Settles>["operationOf"] {
  return ({ path, perform, finish }, viewOf) => {
    const { route } = operation<Tx, Settles, RequestView, string, string>(engine, {
      name: `serve ${path}`,
      provider: "blind",
      open: (_tx, { input }) => ground.given(keyOf(input)),
      perform: ({ input, attempt }) => perform(workOf(input, attempt)),
      finish: (tx, { reference, result }) => ground.unit(tx, reference, () => finish(result)),
    });
    return route(viewOf);
  };
}

/** An engine, what it tells, and a wire to its store that can be cut. */
function engineOn<Tx, Settles extends Settling>(
  store: Store,
  { policy = {}, runtime, fingerprintSecret }: Service,
) {
  const events: EngineEvent[] = [];
  const storeCalls: string[] = [];
  const wire = { cut: false, losing: 0 };
  const engine = createEngine<Tx, Settles>({
    ...policy,
    store: watched(store, wire, storeCalls),
    listeners: [(event) => events.push(event)],
    ...(runtime === undefined ? {} : { runtime }),
    ...(fingerprintSecret === undefined ? {} : { fingerprintSecret }),
  });
  const identity = (key: string, principal: string): Identity => ({ kind: "http", principal, key });
  return {
    ...{ engine, events, storeCalls },
    cutOff: (cut: boolean) => {
      wire.cut = cut;
    },
    loseReplies: (replies: number) => {
      wire.losing = replies;
    },
    record: async (key: string, principal = "alice") => (await store.read(identity(key, principal))).record,
    drain: () => engine.close({ drain: "5s" }),
  };
}

interface Wire {
  cut: boolean;
  losing: number;
}

/** The store itself, its calls noted; while the wire is cut no call arrives, and replies may be lost on it. */
function watched(store: Store, wire: Wire, calls: string[]): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function" || name === "within") return member;
      return async (...given: readonly unknown[]) => {
        calls.push(String(name));
        if (wire.cut) throw new StoreUnavailable("The wire to the store was cut.");
        const reply: unknown = await Reflect.apply(member, target, given);
        if (wire.losing === 0) return reply;
        wire.losing -= 1;
        throw new StoreUnavailable("The reply of the store was lost.");
      };
    },
  });
}

function principalOf(route: Route, request: RequestView): unknown {
  return route.principal === undefined ? (request.header("x-user") ?? "alice") : route.principal(request);
}

/** Effects are counted by key, however it was quoted. */
function keyOf(request: RequestView): string {
  return (request.header("idempotency-key") ?? "").replace(/^"(.*)"$/, "$1");
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
