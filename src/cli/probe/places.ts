import { isIP } from "node:net";

/** Where a probe may send to, or why not. */
export type Place =
  | { readonly kind: "place"; readonly url: URL; readonly mayLeave: boolean }
  | { readonly kind: "bad"; readonly reason: string };

/**
 * Reads a URL that a probe is to send to. A probe makes real effects and sends what no client would, so that a target
 * beyond this machine has to be named a second time, by its exact host (`host` or `host:port` as in the URL).
 */
export function placeIn(text: string, confirmed: readonly string[]): Place {
  if (!URL.canParse(text)) return { kind: "bad", reason: `${text} is no URL` };
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return { kind: "bad", reason: `${text} is neither http:// nor https://` };
  if (url.username !== "" || url.password !== "")
    return { kind: "bad", reason: "a URL with a name or a password in it: give them by --header" };
  const mayLeave = confirmed.some((host) => host === url.host || host === url.hostname);
  if (mayLeave || isLoopbackName(url)) return { kind: "place", url, mayLeave };
  return {
    kind: "bad",
    reason: `${url.hostname} is not this machine. A probe makes real effects there; if that is meant, add --yes-this-host ${url.hostname}`,
  };
}

/** The host of a URL as sockets want it. */
export function addressIn({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** True of the addresses that a packet never leaves this machine by. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, "");
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

/** Where `localhost` really leads is looked at again once the connection stands. */
function isLoopbackName(url: URL): boolean {
  return url.hostname === "localhost" || isLoopbackAddress(addressIn(url));
}
