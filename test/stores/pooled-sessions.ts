import { Client } from "pg";

/** What a session of the server carries from one transaction to the next. */
export interface SessionState {
  readonly pid: number;
  /** Every setting of the session. */
  readonly settings: Readonly<Record<string, string>>;
  /** Names of statements prepared in it. */
  readonly prepared: readonly string[];
  /** Channels that it listens to. */
  readonly channels: readonly string[];
  /** Tables that only it can see. */
  readonly temporary: readonly string[];
}

/** Looks at every session of a pooler in transaction mode, which hands out another to each transaction that is open. */
export async function pooledSessions({
  url,
  poolSize,
}: {
  readonly url: string;
  readonly poolSize: number;
}): Promise<readonly SessionState[]> {
  const lookers = Array.from({ length: poolSize }, () => looker(url));
  const states: SessionState[] = [];
  try {
    for (const client of lookers) {
      await client.connect();
      await client.query("begin");
    }
    for (const client of lookers) states.push((await client.query<SessionState>(STATE)).rows[0] ?? nothing());
    for (const client of lookers) await client.query("commit");
  } finally {
    for (const client of lookers) await client.end();
  }
  return states.toSorted((one, other) => one.pid - other.pid);
}

/** The statements among these texts whose work would outlive the transaction that they are in. */
export function outliving(texts: readonly string[]): readonly string[] {
  return texts
    .flatMap((text) => text.split(";"))
    .map((statement) => statement.trim())
    .filter((statement) => OUTLIVES_BY_ITS_FIRST_WORD.test(statement) || OUTLIVES_BY_A_CALL.test(statement));
}

const OUTLIVES_BY_ITS_FIRST_WORD =
  /^(set\s+(?!local\b|transaction\b)|reset\b|discard\b|listen\b|unlisten\b|prepare\b|deallocate\b|load\b|create\s+(local\s+|global\s+)?temp)/i;

const OUTLIVES_BY_A_CALL = /\bpg_(try_)?advisory_lock|\bset_config\s*\([^)]*,\s*false\s*\)/i;

const STATE = `select pg_backend_pid() as pid,
  (select json_object_agg(name, setting) from pg_settings) as settings,
  (select coalesce(json_agg(name), '[]') from pg_prepared_statements) as prepared,
  (select coalesce(json_agg(channel), '[]') from pg_listening_channels() as channel) as channels,
  (select coalesce(json_agg(relname), '[]') from pg_class where relnamespace = pg_my_temp_schema()) as temporary`;

/** All have one name, for a pooler carries that over into the session. */
function looker(url: string): Client {
  const client = new Client({ connectionString: url, application_name: "looker" });
  client.on("error", () => {}); // whatever it asks next says what happened
  return client;
}

function nothing(): never {
  throw new Error("A select without a table returned no row.");
}
