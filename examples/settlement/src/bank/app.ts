import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import type { FaultDesk } from "./fault-desk.ts";
import { type Faults, readFaults } from "./faults.ts";
import type { Ledger, Recorded } from "./ledger.ts";
import { isSameOrder, type Order, type Payment, readCancellation, readKey, readOrder } from "./payment.ts";
import type { Problem } from "./reading.ts";

/** The bank's routes. Faults are those in force when a request arrives; no fault touches ledger and faults. */
export function createBankApp(bank: BankParts): Hono<Environment> {
  const app = new Hono<Environment>();
  app.use("/payments/*", async (context, next) => {
    const faults = bank.desk.current();
    if (faults.down === true) {
      context.env.incoming.socket.resetAndDestroy();
      return RESPONSE_ALREADY_SENT;
    }
    context.set("faults", faults);
    return next();
  });
  app.post("/payments", (context) => takePayment(context, bank));
  app.get("/payments", (context) => findPayment(context, bank));
  app.post("/payments/cancel", (context) => cancelPayment(context, bank));
  app.get("/ledger", (context) => context.json(bank.ledger.accepted()));
  app.get("/faults", (context) => context.json(bank.desk.current()));
  app.put("/faults", (context) => replaceFaults(context, bank));
  app.notFound((context) => {
    const detail = "There are /payments, /payments/cancel, /ledger and /faults.";
    return context.json({ code: "no_such_endpoint", detail }, 404);
  });
  app.onError((error, context) => context.json({ code: "internal_error", detail: error.message }, 500));
  return app;
}

/** What the routes work with; time and randomness come from outside. */
export interface BankParts {
  readonly ledger: Ledger;
  readonly desk: FaultDesk;
  readonly now: () => Date;
  readonly newId: () => string;
  /** Aborted when the bank closes: what is not committed by then never is. */
  readonly closing: AbortSignal;
}

/** What a request carries beside itself: its connection, and the faults in force when it arrived. */
export interface Environment {
  readonly Bindings: HttpBindings;
  readonly Variables: { readonly faults: Faults };
}

async function takePayment(context: Context<Environment>, bank: BankParts): Promise<Response> {
  const faults = context.get("faults");
  if (faults.unavailable === true) {
    const detail = "The bank takes no payments now. Nothing was done.";
    return context.json({ code: "unavailable", effect: "none", detail }, 503);
  }
  const key = readKey(context.req.header("idempotency-key"), "Idempotency-Key");
  if (key.kind === "invalid") return malformed(context, key.problems);
  const order = readOrder(await readJson(context));
  if (order.kind === "invalid") return malformed(context, order.problems);

  if (faults.delayMs !== undefined) await pause(faults.delayMs, bank.closing);
  const { socket } = context.env.incoming;
  if (bank.closing.aborted) return cut(socket);
  const recorded = bank.ledger.record(decide(bank, faults, key.value, order.value));
  if (faults.commitThenDrop === true) return cut(socket);
  if (faults.commitThenHang === true) {
    await bank.desk.hang(socket);
    return RESPONSE_ALREADY_SENT;
  }
  return answerPayment(context, order.value, recorded);
}

function decide(bank: BankParts, faults: Faults, key: string, order: Order): Payment {
  const { amount, currency, debtor, creditor, reference } = order;
  const status = faults.decline === true ? "declined" : "accepted";
  const createdAt = bank.now().toISOString();
  return { id: bank.newId(), status, key, amount, currency, debtor, creditor, reference, createdAt };
}

function answerPayment(context: Context<Environment>, order: Order, recorded: Recorded): Response {
  if (recorded.kind === "cancelled") {
    const detail = "This key was cancelled: no payment was or will be made under it.";
    return context.json({ code: "key_cancelled", detail }, 409);
  }
  const { payment } = recorded;
  if (!isSameOrder(payment, order)) {
    const detail = "This key belongs to a payment with other content. Send other content under another key.";
    return context.json({ code: "key_reused", detail }, 422);
  }
  switch (payment.status) {
    case "declined":
      return context.json(payment, 402);
    case "accepted":
      return context.json(payment, recorded.kind === "recorded" ? 201 : 200);
  }
}

function findPayment(context: Context<Environment>, bank: BankParts): Response {
  const key = readKey(context.req.query("key"), "key");
  if (key.kind === "invalid") return malformed(context, key.problems);
  const { hideForMs = 0 } = context.get("faults");
  const payment = bank.ledger.find(key.value);
  if (payment === undefined || isHidden(payment, hideForMs, bank.now())) {
    return context.json({ code: "payment_not_found", detail: "No payment is known under this key." }, 404);
  }
  return context.json(payment);
}

function isHidden({ createdAt }: Payment, hideForMs: number, now: Date): boolean {
  return hideForMs > 0 && now.getTime() < Date.parse(createdAt) + hideForMs;
}

async function cancelPayment(context: Context<Environment>, bank: BankParts): Promise<Response> {
  const cancellation = readCancellation(await readJson(context));
  if (cancellation.kind === "invalid") return malformed(context, cancellation.problems);
  const { key } = cancellation.value;
  const cancelled = bank.ledger.cancel({ key, createdAt: bank.now().toISOString() });
  switch (cancelled.kind) {
    case "cancelled":
      return context.json({ status: "cancelled", key });
    case "standing":
      return context.json({ code: "already_decided", ...cancelled.payment }, 409);
  }
}

async function replaceFaults(context: Context<Environment>, bank: BankParts): Promise<Response> {
  const faults = readFaults(await readJson(context));
  if (faults.kind === "invalid") return malformed(context, faults.problems);
  bank.desk.replace(faults.value);
  return context.json(faults.value);
}

function malformed(context: Context<Environment>, problems: readonly Problem[]): Response {
  const detail = problems.map((problem) => `${problem.field} ${problem.detail}`).join("; ");
  return context.json({ code: "malformed", detail, problems }, 400);
}

// A body that is not JSON is read as `undefined`, which no JSON text can mean.
async function readJson(context: Context<Environment>): Promise<unknown> {
  const body = await context.req.text();
  try {
    return JSON.parse(body);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function cut(socket: Socket): Response {
  socket.destroy();
  return RESPONSE_ALREADY_SENT;
}

// Goes on although the client may have left: a payment on its way is not called back by hanging up.
function pause(durationMs: number, closing: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      closing.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, durationMs);
    closing.addEventListener("abort", end);
    if (closing.aborted) end();
  });
}
