/** The part of `pg` that the store uses, described so that nobody needs `pg` to compile against it. */

/** One statement; `types` takes the place of every type parser, those set for the whole process included. */
export interface PostgresQuery {
  readonly text: string;
  /** Mutable because `pg` declares it so; it is not changed. */
  readonly values?: unknown[];
  readonly types?: { readonly getTypeParser: () => (value: unknown) => string };
}

export interface PostgresResult {
  /** The first word of the command tag: the COMMIT of a failed transaction answers `ROLLBACK`. */
  readonly command: string;
  readonly rowCount: number | null;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** A connection: a client of `pg`, of its pool, or anything that answers like one. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<PostgresResult>;
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  /** Where it leads to; only for messages to people. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly user?: string | undefined;
  readonly database?: string | undefined;
}

type ErrorListener = (error: Error) => void;

/** What a client of a pool can do besides. */
export interface PooledClient {
  /** With an error the pool drops the connection instead of lending it again. */
  release(error?: Error): void;
  on(event: "error", listener: ErrorListener): unknown;
  off(event: "error", listener: ErrorListener): unknown;
}

/** The user's own pool; `Client` is what it lends, should the user want its type inside transactions. */
export interface PostgresPool<Client extends PostgresClient = PostgresClient> {
  connect(): Promise<Client & PooledClient>;
  on(event: "error", listener: ErrorListener): unknown;
  /** Told of each new connection before anybody is lent it. */
  on(event: "connect", listener: (client: Client & PooledClient) => void): unknown;
  off(event: "error", listener: ErrorListener): unknown;
  off(event: "connect", listener: (client: Client & PooledClient) => void): unknown;
  /** Of connections; a client has no such count, which tells the two apart. */
  readonly totalCount: number;
}

/** A pool as `pg` declares it, so that the type of its clients is known by itself. */
export interface PgPool<Client extends PostgresClient>
  extends Omit<PostgresPool<NoInfer<Client>>, "connect"> {
  connect(): Promise<Client & PooledClient>;
  connect(callback: (...lent: never[]) => void): void;
}
