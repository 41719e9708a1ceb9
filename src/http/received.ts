import type { Exchange } from "./exchange.ts";

/** The essence (RFC 9110, 8.3.1): parameters such as a charset do not make another request. */
export function mediaType(exchange: Exchange): string {
  const [line = ""] = exchange.header("content-type");
  return (line.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** What a URL, in whatever form it was received, says behind its question mark. */
export function queryOf(url: string): string {
  const [withoutFragment = ""] = url.split("#", 1);
  const at = withoutFragment.indexOf("?");
  return at < 0 ? "" : withoutFragment.slice(at + 1);
}

/**
 * One spelling of a URL's path (RFC 3986, 6.2.2): characters that need no escape stand for themselves, and the other
 * escapes are in upper case. No two different paths become one.
 */
export function pathOf(url: string): string {
  // The target of a request line may be a path alone; two slashes in front of it name no host.
  return new URL(url.startsWith("/") ? `http://host${url}` : url).pathname.replace(
    /%[0-9a-f]{2}/gi,
    (escaped) => {
      const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
      return /[\w.~-]/.test(character) ? character : escaped.toUpperCase();
    },
  );
}

/** When the client of a `Request` is gone, where its server says so. */
export function onAbort({ signal }: Request, listener: () => void): () => void {
  if (signal.aborted) listener();
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/**
 * The lines of a header. Frameworks join repeated ones with ", ", and a quoted key may hold that; Node's own request
 * still has them apart. They count as long as nothing on the way gave the request another value.
 */
export function linesOf(
  joined: string | undefined,
  { incoming, name }: { readonly incoming: unknown; readonly name: string },
): readonly string[] {
  if (joined === undefined) return [];
  if (!joined.includes(",")) return [joined];
  const lines = rawLines(incoming, name);
  return lines.length > 1 && lines.join(", ") === joined ? lines : [joined];
}

/** Names and values take turns in Node's `rawHeaders`. */
function rawLines(incoming: unknown, name: string): readonly string[] {
  if (typeof incoming !== "object" || incoming === null || !("rawHeaders" in incoming)) return [];
  if (!Array.isArray(incoming.rawHeaders)) return [];
  const texts = incoming.rawHeaders.map(String);
  return texts.filter((_, index) => index % 2 === 1 && texts[index - 1]?.toLowerCase() === name);
}
