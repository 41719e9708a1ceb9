import type { Hono } from "hono";
import { type Settling, workersHealth } from "oncekey";
import type { AppParts } from "./app.ts";
import { problemResponse } from "./problem.ts";

/** What machines ask that watch over the service; nobody needs a token for it. */
export function mountMonitoring<Tx, Settles extends Settling>(
  app: Hono,
  { engine, metrics, tell }: AppParts<Tx, Settles>,
): void {
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    try {
      await engine.store.check();
      const workers = await workersHealth(engine);
      return c.json({ status: "ready", store: engine.store.name, workers });
    } catch (error) {
      tell(error);
      return problemResponse(NOT_READY);
    }
  });
  app.get("/metrics", async (c) =>
    c.body(await metrics.metrics(), 200, { "content-type": metrics.contentType }),
  );
}

const NOT_READY = {
  status: 503,
  code: "not_ready",
  title: "The service cannot do its work now",
  detail: "Its database cannot be reached or cannot be written to.",
};
