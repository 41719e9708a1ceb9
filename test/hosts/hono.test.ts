import { serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { protect } from "../../src/http/hono.ts";
import { holdToLaws, listening, mountedBy } from "./hosts.ts";

const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

const mounted = mountedBy(protect, ({ req }: Context) => {
  return { method: req.method, header: (name) => req.header(name), text: () => req.text() };
});

holdToLaws({
  name: "Hono",
  lacks: [],
  serve: async (site) => {
    const app = new Hono();
    for (const route of site.routes) app.on(METHODS, route.path, mounted(site, route));
    app.onError((error, c) => {
      site.onError(error);
      return c.text("Internal Server Error", 500);
    });
    return await listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
});
