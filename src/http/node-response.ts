import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Header } from "./exchange.ts";
import { headersSent, putAtHead } from "./node-head.ts";
import { lasting } from "./node-socket.ts";

type Method = (...given: readonly unknown[]) => unknown;

/** What a captured response does in the place of its own methods. */
export interface Captured extends Readonly<Record<(typeof ANSWERING)[number], Method>> {
  /** Whether its head is fixed, so that nobody may set a header any more. */
  readonly sealed: () => boolean;
  readonly ended: () => boolean;
}

/** A response whose methods were taken over: its own are called from here. */
export interface NativeResponse {
  /** Calls a method as it was before, whoever had wrapped it; it finds a response that nobody captures. */
  readonly call: (name: string, ...given: readonly unknown[]) => unknown;
  /** Tells who waits for it that the answer is whole. */
  readonly finish: () => void;
  /** Gives the response back for good; `added` go onto whatever head leaves from here on. */
  readonly release: (added: readonly Header[]) => void;
  /** Whether the client is gone. The handler is not told: it would stop, and its answer is to be kept. */
  readonly isGone: () => boolean;
  /** Settles when the client has room for more, or is gone. */
  readonly room: () => Promise<void>;
}

const ANSWERING = ["writeHead", "write", "end", "flushHeaders", "addTrailers", "destroy"] as const;
const SETTING = ["setHeader", "setHeaders", "appendHeader", "removeHeader"] as const;

interface State {
  /** Whether the response is to do as it always did. */
  native: boolean;
  gone: boolean;
  wake: () => void;
}

export function takenOver(response: ServerResponse, captured: Captured): NativeResponse {
  const state: State = { native: false, gone: false, wake: () => {} };
  const original = originalsOf(response);
  const call: NativeResponse["call"] = (name, ...given) => {
    const { native } = state;
    state.native = true;
    try {
      return original(name, given);
    } finally {
      state.native = native;
    }
  };
  replaceMethods(response, captured, { state, original });
  const finishing = replaceEvents(response, { state, original });
  show(response, "headersSent", state, captured.sealed);
  for (const name of ["writableEnded", "writableFinished"]) show(response, name, state, captured.ended);
  for (const name of ["destroyed", "closed", "_closed"]) show(response, name, state, () => false);
  // What `on-finished` (of Express, Koa, send) hooked to the socket before would stop what is sent from here on.
  Reflect.set(response, "__onFinished", null);
  const { socket } = response;
  const stand = socket === null ? null : lasting(socket);
  for (const name of ["socket", "connection"]) show(response, name, state, () => stand);
  return {
    call,
    finish: () => void process.nextTick(() => finishing.emit("finish")),
    release: (added) => {
      state.native = true;
      putAtHead(response, added);
      if (state.gone) original("emit", ["close"]);
    },
    isGone: () => state.gone,
    room: () =>
      new Promise((resolve) => {
        state.wake = resolve;
        if (state.gone) resolve();
        else call("once", "drain", resolve);
      }),
  };
}

interface Over {
  readonly state: State;
  readonly original: (name: string, given: readonly unknown[]) => unknown;
}

function originalsOf(response: ServerResponse): Over["original"] {
  const names = [...ANSWERING, ...SETTING, ...LISTENING, "emit", "off", "removeListener"];
  const methods = new Map(names.map((name): [string, unknown] => [name, Reflect.get(response, name)]));
  return (name, given) => {
    const method = methods.get(name);
    return typeof method === "function" ? Reflect.apply(method, response, given) : undefined;
  };
}

function replaceMethods(response: ServerResponse, captured: Captured, { state, original }: Over): void {
  for (const name of ANSWERING) {
    replace(response, name, (...given) => {
      if (!state.native) return captured[name](...given);
      return original(name, given);
    });
  }
  for (const name of SETTING) {
    replace(response, name, (...given) => {
      if (!state.native && captured.sealed()) throw headersSent(name === "removeHeader" ? "remove" : "set");
      return original(name, given);
    });
  }
}

/**
 * The client's hanging up is told once the answer is no longer in the making. Who waits for the answer to be finished from
 * here on is told when it is whole: its end is held until the handler has ended, which may be waiting for that very word.
 */
function replaceEvents(response: ServerResponse, { state, original }: Over): EventEmitter {
  const finishing = new EventEmitter();
  for (const name of LISTENING) {
    replace(response, name, (...given) => {
      const [event, listener] = given;
      if (state.native || event !== "finish" || !isListener(listener)) return original(name, given);
      finishing[name](event, listener);
      return response;
    });
  }
  for (const name of ["off", "removeListener"]) {
    replace(response, name, (...given) => {
      const [event, listener] = given;
      if (event === "finish" && isListener(listener)) finishing.off(event, listener);
      return original(name, given);
    });
  }
  replace(response, "emit", (...given) => {
    if (given[0] !== "close") return original("emit", given);
    state.gone = true;
    state.wake();
    return state.native ? original("emit", given) : true;
  });
  return finishing;
}

const LISTENING = ["on", "once", "addListener", "prependListener", "prependOnceListener"] as const;

function isListener(value: unknown): value is (...given: unknown[]) => void {
  return typeof value === "function";
}

/** Wrappers may be put upon it, as they are upon a response's own methods. */
function replace(response: ServerResponse, name: string, method: Method): void {
  if (typeof Reflect.get(response, name) !== "function") return;
  Object.defineProperty(response, name, { value: method, configurable: true, writable: true });
}

/** What a property says while the response is captured; Node itself still sees, and sets, its own value. */
function show(response: ServerResponse, name: string, state: State, value: () => unknown): void {
  const own = Object.getOwnPropertyDescriptor(response, name);
  let held: unknown = own?.value;
  const real = () =>
    own === undefined ? Reflect.get(Object.getPrototypeOf(response), name, response) : held;
  Object.defineProperty(response, name, {
    configurable: true,
    get: () => (state.native ? real() : value()),
    set: (next: unknown) => {
      if (own === undefined) Reflect.set(Object.getPrototypeOf(response), name, next, response);
      else held = next;
    },
  });
}
