import { isBodyless, isReserved, type Outgoing } from "./outgoing.ts";

/** A handler's own `Response` on its way out; its body is not read here. */
export function outgoingOf(response: Response): Outgoing {
  // Before its body: some servers' own Response has its default type only if its headers were looked at first.
  const headers = [...response.headers];
  const { status, statusText, body } = response;
  if (body?.locked === true) throw new TypeError("The body of the handler's Response was read already.");
  return { from: "handler", status, statusText, headers, body, added: [] };
}

/** An answer as a `Response`. */
export function toResponse({ from, status, statusText, headers, body, added }: Outgoing): Response {
  const lines = new Headers();
  for (const [name, value] of headers) {
    if (from === "guard" || !isReserved(name)) lines.append(name, value);
  }
  for (const [name, value] of added) lines.set(name, value);
  return framed(body ?? NOTHING, { status, statusText, headers: lines });
}

const NOTHING = new Uint8Array(0);

/** Fetch refuses bodies on these, even empty ones. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** An empty body is none at all, or servers would guess a type for it; its length is said, or they would chunk it. */
function framed(
  body: Uint8Array | ReadableStream<Uint8Array>,
  init: { readonly status: number; readonly statusText: string; readonly headers: Headers },
): Response {
  const empty = NO_BODY.has(init.status) || (body instanceof Uint8Array && body.length === 0);
  if (!empty) return new Response(body instanceof Uint8Array ? plain(body) : body, init);
  if (isBodyless(init.status)) init.headers.delete("content-length");
  else init.headers.set("content-length", "0");
  return new Response(null, init);
}

/** Fetch takes no bytes of shared memory. */
function plain(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isPlain(bytes) ? bytes : new Uint8Array(bytes);
}

function isPlain(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}
