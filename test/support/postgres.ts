import { Client } from "pg";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";

/** What a run knows about PostgreSQL: a server it may use, or why there is none. */
export type PostgresService =
  | { readonly kind: "running"; readonly url: string; readonly version: string; readonly origin: string }
  | { readonly kind: "missing"; readonly reason: string };

/** A service together with what ends it; ending a server this run did not start does nothing. */
export type HeldPostgres = { readonly service: PostgresService; readonly stop: () => Promise<void> };

declare module "vitest" {
  interface ProvidedContext {
    readonly postgres: PostgresService;
  }
}

/**
 * Uses the server at `url` when there is one, else starts a private server from npm's binaries.
 * A `url` that does not answer is an error, never a reason to test less than was asked for.
 */
export async function holdPostgres({ url }: { readonly url: string | undefined }): Promise<HeldPostgres> {
  if (url !== undefined && url !== "") {
    const version = await serverVersion(url);
    const origin = `the server at ${new URL(url).host}, from TEST_POSTGRES_URL`;
    return { service: { kind: "running", url, version, origin }, stop: async () => {} };
  }
  try {
    const server = await startEmbeddedPostgres();
    const version = await serverVersion(server.url);
    const origin = "a private server from embedded-postgres, started for this run";
    return { service: { kind: "running", url: server.url, version, origin }, stop: server.stop };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { service: { kind: "missing", reason }, stop: async () => {} };
  }
}

async function serverVersion(url: string): Promise<string> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const { rows } = await client.query<{ server_version: string }>("show server_version");
    return rows[0]?.server_version ?? "of unknown version";
  } finally {
    await client.end();
  }
}
