import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { startProcess, until } from "../../../test/support/processes.ts";
import { type Bank, startBank } from "../src/bank/bank.ts";
import { createFaultDesk } from "../src/bank/fault-desk.ts";

const order = { amount: "12.50", currency: "EUR", debtor: "Ada", creditor: "Bert", reference: "invoice 7" };

test("a payment is accepted with 201, found by its key and written into the ledger", async () => {
  const { url } = await openBank();
  const { status, body } = await pay(url, "key-1");
  expect(status).toBe(201);
  const given = { id: expect.stringMatching(/./), createdAt: expect.stringMatching(/^\d{4}-.*Z$/) };
  expect(body).toEqual({ ...order, ...given, status: "accepted", key: "key-1" });
  expect(await look(url, "key-1")).toEqual({ status: 200, body });
  expect(await ledger(url)).toEqual([body]);
  expect(await look(url, "KEY-1")).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  expect(await pay(url, "KEY-1")).toMatchObject({ status: 201 });
});

test("the same key again is the same payment, also under faults that strike new ones", async () => {
  const { url } = await openBank();
  const { body } = await pay(url, "key-1");
  await setFaults(url, { decline: true });
  expect(await pay(url, "key-1")).toEqual({ status: 200, body });
  expect(await ledger(url)).toEqual([body]);
});

test("the same key with any member changed is refused with 422 and changes nothing", async () => {
  const { url } = await openBank();
  const first = await pay(url, "key-1");
  const others = { amount: "12.51", currency: "USD", debtor: "Adam", creditor: "Ben", reference: "" };
  for (const [member, value] of Object.entries(others)) {
    const refused = await pay(url, "key-1", { ...order, [member]: value });
    expect(refused, member).toMatchObject({ status: 422, body: { code: "key_reused" } });
  }
  expect(await ledger(url)).toEqual([first.body]);
});

test("a decline is a 402 that stays under its key after the bank has changed its mind", async () => {
  const { url } = await openBank();
  await setFaults(url, { decline: true });
  const declined = await pay(url, "key-1");
  expect(declined).toMatchObject({ status: 402, body: { status: "declined", key: "key-1" } });
  await setFaults(url, {});
  expect(await pay(url, "key-1")).toEqual(declined);
  expect(await look(url, "key-1")).toEqual({ status: 200, body: declined.body });
  expect(await cancel(url, "key-1")).toMatchObject({ status: 409, body: { status: "declined" } });
  expect(await ledger(url)).toEqual([]);
});

test("a cancelled key refuses its payment for ever, also across a restart", async () => {
  const dataDir = temporaryFolder();
  const before = await openBank({ dataDir });
  for (const _ of [1, 2]) expect(await cancel(before.url, "key-1")).toMatchObject({ status: 200 });
  await before.close();
  const { url } = await openBank({ dataDir });
  expect(await pay(url, "key-1")).toMatchObject({ status: 409, body: { code: "key_cancelled" } });
  expect(await look(url, "key-1")).toMatchObject({ status: 404 });
});

test("a payment that is on its way when its key is cancelled never arrives", async () => {
  const { url } = await openBank();
  await setFaults(url, { delayMs: 1000 });
  const late = pay(url, "key-1");
  expect(await cancel(url, "key-1")).toMatchObject({ status: 200 });
  expect(await late).toMatchObject({ status: 409, body: { code: "key_cancelled" } });
  expect(await ledger(url)).toEqual([]);
});

test("the bank never reverses: cancelling a payment, hidden or not, is a 409 that shows it", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const { url } = await openBank({ now: () => new Date(now) });
  await pay(url, "key-1");
  const [body] = await ledger(url);
  const refused = { status: 409, body: { ...body, code: "already_decided" } };
  await setFaults(url, { hideForMs: 500 });
  now += 499;
  expect(await look(url, "key-1")).toMatchObject({ status: 404 });
  expect(await ledger(url)).toEqual([body]);
  expect(await cancel(url, "key-1")).toEqual(refused);
  now += 1;
  expect(await look(url, "key-1")).toEqual({ status: 200, body });
  expect(await cancel(url, "key-1")).toEqual(refused);
});

test("50 simultaneous payments with one key, by two banks on one ledger, are one entry", async () => {
  const dataDir = temporaryFolder();
  const banks = [await openBank({ dataDir }), await openBank({ dataDir })];
  for (const { url } of banks) await setFaults(url, { delayMs: 20 });
  const urls = Array.from({ length: 25 }, () => banks.map(({ url }) => url)).flat();
  const answers = await Promise.all(urls.map((url) => pay(url, "key-1")));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201]);
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  for (const { url } of banks) expect(await ledger(url)).toHaveLength(1);
});

test("unavailable answers 503 before any effect and says so", async () => {
  const { url } = await openBank();
  await setFaults(url, { unavailable: true, commitThenDrop: true, delayMs: 60_000 });
  const refused = { status: 503, body: { code: "unavailable", effect: "none" } };
  expect(await pay(url, "key-1")).toMatchObject(refused);
  expect(await ledger(url)).toEqual([]);
});

test("down resets every connection but those to the ledger and the faults", async () => {
  const { url } = await openBank();
  const { body } = await pay(url, "key-1");
  await setFaults(url, { down: true });
  const reset = { cause: { code: "ECONNRESET" } };
  const requests = [pay(url, "key-2"), look(url, "key-1"), cancel(url, "key-3")];
  await Promise.all(requests.map((request) => expect(request).rejects.toMatchObject(reset)));
  expect(await ledger(url)).toEqual([body]);
  expect(await call(url, "GET /faults")).toEqual({ status: 200, body: { down: true } });
});

test("commitThenDrop makes the payment and closes the connection without an answer", async () => {
  const { url } = await openBank();
  await setFaults(url, { commitThenDrop: true });
  await expectCut(pay(url, "key-1"));
  await setFaults(url, {});
  const [body] = await ledger(url);
  expect(await look(url, "key-1")).toEqual({ status: 200, body });
  expect(await pay(url, "key-1")).toEqual({ status: 200, body });
});

test("commitThenHang makes the payment and says nothing until it is healed, which cuts the connection", async () => {
  const { url } = await openBank();
  await setFaults(url, { commitThenHang: true });
  const hung = pay(url, "key-1");
  const cutOff = expectCut(hung);
  await untilPaid(url);
  await setFaults(url, { commitThenHang: true, delayMs: 1 });
  expect(await look(url, "key-1")).toMatchObject({ status: 200 });
  expect(await Promise.race([hung, "silence"])).toBe("silence");
  await setFaults(url, {});
  await cutOff;
  expect(await pay(url, "key-1")).toMatchObject({ status: 200 });
});

test("a payment that comes to hang after the fault was healed is cut instead", async () => {
  const socket = connect((await openBank()).port, "127.0.0.1");
  await createFaultDesk().hang(socket);
  expect(socket.destroyed).toBe(true);
});

test("a payment is made although its client has left before the commit", async () => {
  const { url, port } = await openBank();
  await setFaults(url, { delayMs: 300 });
  const body = JSON.stringify(order);
  const head = `POST /payments HTTP/1.1\r\nHost: bank\r\nIdempotency-Key: key-1\r\nContent-Length: ${body.length}`;
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(`${head}\r\n\r\n${body}`, () => socket.destroy());
  await untilPaid(url);
});

test("closing, also twice, cuts hung and idle connections and keeps the ledger", async () => {
  const dataDir = temporaryFolder();
  const bank = await openBank({ dataDir });
  await setFaults(bank.url, { commitThenHang: true });
  const hung = expectCut(pay(bank.url, "key-1"));
  await untilPaid(bank.url);
  const idle = connect(bank.port, "127.0.0.1").on("error", () => {});
  await once(idle, "connect");
  await Promise.all([bank.close(), bank.close(), hung, once(idle, "close")]);
  const { url } = await openBank({ dataDir });
  expect(await ledger(url)).toHaveLength(1);
});

test("faults that are unknown or of the wrong type are refused with 400 by name and change nothing", async () => {
  const { url } = await openBank();
  await setFaults(url, { decline: true });
  const flags = { decline: [1], unavailable: ["true"], commitThenHang: [null], commitThenDrop: [0] };
  const others = { down: [""], delayMs: ["5", -1, 2 ** 31], hideForMs: [1.5, null, true] };
  const unknown = { slow: [true], toString: [true], ["__proto__"]: [true] };
  for (const [field, value] of pairs({ ...flags, ...others, ...unknown })) {
    const refused = await call(url, "PUT /faults", { [field]: value });
    expect(refused, field).toMatchObject({ status: 400, body: { problems: [{ field }] } });
  }
  expect(await call(url, "PUT /faults", [true])).toMatchObject({ status: 400 });
  expect(await call(url, "GET /faults")).toEqual({ status: 200, body: { decline: true } });
});

test("a malformed payment is refused with 400 that names the wrong member", async () => {
  const { url } = await openBank();
  const amounts = { amount: [12.5, "0", "0.00", "-1.00", "01.00", "1,50", "1.", "1e3", " 1"] };
  const texts = { currency: ["eur"], debtor: ["", 7], creditor: ["a\0b"], reference: ["\ud800", undefined] };
  for (const [field, value] of pairs({ ...amounts, ...texts, note: ["hurry"] })) {
    const refused = await pay(url, "key-1", { ...order, [field]: value });
    expect(refused, field).toMatchObject({ status: 400, body: { problems: [{ field }] } });
  }
  expect((await fetch(`${url}/payments/cancel`, { method: "POST", body: "{ key:" })).status).toBe(400);
});

test("a key that is missing, quoted, doubled, blank or too long is refused wherever it is given", async () => {
  const { url } = await openBank();
  for (const key of [undefined, '"key-1"', "key-1,key-2", " ", "k".repeat(256)]) {
    expect(await pay(url, key), key).toMatchObject({ status: 400 });
    expect(await cancel(url, key), key).toMatchObject({ status: 400 });
    if (key !== undefined) expect(await look(url, key), key).toMatchObject({ status: 400 });
  }
  expect(await call(url, "GET /payments")).toMatchObject({ status: 400 });
});

test("a stand-alone bank killed with kill -9 after a commit knows the payment when it is started again", async () => {
  const dataDir = temporaryFolder();
  const killed = await openProcess(dataDir);
  await setFaults(killed.url, { commitThenHang: true });
  const cutOff = expectCut(pay(killed.url, "key-1"));
  await untilPaid(killed.url);
  const [body] = await ledger(killed.url);
  killed.kill("SIGKILL");
  await Promise.all([cutOff, killed.exited]);
  const { url } = await openProcess(dataDir);
  expect(await call(url, "GET /faults")).toEqual({ status: 200, body: {} });
  expect(await look(url, "key-1")).toEqual({ status: 200, body });
  expect(await pay(url, "key-1")).toEqual({ status: 200, body });
  expect(await ledger(url)).toEqual([body]);
});

test("a stand-alone bank prints one line and ends with 0 on SIGTERM although payments hang and wait", async () => {
  const { url, kill, exited, stdout } = await openProcess(temporaryFolder());
  await setFaults(url, { commitThenHang: true });
  const hung = expectCut(pay(url, "hung"));
  await untilPaid(url);
  await setFaults(url, { commitThenHang: true, delayMs: 60_000 });
  const delayed = expectCut(pay(url, "delayed"));
  await ledger(url);
  kill("SIGTERM");
  expect(await exited).toEqual({ code: 0, signal: null });
  await Promise.all([hung, delayed]);
  expect(stdout).toEqual([expect.stringContaining(url)]);
});

test("a stand-alone bank that is given no port number says so and ends with 1", () => {
  const env = { ...process.env, PORT: "http", DATA_DIR: temporaryFolder() };
  const ended = spawnSync(process.execPath, [mainFile()], { env, encoding: "utf8" });
  expect(ended).toMatchObject({ status: 1, stderr: expect.stringContaining("PORT must be a number") });
});

async function openBank(options: { dataDir?: string; now?: () => Date } = {}): Promise<Bank> {
  const bank = await startBank({ port: 0, dataDir: temporaryFolder(), ...options });
  onTestFinished(() => bank.close());
  return bank;
}

async function openProcess(dataDir: string) {
  const [command, args, env] = [process.execPath, [mainFile()], { PORT: "0", DATA_DIR: dataDir }];
  const bank = await startProcess({ command, args, env, readyWhen: /http:/ });
  onTestFinished(() => bank.kill("SIGKILL"));
  return { ...bank, url: /http:\S+/.exec(bank.stdout.join())?.[0] ?? "" };
}

// `npm test` builds first. It is built here only when it is stale: other tests may be running what it replaces.
function mainFile(): string {
  const example = fileURLToPath(new URL("..", import.meta.url));
  const [source, built] = [join(example, "src/bank"), join(example, "dist/bank/main.js")];
  const builtAtMs = statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const isStale = readdirSync(source).some((file) => statSync(join(source, file)).mtimeMs > builtAtMs);
  if (isStale) spawnSync("npx", ["--no-install", "tsc", "-p", example], { stdio: "inherit" });
  return built;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bank-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function call(url: string, endpoint: string, content?: unknown, headers = {}) {
  const [method = "", path] = endpoint.split(" ");
  const body = content === undefined ? null : JSON.stringify(content);
  const response = await fetch(`${url}${path}`, { method, headers, body });
  const answer: unknown = await response.json();
  return { status: response.status, body: answer };
}

const pay = (url: string, key?: string, body: unknown = order) =>
  call(url, "POST /payments", body, key === undefined ? {} : { "Idempotency-Key": key });
const look = (url: string, key: string) => call(url, `GET /payments?key=${encodeURIComponent(key)}`);
const cancel = (url: string, key?: string) => call(url, "POST /payments/cancel", { key });
const setFaults = async (url: string, body: unknown) =>
  expect(await call(url, "PUT /faults", body)).toEqual({ status: 200, body });

async function ledger(url: string): Promise<readonly object[]> {
  const { body } = await call(url, "GET /ledger");
  return Array.isArray(body) ? body : [];
}

const untilPaid = (url: string) => until(async () => (await ledger(url)).length === 1);
const expectCut = (answer: Promise<unknown>) => expect(answer).rejects.toThrow("fetch failed");

const pairs = (table: Readonly<Record<string, readonly unknown[]>>) =>
  Object.entries(table).flatMap(([field, values]) => values.map((value) => [field, value] as const));
