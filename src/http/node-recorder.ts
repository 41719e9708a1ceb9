import type { ServerResponse } from "node:http";
import { type Chunk, chunkOf, endOf } from "./node-chunk.ts";
import { fixedHead, type Head, headersSent, nodeError } from "./node-head.ts";
import { createInlet, type Inlet } from "./node-inlet.ts";
import type { Captured } from "./node-response.ts";
import { isBodyless } from "./outgoing.ts";

/** In which way an answer was given. */
export interface Given {
  readonly head: Head | null;
  /** Without saying its length together with its end. */
  readonly inPieces: boolean;
  readonly trailers: unknown;
}

/** What was given of an answer so far. */
export interface Recording {
  head: Head | null;
  /** What the response said before its head was fixed. */
  before: Pick<ServerResponse, "statusCode" | "statusMessage"> | null;
  inPieces: boolean;
  /** Whether something other than the handler fixed the head, as far as can be told. */
  foreign: boolean;
  ended: boolean;
  /** The body of an answer that was given in one piece. */
  whole: Uint8Array | null;
  /** Where the body of any other goes in. */
  inlet: Inlet | null;
  /** Whether a writer was asked to pause. */
  waiting: boolean;
  trailers: unknown;
}

export function newRecording(): Recording {
  const nothing = { head: null, before: null, whole: null, inlet: null, trailers: undefined };
  return { ...nothing, inPieces: false, foreign: false, ended: false, waiting: false };
}

interface Told {
  readonly isOurs: () => boolean;
  /** A body has begun whose head has to leave. */
  readonly begin: (body: ReadableStream<Uint8Array>) => void;
  readonly ended: () => void;
  readonly breakOff: (error: unknown) => void;
}

/** A response's methods as far as they make an answer: they record it. */
export function recorder(response: ServerResponse, state: Recording, told: Told): Captured {
  const { imply, writeHead } = headOf(response, state, told);
  const flow = flowOf(response, state, { imply, begin: told.begin });
  return {
    ...{
      writeHead,
      write: writeOf(response, state, flow),
      end: endOfAnswer(response, state, { imply, ...told }),
    },
    sealed: () => state.head !== null,
    ended: () => state.ended,
    flushHeaders: () => void flow(),
    addTrailers: (trailers) => {
      state.trailers = trailers;
    },
    destroy: (error) => {
      // Once it was answered, whatever breaks is no part of the answer.
      if (!state.ended) told.breakOff(error);
      return response;
    },
  };
}

function headOf(response: ServerResponse, state: Recording, { isOurs }: Pick<Told, "isOurs">) {
  let implying = false;
  const writeHead = (...given: readonly unknown[]) => {
    if (state.head !== null) throw headersSent("write");
    const { statusCode, statusMessage } = response;
    state.before = { statusCode, statusMessage };
    state.head = fixedHead(response, given);
    state.inPieces ||= !implying;
    state.foreign = !isOurs();
    return response;
  };
  const imply = () => {
    if (state.head !== null) return;
    implying = true;
    try {
      response.writeHead(response.statusCode); // through whoever has wrapped it: they set their headers now
    } finally {
      implying = false;
    }
    state.head ??= fixedHead(response, [response.statusCode]);
  };
  return { imply, writeHead };
}

type Parts = Pick<Told, "begin"> & { readonly imply: () => void };

function flowOf(response: ServerResponse, state: Recording, { imply, begin }: Parts): () => Inlet {
  return () => {
    imply();
    state.inPieces = true;
    if (state.inlet !== null) return state.inlet;
    const inlet = createInlet(() => {
      if (state.waiting) response.emit("drain");
      state.waiting = false;
    });
    state.inlet = inlet;
    begin(inlet.body);
    return inlet;
  };
}

function writeOf(response: ServerResponse, state: Recording, flow: () => Inlet): Captured["write"] {
  return (...given) => {
    const chunk = chunkOf(given);
    if (state.ended) {
      misused(response, chunk.done);
      return false;
    }
    const room = flow().put(hasBody(state) ? chunk.bytes : NOTHING);
    process.nextTick(chunk.done);
    state.waiting = !room;
    return room;
  };
}

function endOfAnswer(
  response: ServerResponse,
  state: Recording,
  { imply, ended }: Pick<Told, "ended"> & { readonly imply: () => void },
): Captured["end"] {
  return (...given) => {
    const { chunk, callback } = endOf(given);
    if (state.ended && chunk !== null) misused(response, callback ?? (() => {}));
    else if (callback !== null) response.once("finish", callback);
    if (state.ended) return response;
    imply();
    state.ended = true;
    const bytes = hasBody(state) ? (chunk?.bytes ?? null) : null;
    if (state.inlet === null) state.whole = bytes;
    else if (bytes !== null) state.inlet.put(bytes);
    ended();
    return response;
  };
}

function misused(response: ServerResponse, done: Chunk["done"]): void {
  const error = nodeError(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
  process.nextTick(() => {
    done(error);
    response.emit("error", error);
  });
}

const NOTHING = new Uint8Array(0);

/** HTTP has no body on these, and Node drops one. */
function hasBody({ head }: Recording): boolean {
  return head === null || !isBodyless(head.status);
}
