/**
 * True only for errors which prove that no request left: the connection was refused or timed out, the name was not
 * resolved, the pool had no connection to give. Looks through the causes of an error, and at every part of a combined one.
 */
export function neverSent(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > DEEPEST) return false;
  // What Node throws when it has tried every address of a name.
  if ("errors" in error && Array.isArray(error.errors) && error.errors.length > 0)
    return error.errors.every((each) => neverSent(each, depth + 1));
  const code = "code" in error ? error.code : undefined;
  if (typeof code === "string" && OF_THE_WIRE.test(code))
    return BEFORE_SENDING.has(code) || isConnecting(error);
  if (isPoolTimeout(error)) return true;
  return "cause" in error && neverSent(error.cause, depth + 1);
}

/** A cause may lead back to itself. */
const DEEPEST = 8;

/** Such a code says itself what happened, whatever else had happened before it. */
const OF_THE_WIRE = /^(E[A-Z_]+|UND_ERR_[A-Z_]+|CONNECT_TIMEOUT)$/;

const BEFORE_SENDING: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME"],
  "UND_ERR_CONNECT_TIMEOUT",
  "CONNECT_TIMEOUT", // of postgres.js
]);

/** The same codes come of a connection that was there, and then they say nothing. */
function isConnecting(error: object): boolean {
  return "syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo");
}

/** Pools whose errors have no code are known by what they say. */
function isPoolTimeout(error: object): boolean {
  return error instanceof Error && POOL_TIMEOUTS.some((said) => error.message.startsWith(said));
}

const POOL_TIMEOUTS: readonly string[] = [
  "timeout exceeded when trying to connect", // pg, whose pool is empty
  "Connection terminated due to connection timeout", // pg, whose server does not take the connection
  "Knex: Timeout acquiring a connection.",
];
