import type { Database, Row } from "./driver.ts";
import type { Payment } from "./payment.ts";

/** Keeps, durably, at most one decision per key; nothing in it is ever changed or removed. */
export interface Ledger {
  /** Decides the key, unless it is decided already. */
  record(payment: Payment): Recorded;
  /** Closes the key to every later payment, unless it is decided already. */
  cancel(cancellation: { readonly key: string; readonly createdAt: string }): Cancelled;
  find(key: string): Payment | undefined;
  /** Every payment that moved money, in the order in which they were made. */
  accepted(): readonly Payment[];
  close(): void;
}

/** What stands under the key after a payment was brought. */
export type Recorded =
  | { readonly kind: "recorded"; readonly payment: Payment }
  | { readonly kind: "standing"; readonly payment: Payment }
  | { readonly kind: "cancelled" };

/** What stands under the key after its cancellation was brought. */
export type Cancelled =
  | { readonly kind: "cancelled" }
  | { readonly kind: "standing"; readonly payment: Payment };

/** A ledger in the given database. Key and decision are one row: the unique index decides every race. */
export function createLedger(database: Database): Ledger {
  database.exec(schema);
  const insertPayment = database.prepare(insertPaymentSql);
  const insertCancelled = database.prepare(insertCancelledSql);
  const select = database.prepare("SELECT * FROM entries WHERE key = $key");
  const selectAccepted = database.prepare(selectAcceptedSql);
  const standing = (key: string): Cancelled => {
    const payment = readPayment(select.get({ key }));
    return payment === undefined ? { kind: "cancelled" } : { kind: "standing", payment };
  };

  return {
    record(payment) {
      const { changes } = insertPayment.run({ ...payment });
      return Number(changes) === 1 ? { kind: "recorded", payment } : standing(payment.key);
    },
    cancel({ key, createdAt }) {
      const { changes } = insertCancelled.run({ key, createdAt });
      return Number(changes) === 1 ? { kind: "cancelled" } : standing(key);
    },
    find: (key) => readPayment(select.get({ key })),
    accepted: () => selectAccepted.all().flatMap((row) => readPayment(row) ?? []),
    close: () => database.close(),
  };
}

const schema = `
  CREATE TABLE IF NOT EXISTS entries (
    sequence   INTEGER PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    status     TEXT NOT NULL CHECK (status IN ('accepted', 'declined', 'cancelled')),
    id         TEXT UNIQUE,
    amount     TEXT,
    currency   TEXT,
    debtor     TEXT,
    creditor   TEXT,
    reference  TEXT,
    created_at TEXT NOT NULL
  ) STRICT`;

const insertPaymentSql = `
  INSERT INTO entries (id, status, key, amount, currency, debtor, creditor, reference, created_at)
  VALUES ($id, $status, $key, $amount, $currency, $debtor, $creditor, $reference, $createdAt)
  ON CONFLICT (key) DO NOTHING`;

const insertCancelledSql = `
  INSERT INTO entries (status, key, created_at)
  VALUES ('cancelled', $key, $createdAt)
  ON CONFLICT (key) DO NOTHING`;

const selectAcceptedSql = "SELECT * FROM entries WHERE status = 'accepted' ORDER BY sequence";

function readPayment(row: Row | undefined): Payment | undefined {
  if (row === undefined) return undefined;
  const status = text(row, "status");
  if (status !== "accepted" && status !== "declined") return undefined;
  return {
    id: text(row, "id"),
    status,
    key: text(row, "key"),
    amount: text(row, "amount"),
    currency: text(row, "currency"),
    debtor: text(row, "debtor"),
    creditor: text(row, "creditor"),
    reference: text(row, "reference"),
    createdAt: text(row, "created_at"),
  };
}

function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw new TypeError(`The bank's ledger is damaged: column ${column} holds no text. Restore its file.`);
}
