import type { ServerResponse } from "node:http";
import { isPromise } from "../engine/command.ts";
import type { Settling } from "../engine/returned.ts";
import type { Exchange, Header } from "./exchange.ts";
import { isKept } from "./handling.ts";
import { type Capture, capture } from "./node-capture.ts";
import { putAtHead, setLines } from "./node-head.ts";
import { sendCaptured, sendReply } from "./node-send.ts";
import { type Outgoing, replied, SENT } from "./outgoing.ts";
import type { Host, RouteContext } from "./route.ts";
import type { KeptAnswer } from "./transaction-door.ts";

/** What is left for the host to do, in its own way. */
export type Handover =
  | { readonly kind: "done" }
  /** The handler has returned this; its framework may make an answer of it. */
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "reply"; readonly outgoing: Outgoing };

/** A request on a host whose answers leave by Node's own response. */
export interface NodeCall<Tx, Settles extends Settling> {
  readonly exchange: Exchange;
  readonly response: ServerResponse;
  /** Runs the handler; `ended` settles once something has ended the response, `null` where nobody waits for that. */
  readonly handle: (context: RouteContext<Tx, Settles>, ended: Promise<void> | null) => unknown;
  /** Takes an error that nobody can answer any more. */
  readonly tell: (error: unknown) => void;
  /** Whether an answer is made of what the handler returns, and not by the handler itself. */
  readonly returns: boolean;
  /** The headers that the host has set so far, where it does not set them on the response at once. */
  readonly before?: readonly Header[];
}

/** Serves a request up to where its host has to go on. What is captured leaves by itself, once it is kept. */
export function served<Tx, Settles extends Settling>(
  call: NodeCall<Tx, Settles>,
  serve: (host: Host<Tx, Settles>) => Promise<Outgoing>,
): Promise<Handover> {
  return new Promise((resolve) => {
    const course: Course = { captured: null, handed: false, hand: () => {} };
    course.hand = (handover) => {
      course.handed = true;
      resolve(handover);
    };
    serve(hostOf(call, course))
      .then((outgoing) => leave(call.response, course, outgoing))
      .catch((error: unknown) => cut(course, error));
  });
}

/** One request on its way. */
interface Course {
  captured: Capture | null;
  handed: boolean;
  hand: (handover: Handover) => void;
}

function hostOf<Tx, Settles extends Settling>(
  call: NodeCall<Tx, Settles>,
  course: Course,
): Host<Tx, Settles> {
  let running: RouteContext<Tx, Settles> | null = null;
  return {
    exchange: call.exchange,
    run: (context, handlerEnded) => {
      running = context;
      const captured = capture(call.response, call.before);
      course.captured = captured;
      return run(call, course, captured, { context, handlerEnded });
    },
    answerOfError: async (error) => {
      const { captured } = course;
      if (captured === null || running === null || statusOf(error) === null) return null;
      captured.handOver();
      captured.settle();
      course.hand({ kind: "threw", error });
      return await Promise.race([captured.answer, aborted(running.signal)]);
    },
    failed: async (error, added) => {
      const { captured, handed } = course;
      captured?.forget();
      captured?.native.release(added);
      if (handed && captured !== null) failLate(call, captured, error);
      else course.hand({ kind: "threw", error });
      return SENT;
    },
    unprotected: async (context, added, ended) => {
      putAtHead(call.response, added);
      const closed = ended === undefined ? null : untilClosed(call.response);
      course.hand(await bare(call, context));
      if (closed !== null) void closed.then((status) => ended?.(status));
      return SENT;
    },
  };
}

/** What its framework made of the handler's return counts for nothing, and the framework cannot be told any more. */
function failLate<Tx, Settles extends Settling>(
  { response, tell }: NodeCall<Tx, Settles>,
  { before }: Capture,
  error: unknown,
): void {
  tell(error);
  if (response.headersSent) return void response.destroy();
  setLines(response, before);
  const headers = [["content-type", "text/plain; charset=utf-8"]] as const;
  const body = new TextEncoder().encode("Internal Server Error");
  sendReply(response, replied({ status: 500, headers, body }));
}

interface Handling<Tx, Settles extends Settling> {
  readonly context: RouteContext<Tx, Settles>;
  readonly handlerEnded: () => void;
}

function run<Tx, Settles extends Settling>(
  { handle, returns }: NodeCall<Tx, Settles>,
  course: Course,
  captured: Capture,
  { context, handlerEnded }: Handling<Tx, Settles>,
): Promise<Outgoing | KeptAnswer> {
  return new Promise((resolve, reject) => {
    const settled = (value: unknown) => {
      handlerEnded();
      if (isKept(value)) return resolve(value);
      if (returns) captured.handOver();
      captured.settle();
      if (returns) course.hand({ kind: "returned", value });
    };
    const threw = (error: unknown) => {
      handlerEnded();
      if (captured.begun()) return captured.settle({ error });
      captured.forget();
      reject(error);
    };
    void captured.answer.then(resolve);
    captured.within(() => {
      try {
        const returned = handle(context, captured.ended);
        if (isPromise(returned)) void returned.then(settled, threw);
        else settled(returned);
      } catch (error) {
        threw(error);
      }
    });
  });
}

async function bare<Tx, Settles extends Settling>(
  { handle }: NodeCall<Tx, Settles>,
  context: RouteContext<Tx, Settles>,
): Promise<Handover> {
  try {
    return { kind: "returned", value: await handle(context, null) };
  } catch (error) {
    return { kind: "threw", error };
  }
}

/** The status of an answer once its response is done with, however it left; `null` where nothing has ended it. */
async function untilClosed(response: ServerResponse): Promise<number | null> {
  if (!response.destroyed) await new Promise<void>((resolve) => response.once("close", resolve));
  return response.writableEnded ? response.statusCode : null;
}

/** Once the framework goes on by itself nothing but the response is left to answer by. */
async function leave(response: ServerResponse, course: Course, outgoing: Outgoing): Promise<void> {
  const { captured, handed } = course;
  if (outgoing === SENT) return course.hand({ kind: "done" });
  if (captured !== null && (handed || outgoing.from === "handler")) {
    course.hand({ kind: "done" });
    return await sendCaptured(response, captured, outgoing);
  }
  if (captured !== null) {
    captured.native.release([]);
    setLines(response, captured.before);
  }
  course.hand({ kind: "reply", outgoing });
}

/** What is wrong with the route itself is its host's to tell, as long as the host is waiting. */
function cut({ captured, handed, hand }: Course, error: unknown): void {
  captured?.native.release([]);
  if (handed) captured?.native.call("destroy");
  else hand({ kind: "threw", error });
}

/** An error that carries an HTTP status is an answer: that of http-errors, Boom, Nest or Fastify; `null` for any other. */
export function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  const boom: unknown = Reflect.get(error, "output");
  const nest: unknown = Reflect.get(error, "getStatus");
  const said = [
    Reflect.get(error, "statusCode"),
    Reflect.get(error, "status"),
    typeof boom === "object" && boom !== null ? Reflect.get(boom, "statusCode") : null,
    typeof nest === "function" ? Reflect.apply(nest, error, []) : null,
  ];
  return said.find((status) => Number.isInteger(status) && status >= 400 && status <= 599) ?? null;
}

async function aborted(signal: AbortSignal): Promise<null> {
  if (signal.aborted) return null;
  return await new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
}
