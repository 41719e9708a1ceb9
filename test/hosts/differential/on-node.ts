import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { protect } from "../../../src/http/node.ts";
import { listening } from "../hosts.ts";
import { playNative } from "./playing.ts";
import { type DifferentialHost, type DifferentialSite, OPTIONS } from "./site.ts";

export const nodeHost: DifferentialHost = {
  name: "node:http",
  share: 1,
  ways: [],
  native: true,
  framesAnew: false,
  hearsThrows: true,
  dropsEmpty: false,
  serve: async (site) => {
    const kept = protect(site.engine, OPTIONS, handlerOf(site));
    const bare = withErrorPage(handlerOf(site));
    const server = createServer((request, response) => {
      void (request.url?.startsWith("/kept/") ? kept(request, response) : bare(request, response));
    });
    return await listening(server.listen(0, "127.0.0.1"));
  },
};

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

function handlerOf(site: DifferentialSite): Handler {
  return ({ method = "", url = "" }, response) => {
    const script = site.enter(method, url);
    if (script.kind === "own") throw new TypeError("There are no own ways here.");
    return playNative(script, response);
  };
}

/** A bare server has no error page: this is the one that `protect` promises. */
function withErrorPage(handler: Handler): Handler {
  return async (request, response) => {
    try {
      await handler(request, response);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const said = "status" in error ? Number(error.status) : 500;
      const text = said < 500 ? error.message : (STATUS_CODES[said] ?? "");
      response.setHeader("content-type", "text/plain; charset=utf-8");
      response.setHeader("content-length", String(Buffer.byteLength(text)));
      response.statusCode = said;
      response.statusMessage = "";
      response.end(text);
    }
  };
}
