import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  type ExceptionFilter,
  Header,
  HttpCode,
  HttpException,
  Post,
  Redirect,
  Res,
  StreamableFile,
  type Type,
  UseFilters,
  UseInterceptors,
} from "@nestjs/common";
import { delay, map, of } from "rxjs";
import { afterEach, describe, expect, test } from "vitest";
import { Idempotent } from "../../src/http/nest.ts";
import { assertReplay } from "./laws/said.ts";
import { closeNest, PLATFORMS, startNest } from "./nest-app.ts";
import type { WireAnswer } from "./wire.ts";

/** What either platform's response has in common. */
interface PlatformResponse {
  readonly status: (status: number) => PlatformResponse;
  readonly header: (name: string, value: string) => PlatformResponse;
  readonly send: (payload?: unknown) => unknown;
}

/** What protects a handler, or does nothing. */
type Protection = ReturnType<typeof Idempotent>;

/** A controller that answers by what its method returns, with some decorators on it. */
const returning =
  (answer: () => unknown, ...decorators: readonly MethodDecorator[]) =>
  (protection: Protection): Type => {
    @Controller()
    class Charges {
      @Post("charges")
      @protection
      charge() {
        return answer();
      }
    }
    decorated(Charges, decorators);
    return Charges;
  };

function decorated({ prototype }: Type<{ charge: unknown }>, decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, "charge");
  if (descriptor === undefined) throw new Error("The controller has no such method.");
  for (const decorate of decorators) decorate(prototype, "charge", descriptor);
}

/** A controller that answers by the response. */
const responding =
  (answer: (response: PlatformResponse) => unknown, passthrough = false) =>
  (protection: Protection): Type => {
    @Controller()
    class Charges {
      @Post("charges")
      @protection
      charge(@Res({ passthrough }) response: PlatformResponse) {
        return answer(response);
      }
    }
    return Charges;
  };

@Catch(HttpException)
class Page implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<PlatformResponse>();
    response.status(error.getStatus()).header("x-page", "1").send({ said: error.message });
  }
}

const envelope = {
  intercept: (_context: unknown, next: CallHandler) => next.handle().pipe(map((data) => ({ data }))),
};

const declined = () => {
  throw new HttpException({ declined: "no money" }, 402);
};

const later = (milliseconds = 15) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const ways: readonly (readonly [name: string, controllerOf: (protection: Protection) => Type])[] = [
  ["an object", returning(() => ({ id: 1 }))],
  ["a promise of an object", returning(async () => ({ id: 1 }))],
  ["a text", returning(() => "made")],
  ["a number", returning(() => 7)],
  ["nothing", returning(() => undefined)],
  ["null", returning(async () => null)],
  ["an array", returning(() => [1, 2])],
  ["a status of its own", returning(() => ({ id: 1 }), HttpCode(202))],
  ["no content", returning(() => undefined, HttpCode(204))],
  ["headers of its own", returning(() => "<a/>", Header("Content-Type", "text/xml"), Header("X-Own", "1"))],
  ["a redirect", returning(() => undefined, Redirect("/charges/1", 303))],
  [
    "a redirect that it makes up",
    returning(() => ({ url: "/charges/2", statusCode: 307 }), Redirect("/none")),
  ],
  ["an Observable", returning(() => of({ id: 1 }, { id: 2 }).pipe(delay(5)))],
  ["a promise of an Observable", returning(async () => of("made"))],
  ["a file of bytes", returning(() => new StreamableFile(Uint8Array.of(0, 255, 1), { type: "image/png" }))],
  ["a file that is read", returning(() => new StreamableFile(createReadStream(new URL(import.meta.url))))],
  ["a file in slow pieces", returning(() => new StreamableFile(Readable.from(slowly())))],
  ["an exception with a status", returning(declined)],
  ["an exception that a filter answers", returning(declined, UseFilters(Page))],
  ["an interceptor's envelope", returning(() => ({ id: 1 }), UseInterceptors(envelope))],
  [
    "the response, and a value",
    responding((response) => {
      response.status(202).header("x-own", "1");
      return { id: 1 };
    }, true),
  ],
  ["the response", responding((response) => void response.status(201).header("x-own", "1").send({ id: 1 }))],
  ["the response, returned", responding(async (response) => response.status(201).send({ id: 1 }))],
  [
    "the response, with a file",
    responding(async (response) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return response.status(200).send(Buffer.alloc(300_000, "x"));
    }),
  ],
  ["the response, later", responding((response) => void setTimeout(() => response.send("made"), 15))],
];

async function* slowly() {
  for (const piece of ["a", "b", "c"]) {
    yield Buffer.from(piece);
    await later();
  }
}

afterEach(closeNest);

describe.each(PLATFORMS)("Nest on %s: an answer is the bare application's own, and is kept", (platform) => {
  test.each(ways)("%s", async (_name, controllerOf) => {
    const bare = await startNest(platform, { controllers: [controllerOf(() => {})] });
    const kept = await startNest(platform, { controllers: [controllerOf(Idempotent())] });
    const expected = await bare.sent();
    const first = await kept.sent();
    expect(withoutOurs(first)).toEqual(withoutOurs(expected));
    assertReplay(first, await kept.sent());
  });
});

/** A date is each answer's own, and what we say of the key no bare application says. */
function withoutOurs({ headers, body, ...answer }: WireAnswer) {
  const own = headers.filter(([name]) => name !== "date" && !name.startsWith("idempotency-"));
  return { ...answer, body: body.toString("latin1"), headers: own };
}
