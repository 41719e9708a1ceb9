/** The names of what the migrations make, quoted, in the schema that the user chose. */
export interface Tables {
  readonly records: string;
  readonly attempts: string;
  readonly audit: string;
  readonly beats: string;
  readonly migrations: string;
  /** The functions about one record. */
  readonly look: string;
  readonly claim: string;
  readonly claimable: string;
  readonly hold: string;
  readonly replace: string;
  readonly conclude: string;
}

export function tablesIn(schema: string | null): Tables {
  const prefix = schema === null ? "" : `${quoted(schema)}.`;
  return {
    records: `${prefix}oncekey_records`,
    attempts: `${prefix}oncekey_attempts`,
    audit: `${prefix}oncekey_audit`,
    beats: `${prefix}oncekey_beats`,
    migrations: `${prefix}oncekey_migrations`,
    look: `${prefix}oncekey_look`,
    claim: `${prefix}oncekey_claim`,
    claimable: `${prefix}oncekey_claimable`,
    hold: `${prefix}oncekey_hold`,
    replace: `${prefix}oncekey_replace`,
    conclude: `${prefix}oncekey_conclude`,
  };
}

export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
