import type { ServerResponse } from "node:http";
import { RESERVED_HEADERS } from "../engine/header-policy.ts";
import type { Header } from "./exchange.ts";
import type { Capture } from "./node-capture.ts";
import { putLines, setLines } from "./node-head.ts";
import { isBodyless, isReserved, type Outgoing } from "./outgoing.ts";

/** Sends an answer that is not the handler's, upon the headers that others have set. */
export function sendReply(response: ServerResponse, { status, headers, body, added }: Outgoing): void {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array(0);
  const bare = isBodyless(status);
  const length: readonly Header[] = bare ? [] : [["content-length", String(bytes.length)]];
  putLines(response, [...headers, ...added, ...length]);
  response.statusCode = status;
  response.statusMessage = "";
  response.end(bare ? undefined : bytes);
}

/** Sends what was captured, in the way in which it was given, or whatever takes its place. */
export async function sendCaptured(
  response: ServerResponse,
  captured: Capture,
  outgoing: Outgoing,
): Promise<void> {
  if (outgoing.from === "guard") {
    captured.native.release([]);
    setLines(response, captured.before);
    return sendReply(response, outgoing);
  }
  const { inPieces } = captured.given();
  sendHead(captured, outgoing);
  if (outgoing.body instanceof ReadableStream) return await flow(captured, outgoing.body);
  const bytes = outgoing.body ?? new Uint8Array(0);
  if (inPieces && bytes.length > 0) captured.native.call("write", bytes);
  finish(captured, inPieces || bytes.length === 0 ? [] : [bytes]);
}

/** An answer in one piece has its head from Node, with its length; any other gets the head that it was given. */
function sendHead({ native, given }: Capture, { added, status, statusText }: Outgoing): void {
  const { head, inPieces } = given();
  for (const name of RESERVED_HEADERS) native.call("removeHeader", name);
  const raw = (head?.raw ?? []).filter(([name]) => !isReserved(name));
  if (raw.length > 0) {
    native.call("writeHead", status, statusText, [...raw, ...added].flat());
    return;
  }
  for (const [name, value] of added) native.call("setHeader", name, value);
  if (inPieces) native.call("writeHead", status, statusText);
}

const NOTHING = new Uint8Array(0);

function finish({ native, given }: Capture, last: readonly Uint8Array[]): void {
  const { trailers } = given();
  if (trailers !== undefined) native.call("addTrailers", trailers);
  native.call("end", ...last);
  native.release([]);
}

/** No faster than the client takes it. One that hangs up ends the sending, and neither the work nor its recording. */
async function flow(captured: Capture, body: ReadableStream<Uint8Array>): Promise<void> {
  const { native } = captured;
  const reader = body.getReader();
  native.call("write", NOTHING); // the head; by `flushHeaders` Node would spell it in UTF-8
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return finish(captured, []);
      if (native.call("write", value) === false) await native.room();
      if (native.isGone()) return await reader.cancel(); // and goes on capturing: the handler does not know
    }
  } catch {
    // The end may not leave: what the client has got so far must not look like the whole. Why, its operators were told.
    native.call("destroy");
    native.release([]);
  }
}
