import { Hono } from "hono";
import type { Engine, Operation, Settling } from "oncekey";
import type { Registry } from "prom-client";
import type { Database } from "../database/database.ts";
import type { SettlementOrder } from "../domain/settlement.ts";
import { mountAccounts } from "./accounts.ts";
import { authenticated } from "./authentication.ts";
import { limitedBody } from "./body.ts";
import { mountMonitoring } from "./monitoring.ts";
import { type Problem, problemResponse } from "./problem.ts";
import { mountSettlements } from "./settlements.ts";
import { mountTransfers } from "./transfers.ts";

/** What the routes work with. */
export interface AppParts<Tx, Settles extends Settling> {
  readonly engine: Engine<Tx, Settles>;
  readonly database: Database<Tx, Settles>;
  readonly settling: Operation<SettlementOrder>;
  readonly principals: ReadonlyMap<string, string>;
  readonly metrics: Registry;
  readonly newId: () => string;
  /** Hears of errors that the caller is told nothing about. */
  readonly tell: (error: unknown) => void;
}

/** The service's routes. Whoever is not known gets no further than the door of those that are somebody's. */
export function createApp<Tx, Settles extends Settling>(parts: AppParts<Tx, Settles>): Hono {
  const app = new Hono();
  mountMonitoring(app, parts);
  const known = authenticated(parts.principals);
  for (const resource of ["/accounts", "/transfers", "/settlements"]) {
    app.use(resource, known, limitedBody());
    app.use(`${resource}/*`, known);
  }
  mountAccounts(app, parts);
  mountTransfers(app, parts);
  mountSettlements(app, parts);
  app.notFound(() => problemResponse(NO_SUCH_ROUTE));
  app.onError((error) => {
    parts.tell(error);
    return problemResponse(UNEXPECTED);
  });
  return app;
}

const NO_SUCH_ROUTE = {
  status: 404,
  code: "no_such_route",
  title: "There is no such route",
  detail: "There are /accounts, /transfers, /settlements, /healthz, /readyz and /metrics.",
};

const UNEXPECTED: Problem = {
  status: 500,
  code: "internal_error",
  title: "Something went wrong here",
  detail: "The operators have been told. Send the same request again later, with the same key.",
  effect: "maybe",
};
