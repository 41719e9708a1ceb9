import { createServer } from "node:net";
import { Pool } from "pg";
import { expect, test } from "vitest";
import { neverSent } from "../../src/engine/unsent.ts";
import { freePort } from "../support/processes.ts";

const coded = (code: string, rest: object = {}) => Object.assign(new Error(code), { code, ...rest });

async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  return await work().then(
    () => expect.fail("It did not fail."),
    (error: unknown) => error,
  );
}

test("a real fetch that is refused, or finds no such name, was never sent; one that is cut after it may have been", async () => {
  const port = await freePort();
  expect(neverSent(await failureOf(() => fetch(`http://127.0.0.1:${port}/`)))).toBe(true);
  expect(neverSent(await failureOf(() => fetch(`http://localhost:${port}/`)))).toBe(true);
  expect(neverSent(await failureOf(() => fetch("http://no-such-host.invalid/")))).toBe(true);
  const cutting = createServer((socket) => socket.once("data", () => socket.destroy()));
  await new Promise<void>((resolve) => cutting.listen(port, "127.0.0.1", resolve));
  const cut = await failureOf(() => fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "x" }));
  expect(neverSent(cut)).toBe(false);
  cutting.close();
});

test("a pool that has no connection to give has sent nothing", async () => {
  const silent = createServer(() => {});
  const port = await freePort();
  await new Promise<void>((resolve) => silent.listen(port, "127.0.0.1", resolve));
  const pool = new Pool({ host: "127.0.0.1", port, connectionTimeoutMillis: 50 });
  expect(neverSent(await failureOf(() => pool.query("SELECT 1")))).toBe(true);
  silent.close();
});

test.each([
  ["a connect time-out of undici", coded("UND_ERR_CONNECT_TIMEOUT"), true],
  ["a connect time-out of the system", coded("ETIMEDOUT", { syscall: "connect" }), true],
  ["a name server that is away", coded("EAI_AGAIN"), true],
  ["a cause of a cause", new Error("a", { cause: new Error("b", { cause: coded("ECONNREFUSED") }) }), true],
  [
    "an own code round it",
    Object.assign(new Error("a", { cause: coded("ECONNREFUSED") }), { code: "bank_down" }),
    true,
  ],
  [
    "every address refused",
    new AggregateError([coded("ECONNREFUSED"), coded("ENETUNREACH", { syscall: "connect" })]),
    true,
  ],
  ["one address of two reset", new AggregateError([coded("ECONNREFUSED"), coded("ECONNRESET")]), false],
  ["nothing combined", new AggregateError([]), false],
  ["a reset", coded("ECONNRESET"), false],
  ["a time-out of a socket that was there", coded("ETIMEDOUT", { syscall: "read" }), false],
  ["a header time-out", coded("UND_ERR_HEADERS_TIMEOUT"), false],
  ["a time-out caused by a refusal", coded("ETIMEDOUT", { cause: coded("ECONNREFUSED") }), false],
  ["an abort", new DOMException("aborted", "AbortError"), false],
  ["no error", "ECONNREFUSED", false],
  ["null", null, false],
])("of %s it is known whether it was sent", (_what, error, expected) => {
  expect(neverSent(error)).toBe(expected);
});

test("a cause that leads back to itself ends", () => {
  const error = new Error("a");
  error.cause = error;
  expect(neverSent(error)).toBe(false);
});
