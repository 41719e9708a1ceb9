/** One step of the service's own tables; a step that was released is never changed again. */
export interface SchemaStep {
  readonly version: number;
  readonly sqlite: string;
  readonly postgres: string;
}

/** Where the applied steps are noted, in both dialects alike. */
export const STEPS_TABLE =
  "CREATE TABLE IF NOT EXISTS settlement_schema (version INTEGER NOT NULL PRIMARY KEY)";

/** Where the dialects differ. */
interface Dialect {
  readonly minorUnits: string;
  readonly bytes: string;
  readonly ascending: string;
  readonly now: string;
  readonly end: string;
}

const SQLITE: Dialect = {
  minorUnits: "INTEGER NOT NULL",
  bytes: "BLOB",
  ascending: "INTEGER PRIMARY KEY",
  now: "TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
  end: "STRICT",
};

const POSTGRES: Dialect = {
  minorUnits: "BIGINT NOT NULL",
  bytes: "BYTEA",
  ascending: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  now: "TIMESTAMPTZ NOT NULL DEFAULT now()",
  end: "",
};

/**
 * An account's balance is its opening balance and its entries; the two entries of a transfer cancel out. No constraint
 * can say that, so the transfer's own transaction does; that nothing goes below zero, one can.
 */
const money = ({ minorUnits, now, end }: Dialect): string => `
CREATE TABLE accounts (
  id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  currency TEXT NOT NULL,
  opening_balance ${minorUnits} CHECK (opening_balance >= 0),
  balance ${minorUnits} CHECK (balance >= 0),
  created_at ${now}
) ${end};

CREATE TABLE transfers (
  id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  from_account TEXT NOT NULL REFERENCES accounts (id),
  to_account TEXT NOT NULL REFERENCES accounts (id),
  amount ${minorUnits} CHECK (amount > 0),
  currency TEXT NOT NULL,
  created_at ${now},
  CHECK (from_account <> to_account)
) ${end};

CREATE TABLE entries (
  transfer_id TEXT NOT NULL REFERENCES transfers (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  amount ${minorUnits} CHECK (amount <> 0),
  PRIMARY KEY (transfer_id, account_id)
) ${end};
CREATE INDEX entries_of_account ON entries (account_id);
`;

/** Only what the bank has decided has the bank's reference. */
const settlements = ({ minorUnits, ascending, now, end }: Dialect): string => `
CREATE TABLE settlements (
  number ${ascending},
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'settled', 'declined', 'abandoned')),
  amount ${minorUnits} CHECK (amount > 0),
  currency TEXT NOT NULL,
  debtor TEXT NOT NULL,
  creditor TEXT NOT NULL,
  reference TEXT NOT NULL,
  external_reference TEXT,
  created_at ${now},
  CHECK ((status IN ('settled', 'declined')) = (external_reference IS NOT NULL))
) ${end};
CREATE INDEX settlements_of_owner ON settlements (owner, number);
`;

/**
 * A settlement names the record of its key, and no two name the same one: the last line of defence, should all others
 * fail. It outlives the record; rows of earlier releases name none.
 */
const records = ({ bytes }: Dialect): string => `
ALTER TABLE settlements ADD COLUMN record_id ${bytes} REFERENCES oncekey_records (id) ON DELETE SET NULL;
CREATE UNIQUE INDEX settlements_of_record ON settlements (record_id);
`;

/** Every step that there is, in the order in which they are applied. */
export const SCHEMA: readonly SchemaStep[] = [
  {
    version: 1,
    sqlite: money(SQLITE) + settlements(SQLITE),
    postgres: money(POSTGRES) + settlements(POSTGRES),
  },
  { version: 2, sqlite: records(SQLITE), postgres: records(POSTGRES) },
];
