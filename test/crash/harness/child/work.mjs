// What the servers do: transfers within the database, and payments at a bank, each of which leaves a row in the end.
import { setTimeout as sleep } from "node:timers/promises";
import { NotPerformed, operation } from "oncekey";
import { createBankClient } from "../../../../examples/settlement/dist/bank-client.js";
import { inside } from "./database.mjs";
import { isArmed, reached } from "./failpoints.mjs";
import { tellRun } from "./telling.mjs";

/** More than this is refused, whatever an account holds. */
const MOST = 10_000;

/** Moves money from one account to another. Nothing but the record keeps a second transfer of a key out. */
export function* transfer({ principal, key, attempt, body }) {
  inside("transfer");
  const { from, to, amount, mark } = body;
  if (amount > MOST) return { status: 422, json: { mark, refused: "too much" } };
  const [low, high] = from < to ? [from, to] : [to, from];
  for (const id of [low, high])
    yield ["UPDATE accounts SET balance = balance + $1 WHERE id = $2", [id === to ? amount : -amount, id]];
  const [{ id }] = yield [
    `INSERT INTO transfers (principal, key, attempt, payer, payee, amount) VALUES ($1, $2, $3, $4, $5, $6)
     RETURNING CAST(id AS text) AS id`,
    [principal, key, attempt, from, to, amount],
  ];
  inside("transfer");
  return { status: 201, json: { id: `transfer ${id}`, mark } };
}

/** A bank that offers what `provider` says, as requests and workers talk to it. */
export function openBank({ bankUrl, provider, mutant, chance, settings }) {
  const bank = createBankClient({ url: bankUrl, timeoutMs: settings.bankTimeoutMs });
  const keyOf = mutant.downstreamKey ?? ((attempt) => attempt.downstreamKey);
  const { requestTimeout } = settings.engine;
  // What the bank took in time it has booked a request's time later, however slow it is.
  const sentKeyOf = (attempt) =>
    provider === "query"
      ? `${keyOf(attempt)}@${attempt.validUntil.getTime() - requestTimeout}`
      : keyOf(attempt);
  return {
    validForMs: 1.5 * requestTimeout,
    pay: async (input, attempt) => {
      // Lost on its way, which nobody can tell from an answer that was lost.
      if (chance() < settings.lostRequests) throw new Error("The connection ended.");
      return await performed(mutant, () => paid(bank, input, sentKeyOf(attempt), attempt.signal));
    },
    look: (attempt) => looked(bank, keyOf(attempt)),
    cancel: (attempt) => cancelled(bank, keyOf(attempt)),
  };
}

/** The operation at such a bank. */
export function payments(engine, { bank, provider, run }) {
  const canAsk = provider === "keyed" || provider === "query";
  return operation(engine, {
    name: `POST /${provider}`,
    provider,
    open: (tx, { input, reference, attempt }) => run(tx, opened(input, reference, attempt)),
    perform: async ({ input, attempt }) => {
      tellRun(input, attempt.number);
      reached("before perform");
      const result = await bank.pay(input, attempt);
      reached("reply got");
      return result;
    },
    finish: (tx, { reference, result, attempt }) => run(tx, finished(reference, result, attempt)),
    ...(provider === "query" ? { validFor: bank.validForMs } : {}),
    ...(canAsk ? { look: ({ attempt }) => bank.look(attempt) } : {}),
    ...(provider === "keyed" ? { cancel: ({ attempt }) => bank.cancel(attempt) } : {}),
    abandon: (tx, { reference }) => run(tx, abandoned(reference)),
  });
}

async function performed({ hearsNothing }, call) {
  try {
    return await call();
  } catch (error) {
    if (hearsNothing && !(error instanceof NotPerformed)) throw new NotPerformed("No answer came.");
    throw error;
  }
}

/** Where the process is to die between the bank's commit and its answer, it finds out first that there is a payment. */
async function paid(bank, { principal, key, step, body }, downstreamKey, signal) {
  const { amount } = body;
  const reference = [principal, key, step].filter((part) => part !== undefined).join("/");
  const order = { currency: "EUR", debtor: principal, creditor: "DE02", reference };
  const paying = bank.pay({ ...order, amount: `${amount}.00` }, downstreamKey, signal);
  if (!isArmed("bank committed")) return await paying;
  let isOver = false;
  paying.then(
    () => reached("bank committed"),
    () => {
      isOver = true;
    },
  );
  while (!isOver) {
    const found = await bank.find(downstreamKey).catch(() => null);
    if (found?.kind === "found") reached("bank committed");
    await sleep(5);
    if (!isArmed("bank committed")) break;
  }
  return await paying;
}

async function looked(bank, downstreamKey) {
  reached("before look");
  const sighted = await bank.find(downstreamKey);
  reached(sighted.kind === "found" ? "found by look" : "not found by look");
  return sighted;
}

async function cancelled(bank, downstreamKey) {
  const answer = await bank.cancel(downstreamKey);
  reached("cancelled");
  return answer;
}

function* opened({ principal, key, body }, reference, attempt) {
  inside("open");
  const id = reference?.id ?? `payment ${crypto.randomUUID()}`;
  yield [
    `INSERT INTO payments (id, principal, key, state, attempt) VALUES ($1, $2, $3, 'pending', $4)
     ON CONFLICT (id) DO UPDATE SET state = 'pending', attempt = excluded.attempt`,
    [id, principal, key, attempt.number],
  ];
  inside("open");
  return { id, principal, key, mark: body.mark };
}

function* finished({ id, principal, key, mark }, { status, externalReference }, attempt) {
  inside("finish");
  yield ["UPDATE payments SET state = $1 WHERE id = $2", [status, id]];
  if (status === "declined") return { status: 402, json: { id, mark, status } };
  yield [
    "INSERT INTO settlements (payment, principal, key, attempt, external) VALUES ($1, $2, $3, $4, $5)",
    [id, principal, key, attempt.number, externalReference],
  ];
  inside("finish");
  return { status: 201, headers: { location: `/payments/${id}` }, json: { id, mark, externalReference } };
}

function* abandoned({ id }) {
  inside("abandon");
  yield ["UPDATE payments SET state = 'abandoned' WHERE id = $1", [id]];
}
