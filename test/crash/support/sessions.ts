import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { onTestFinished } from "vitest";

/** Somebody who looks at the sessions of a database on a connection of their own. */
export interface Watch {
  /** Looks again and again until the work is over. */
  readonly during: <T>(work: Promise<T>) => Promise<T>;
  /** What was seen that should not be. */
  readonly seen: () => readonly unknown[];
  readonly looks: () => number;
}

/** Looks for sessions of which `condition` holds, in SQL over `pg_stat_activity`. */
export async function watchSessions(url: string, condition: string): Promise<Watch> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const text = `SELECT application_name, state, wait_event, query FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`;
  const seen: unknown[] = [];
  let looks = 0;
  const look = async () => {
    seen.push(...(await client.query(text)).rows);
    looks += 1;
  };
  return {
    during: async (work) => {
      let over = false;
      const end = work.finally(() => {
        over = true;
      });
      end.catch(() => {}); // thrown below, once nobody looks any more
      while (!over) {
        await look();
        await sleep(2);
      }
      return await end;
    },
    seen: () => seen,
    looks: () => looks,
  };
}
