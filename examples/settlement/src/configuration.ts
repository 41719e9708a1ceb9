import { join, resolve } from "node:path";
import { type Durations, readDurations } from "./durations.ts";
import { bad, type Environment, type Parsed, type Variables, value, variablesOf } from "./variables.ts";

/**
 * Everything that can be set from outside. An empty variable is one that is not set; durations: `durations.ts`.
 *
 * | variable       | default                         | what it says                                                       |
 * | -------------- | ------------------------------- | ------------------------------------------------------------------ |
 * | `HOST`         | `127.0.0.1`                     | the address on which the service and the embedded bank listen      |
 * | `PORT`         | `3000`                          | the service's port; `0` takes any free one                         |
 * | `DATA_DIR`     | `./data`                        | where the embedded database and the embedded bank keep their files |
 * | `DATABASE_URL` | a SQLite file in `DATA_DIR`     | `sqlite:path` or `postgres://…`                                    |
 * | `BANK_URL`     | the embedded bank               | a bank that runs elsewhere                                         |
 * | `BANK_PORT`    | `PORT` + 1                      | the embedded bank's port; `0` takes any free one                   |
 * | `TOKENS`       | `demo-alice=alice,demo-bob=bob` | `token=principal,…`; must be set in production                     |
 * | `ADMIN_TOKEN`  | `demo-admin`                    | the operators' token; must be set in production                    |
 * | `WORKERS`      | `on`                            | `off` where `npm run worker` runs the workers in another process   |
 * | `NODE_ENV`     |                                 | `production` refuses the defaults of the two tokens                |
 */
export interface Configuration {
  readonly host: string;
  readonly port: number;
  readonly database: DatabasePlace;
  readonly bank: BankPlace;
  /** Where what a crash leaves is looked after; of this process only a server asks. */
  readonly workers: "here" | "elsewhere";
  /** Principals by their tokens. */
  readonly principals: ReadonlyMap<string, string>;
  /** A token that everybody knows anyway and that an example may show. */
  readonly demoToken: string | null;
  readonly adminToken: string;
  readonly durations: Durations;
}

export type DatabasePlace =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

export type BankPlace =
  | { readonly kind: "embedded"; readonly port: number; readonly dataDir: string }
  | { readonly kind: "elsewhere"; readonly url: string };

export type ConfigurationReading =
  | { readonly kind: "configuration"; readonly configuration: Configuration }
  | { readonly kind: "invalid"; readonly problems: readonly string[] };

/** Reads the environment; where anything in it cannot be used, says so of every such variable by its name. */
export function readConfiguration(environment: Environment): ConfigurationReading {
  const variables = variablesOf(environment);
  const { read } = variables;
  const dataDir = resolve(read("DATA_DIR", value, "./data"));
  const port = read("PORT", portIn, 3_000);
  const configuration = {
    host: read("HOST", value, "127.0.0.1"),
    port,
    database: read("DATABASE_URL", databaseIn, sqliteIn(join(dataDir, "settlement.sqlite"))),
    bank: readBank(variables, { port, dataDir }),
    workers: read("WORKERS", workersIn, "here"),
    ...readTokens(variables),
    durations: readDurations(variables),
  };
  const problems = variables.problems();
  return problems.length === 0 ? { kind: "configuration", configuration } : { kind: "invalid", problems };
}

function readBank(
  { read, refuse }: Variables,
  { port, dataDir }: { readonly port: number; readonly dataDir: string },
): BankPlace {
  const url = read("BANK_URL", bankUrlIn, null);
  const beside = port === 0 ? 0 : port < LAST_PORT ? port + 1 : port - 1;
  const bankPort = read("BANK_PORT", portIn, beside);
  if (url !== null) return { kind: "elsewhere", url };
  if (bankPort !== 0 && bankPort === port) refuse("BANK_PORT must be another port than PORT.");
  return { kind: "embedded", port: bankPort, dataDir };
}

function readTokens({
  read,
  refuse,
}: Variables): Pick<Configuration, "principals" | "demoToken" | "adminToken"> {
  const given = read("TOKENS", tokensIn, null);
  const givenAdmin = read("ADMIN_TOKEN", tokenIn, null);
  const production = read("NODE_ENV", value, "") === "production";
  if (production && given === null) refuse("TOKENS must be set in production: everybody knows its default.");
  if (production && givenAdmin === null)
    refuse("ADMIN_TOKEN must be set in production: everybody knows its default.");
  const principals = given ?? DEMO_PRINCIPALS;
  const adminToken = givenAdmin ?? "demo-admin";
  if (principals.has(adminToken)) refuse("ADMIN_TOKEN must be none of TOKENS.");
  return { principals, adminToken, demoToken: given === null ? "demo-alice" : null };
}

const LAST_PORT = 65_535;

const DEMO_PRINCIPALS: ReadonlyMap<string, string> = new Map([
  ["demo-alice", "alice"],
  ["demo-bob", "bob"],
]);

function portIn(text: string): Parsed<number> {
  const port = Number(text);
  return /^\d{1,5}$/.test(text) && port <= LAST_PORT
    ? value(port)
    : bad(`must be a port number from 0 to ${LAST_PORT}; got "${text}"`);
}

function workersIn(text: string): Parsed<Configuration["workers"]> {
  switch (text) {
    case "on":
      return value("here");
    case "off":
      return value("elsewhere");
  }
  return bad(`must be on or off; got "${text}"`);
}

function databaseIn(text: string): Parsed<DatabasePlace> {
  // Never shown: it may hold a password.
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case "sqlite":
      return sqlitePathIn(text.slice("sqlite:".length));
    case "postgres":
    case "postgresql":
      return URL.canParse(text) ? value({ kind: "postgres", url: text }) : bad("is no URL that can be read");
    case "mysql":
    case "mariadb":
      return bad("names a MySQL, which is not built yet: use sqlite:path or postgres://…");
  }
  return bad("must begin with sqlite: or postgres://");
}

function sqlitePathIn(text: string): Parsed<DatabasePlace> {
  const path = text.replace(/^\/\/(?=\/|\.)/, "");
  return path === "" || path === ":memory:"
    ? bad("must name a file after sqlite:, since what only memory holds would be forgotten")
    : value(sqliteIn(resolve(path)));
}

function sqliteIn(path: string): DatabasePlace {
  return { kind: "sqlite", path };
}

function bankUrlIn(text: string): Parsed<string> {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    return bad(`must be an http:// or https:// URL; got "${text}"`);
  }
  return value(text.replace(/\/+$/, ""));
}

/** The token may hold `=` at its end, the principal nowhere. */
function tokensIn(text: string): Parsed<ReadonlyMap<string, string>> {
  const principals = new Map<string, string>();
  for (const pair of text.split(",")) {
    const [, token, principal] = /^\s*([\w\-.~+/]+=*)=([^=]+?)\s*$/.exec(pair) ?? [];
    // Tokens are secrets: what is wrong is described, not repeated.
    if (token === undefined || principal === undefined) {
      return bad(
        "must be pairs token=principal with commas between them, the tokens of the characters A-Z a-z 0-9 - . _ ~ + /",
      );
    }
    if (principals.has(token)) return bad("names one token twice");
    principals.set(token, principal);
  }
  return value(principals);
}

function tokenIn(text: string): Parsed<string> {
  return /^[\w\-.~+/]+=*$/.test(text)
    ? value(text)
    : bad("must consist of the characters A-Z a-z 0-9 - . _ ~ + /");
}
