import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import type { Header } from "./exchange.ts";
import { headerLines, linesSince } from "./node-head.ts";
import { failing } from "./node-inlet.ts";
import { type Given, newRecording, type Recording, recorder } from "./node-recorder.ts";
import { type NativeResponse, takenOver } from "./node-response.ts";
import type { Outgoing } from "./outgoing.ts";

/** An answer that is being made on Node's own response; nothing of it leaves before it is let. */
export interface Capture {
  /** As soon as its head has to leave; an answer given in one piece waits for its handler to settle. */
  readonly answer: Promise<Outgoing>;
  /** Settles once the response was ended. */
  readonly ended: Promise<void>;
  /** Whether something of it would have left by now, had nobody captured it. */
  readonly begun: () => boolean;
  /** Runs the handler, so that what it answers is told from what others answer. */
  readonly within: <T>(run: () => T) => T;
  /** From here on others answer in the handler's name: its framework, with what it returned. */
  readonly handOver: () => void;
  /** The handler has settled: its answer may end, or breaks off where it failed. */
  readonly settle: (failure?: { readonly error: unknown }) => void;
  /** Undoes a head of which nothing has left. */
  readonly forget: () => void;
  readonly given: () => Given;
  readonly native: NativeResponse;
  /** The headers that had been set before the handler ran. */
  readonly before: readonly Header[];
}

const running = new AsyncLocalStorage<object>();
const taken = new WeakSet<ServerResponse>();

/** Whether an answer is, or was, made on a response that was taken over. */
export function isCaptured(response: ServerResponse): boolean {
  return taken.has(response);
}

/** Takes a response over: its methods record what they are given, with the checks and the errors of Node's own. */
export function capture(
  response: ServerResponse,
  before: readonly Header[] = headerLines(response),
): Capture {
  const state = newRecording();
  const course = { handedOver: false, settled: false };
  const token = {};
  const answer = deferred<Outgoing>();
  const ended = deferred<void>();
  const resolve = (body: Outgoing["body"]) => answer.resolve(outgoingOf(response, state, before, body));
  const breakOff = (error: unknown) =>
    state.inlet === null ? resolve(failing(error)) : state.inlet.fail(error);
  const complete = () => {
    if (!state.ended || !course.settled) return;
    if (state.inlet === null) resolve(state.whole);
    else state.inlet.close();
  };
  const isOurs = () => course.handedOver || running.getStore() === token;
  const recorded = recorder(response, state, { isOurs, begin: resolve, ended: ended.resolve, breakOff });
  const native = takenOver(response, recorded);
  taken.add(response);
  void ended.promise.then(native.finish).then(complete);
  return {
    ...{ answer: answer.promise, ended: ended.promise, native, before, given: () => state },
    begun: () => state.inlet !== null || state.ended,
    within: (run) => running.run(token, run),
    handOver: () => {
      course.handedOver = true;
    },
    settle: (failure) => {
      course.settled = true;
      if (failure === undefined) complete();
      else breakOff(failure.error);
    },
    forget: () => {
      state.head = null;
      Object.assign(response, state.before);
    },
  };
}

function outgoingOf(
  response: ServerResponse,
  { head, foreign }: Recording,
  before: readonly Header[],
  body: Outgoing["body"],
): Outgoing {
  const lines = [...headerLines(response), ...(head?.raw ?? [])];
  const { status, message } = head ?? { status: response.statusCode, message: "" };
  return {
    ...{ from: "handler", status, statusText: message, headers: linesSince(before, lines) },
    ...{ body, added: [], foreign },
  };
}

function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((own) => {
    resolve = own;
  });
  return { promise, resolve };
}
