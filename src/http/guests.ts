import { checkPrincipal } from "../core/key.ts";
import { ConfigurationError } from "../errors.ts";

/** Nobody in particular: what a `principal` function returns for a caller whom the service does not know. */
export interface Guest {
  readonly [GUEST]: true;
}

const GUEST: unique symbol = Symbol("oncekey.guest");

/** The explicit word for callers whom nobody knows, and why they share their keys. */
export interface SharedPrincipal {
  (): Guest;
  readonly reason: string;
}

/**
 * For routes that guests may use: all of them share their keys, so whoever guesses a key gets its answer. Keys of guests
 * have to be of at least 32 characters, as every UUID is. It is the `principal` itself, or what a `principal` function
 * calls for those that it does not know: `(request) => request.user ?? guests()`.
 */
export function sharedPrincipal(reason: string): SharedPrincipal {
  if (typeof reason !== "string" || reason.trim() === "")
    throw new ConfigurationError(
      "sharedPrincipal",
      "needs a reason in words: why callers are not known here",
    );
  return Object.assign(() => NOBODY, { reason });
}

const NOBODY: Guest = Object.freeze<Guest>({ [GUEST]: true });

/** Why the callers of a route share their keys, where its `principal` says nothing else. */
export function reasonOf(principal: unknown): string | null {
  return typeof principal === "function" && "reason" in principal && typeof principal.reason === "string"
    ? principal.reason
    : null;
}

/** Whose key it is, or why it is nobody's. */
export type Owner =
  | { readonly kind: "owner"; readonly principal: string }
  | { readonly kind: "nobody" }
  /** Shared, and shorter than what nobody can guess. */
  | { readonly kind: "guessable" };

export function ownerOf(given: unknown, key: string): Owner {
  if (given === NOBODY) {
    if (key.length < SHORTEST_SHARED_KEY) return { kind: "guessable" };
    return { kind: "owner", principal: SHARED_PRINCIPAL };
  }
  const { kind, value } = { value: "", ...checkPrincipal(given) };
  // A caller of that name would have the keys of all guests.
  if (kind !== "valid" || value === SHARED_PRINCIPAL) return { kind: "nobody" };
  return { kind: "owner", principal: value };
}

/** 128 bits where each character has at least four, as a hexadecimal digit has. */
export const SHORTEST_SHARED_KEY = 32;

export const GUESSABLE: string = `Callers are not known here, so a key must be one that nobody can guess: take at least ${SHORTEST_SHARED_KEY} characters at random, such as a UUID.`;

/** As it stands on record. */
const SHARED_PRINCIPAL = "oncekey:guests";
