import { serve } from "@hono/node-server";
import { protect } from "../../src/http/fetch.ts";
import { holdToLaws, listening, mountedBy, patternOf } from "./hosts.ts";

const mounted = mountedBy(protect, (request: Request) => {
  const { method, headers } = request;
  return { method, header: (name) => headers.get(name) ?? undefined, text: () => request.text() };
});

holdToLaws({
  name: "fetch",
  lacks: ["error page", "header lines"], // a Request has joined them
  serve: async (site) => {
    const routes = site.routes.map((route) => ({ ...route, serve: mounted(site, route) }));
    const fetch = async (request: Request) => {
      const { pathname } = new URL(request.url);
      const route = routes.find(({ path }) => patternOf(path).test(pathname));
      try {
        return (await route?.serve(request)) ?? new Response(null, { status: 404 });
      } catch (error) {
        site.onError(error);
        return new Response("Internal Server Error", { status: 500 });
      }
    };
    return await listening(serve({ fetch, port: 0, hostname: "127.0.0.1" }));
  },
});
