import { IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import {
  All,
  type ArgumentsHost,
  Controller,
  type DynamicModule,
  type INestApplication,
  Req,
  Res,
  StreamableFile,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import type { Settling } from "../../src/engine/returned.ts";
import { Attempt, Idempotent, OncekeyModule } from "../../src/http/nest.ts";
import type { RouteContext } from "../../src/http/route.ts";
import type { HostUnderTest, Site } from "./harness.ts";
import { listening } from "./hosts.ts";
import type { RequestView, Route } from "./law.ts";
import { begun, declaring, stepped, transacted } from "./native.ts";

/** A request of either platform: Express' own is still to be read, of Fastify's a parser has read the body. */
interface PlatformRequest extends Pick<IncomingMessage, "headers"> {
  readonly method: string;
  readonly body?: unknown;
}

/** What either platform's response has in common, and what only one of them has. */
interface PlatformResponse {
  readonly status: (status: number) => unknown;
  readonly raw?: ServerResponse;
  readonly getHeader: (name: string) => unknown;
  readonly header: (name: string, value: string | string[]) => unknown;
  readonly send: (payload?: unknown) => unknown;
}

const viewOf = (request: PlatformRequest): RequestView => ({
  method: request.method,
  header: (name) => request.headers[name.toLowerCase()]?.toString(),
  text: async () => (request instanceof IncomingMessage ? await text(request) : String(request.body ?? "")),
});

/** As handlers of Nest answer: a status and headers on the response, and a value that Nest sends. */
function answered(response: PlatformResponse, answer: Response): StreamableFile | undefined {
  response.status(answer.status);
  const headers = new Map<string, string[]>();
  for (const [name, value] of answer.headers) headers.set(name, [...(headers.get(name) ?? []), value]);
  for (const [name, [first = "", ...more]] of headers)
    response.header(name, more.length === 0 ? first : [first, ...more]);
  return answer.body === null ? undefined : new StreamableFile(Readable.fromWeb(answer.body));
}

type Handle<Tx, Settles extends Settling> = (
  request: RequestView,
  attempt: RouteContext<Tx, Settles>,
) => Promise<unknown>;

/** The options of a law's route, and what its handler comes to. */
function partsOf<Tx, Settles extends Settling>(site: Site<Tx, Settles>, route: Route) {
  const principal = (request: PlatformRequest) => site.principalOf(route, viewOf(request));
  const options = { ...route.settings, principal };
  const handled = (handle: Handle<Tx, Settles>, more: object = {}) => ({
    protection: Idempotent({ ...options, ...more }),
    handle,
  });
  switch (route.effects) {
    case undefined:
      return handled(async (request, attempt) => await route.handle(site.workOf(request, attempt)));
    case "declared":
      return handled(
        async (request, attempt) => await stepped(site, route, request, attempt),
        declaring(route),
      );
    case "begin":
      return handled(async (request, attempt) => await begun(site, route, request, attempt), {
        effectsBegin: true,
      });
    case "operation":
      return {
        protection: Idempotent(options, () => site.operationOf(route, viewOf)),
        handle: async () => undefined,
      };
    case "transaction": {
      const { effects, commits = "two" } = route;
      return handled(async (request, attempt) => await transacted(site, route, request, attempt), {
        effects,
        commits,
      });
    }
  }
}

/** A controller with a handler for each route of a law. */
function moduleOf<Tx, Settles extends Settling>(site: Site<Tx, Settles>): DynamicModule {
  const controllers = site.routes.map((route) => {
    const { protection, handle } = partsOf(site, route);
    class Laws {
      @All(route.path)
      @protection
      async serve(
        @Req() request: PlatformRequest,
        @Res({ passthrough: true }) response: PlatformResponse,
        @Attempt() attempt: RouteContext<Tx, Settles>,
      ) {
        const returned = await handle(viewOf(request), attempt);
        return returned instanceof Response ? answered(response, returned) : returned;
      }
    }
    Controller()(Laws);
    return Laws;
  });
  class Application {}
  return { module: Application, controllers, imports: [OncekeyModule.forRoot({ engine: site.engine })] };
}

/** Told of every error as an application's own filter is. */
const page = (onError: (error: unknown) => void) => ({
  catch: (error: unknown, host: ArgumentsHost) => {
    onError(error);
    const response = host.switchToHttp().getResponse<PlatformResponse>();
    response.status(500);
    response.header("content-type", "text/plain");
    response.send("Internal Server Error");
  },
});

const MUCH = 8 * 1024 * 1024;

async function serving(app: INestApplication, site: Pick<Site<never, never>, "onError">) {
  app.useGlobalFilters(page(site.onError));
  await app.listen(0, "127.0.0.1");
  const { port } = await listening(app.getHttpServer());
  return { port, close: () => app.close() };
}

const options = { rawBody: true, logger: false, forceCloseConnections: true } as const;

/** Nest on a platform; on Fastify with its raw bodies kept and every type of body read. */
export function nestOn(platform: "express" | "fastify"): HostUnderTest {
  const both = {
    lacks: ["returned answers", "damaged paths"],
    standsOnNode: true,
    alsoOn: "SQLite",
  } as const;
  switch (platform) {
    case "express":
      return {
        ...{ ...both, name: "Nest on Express" },
        serve: async (site) => {
          const adapter = new ExpressAdapter();
          const app = await NestFactory.create(moduleOf(site), adapter, { ...options, bodyParser: false });
          return await serving(app, site);
        },
      };
    case "fastify":
      return {
        ...{ ...both, name: "Nest on Fastify" },
        serve: async (site) => {
          const adapter = new FastifyAdapter();
          const app = await NestFactory.create<NestFastifyApplication>(moduleOf(site), adapter, options);
          app.getHttpAdapter().getInstance().removeAllContentTypeParsers();
          app.useBodyParser("*", { bodyLimit: MUCH });
          return await serving(app, site);
        },
      };
  }
}
