import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import {
  type ArgumentsHost,
  BadRequestException,
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Header,
  HttpException,
  Injectable,
  Patch,
  type PipeTransform,
  Post,
  Put,
  Req,
  Res,
  Sse,
  StreamableFile,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common";
import compression from "compression";
import type { FastifyReply } from "fastify";
import { finalize, map, of, retry, tap } from "rxjs";
import { afterEach, describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { Attempt, Idempotent, idempotency, OncekeyModule } from "../../src/http/nest.ts";
import type { RunContext } from "../../src/http/route.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { principal } from "./hono-app.ts";
import { assertFirst, assertReplay, json, problemOf } from "./laws/said.ts";
import { closeNest, PLATFORMS, type PlatformName, startNest } from "./nest-app.ts";
import { call, linesOf, send } from "./wire.ts";

interface Charge {
  readonly amount?: number;
}

afterEach(closeNest);

const onBoth = (name: string, check: (platform: PlatformName) => Promise<void>) =>
  test.each(PLATFORMS)(`on %s ${name}`, check);

describe("guards and pipes come before protection", () => {
  onBoth("a body that is refused by a pipe never reaches the store, and may be mended", async (platform) => {
    const amounts: unknown[] = [];
    @Injectable()
    class Valid implements PipeTransform {
      transform({ amount }: Charge): Charge {
        if (typeof amount !== "number") throw new BadRequestException("amount is no number");
        return { amount };
      }
    }
    @Controller("charges")
    class Charges {
      @Post()
      @Idempotent()
      charge(@Body(Valid) charge: Charge) {
        amounts.push(charge.amount);
        return charge;
      }
    }
    const { sent, state } = await startNest(platform, { controllers: [Charges] });
    for (const _ of [1, 2]) {
      const refused = await sent({ amount: "x" });
      expect([refused.status, linesOf(refused, "idempotent-replayed")]).toEqual([400, []]);
    }
    expect(await state()).toBeUndefined();
    const first = await sent({ amount: 5, more: 1 });
    assertFirst(first, 201);
    expect(first.body.toString()).toBe('{"amount":5}');
    assertReplay(first, await sent({ amount: 5, more: 1 }));
    problemOf(await sent({ amount: 6 }), "key_reused", { effect: "done" });
    expect(amounts).toEqual([5]);
  });

  onBoth("SE-03: a kept answer is given to nobody whom a guard refuses", async (platform) => {
    let refuses: HttpException | null = null;
    const guard: CanActivate = {
      canActivate: () => {
        if (refuses !== null) throw refuses;
        return true;
      },
    };
    @Controller("charges")
    class Charges {
      @Post()
      @UseGuards(guard)
      @Idempotent()
      charge() {
        return { secret: 1 };
      }
    }
    const { sent } = await startNest(platform, { controllers: [Charges] });
    const first = await sent();
    assertReplay(first, await sent());
    for (const refusal of [new ForbiddenException(), new UnauthorizedException()]) {
      refuses = refusal;
      const answer = await sent();
      expect([answer.status, answer.body.toString()]).toEqual([
        refusal.getStatus(),
        expect.not.stringContaining("secret"),
      ]);
    }
    refuses = null;
    assertReplay(first, await sent());
  });

  onBoth("the principal is what the guard made of the caller", async (platform) => {
    const guard: CanActivate = {
      canActivate: (context) => {
        Object.assign(context.switchToHttp().getRequest(), { user: { id: "bob" } });
        return true;
      },
    };
    @Controller("charges")
    class Charges {
      @Post()
      @UseGuards(guard)
      @Idempotent({ principal: ({ user }: { readonly user?: { readonly id: string } }) => user?.id })
      charge() {
        return {};
      }
    }
    const { sent, state } = await startNest(platform, { controllers: [Charges] });
    const first = await sent();
    assertFirst(first, 201);
    assertReplay(first, await sent());
    expect(await state()).toBeUndefined(); // of the module's principal
  });
});

describe("interceptors stand around protection", () => {
  onBoth("a copy passes them, and what they make of it is not sent", async (platform) => {
    const seen: unknown[] = [];
    const envelope = {
      intercept: (_context: ExecutionContext, next: CallHandler) =>
        next.handle().pipe(
          tap((value) => seen.push(value)),
          map(({ id }) => ({ data: id })),
          finalize(() => seen.push("over")),
        ),
    };
    const errors: unknown[] = [];
    let ids = 0;
    @Controller("charges")
    @UseInterceptors(envelope)
    class Charges {
      @Post()
      @Idempotent()
      charge() {
        ids += 1;
        return { id: ids };
      }
    }
    const { sent, complaints } = await startNest(platform, {
      controllers: [Charges],
      set: (app) => app.useGlobalFilters({ catch: (error: unknown) => errors.push(error) }),
    });
    const first = await sent();
    expect(first.body.toString()).toBe('{"data":1}');
    assertReplay(first, await sent());
    problemOf(await sent({ other: 1 }), "key_reused", { effect: "done" });
    expect(seen).toEqual([
      ...[{ id: 1 }, "over"],
      ...[{ data: 1 }, "over"],
      ...[expect.objectContaining({ code: "key_reused" }), "over"],
    ]);
    expect([...errors, ...complaints]).toEqual([]);
  });

  onBoth("a layer beneath Nest may take its time over sending a copy", async (platform) => {
    @Controller("charges")
    class Charges {
      @Post()
      @Idempotent()
      charge() {
        return { text: "x".repeat(10_000) };
      }
    }
    const slowly = async (_request: unknown, reply: { header: (name: string, value: string) => unknown }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      reply.header("x-layer", "1");
    };
    const { sent, complaints } = await startNest(platform, {
      controllers: [Charges],
      set: (app) => {
        if (platform === "express") app.use(compression());
        else app.getHttpAdapter().getInstance().addHook("onSend", slowly);
      },
    });
    const accept = [["Accept-Encoding", "gzip"]] as const;
    const answers = [await sent({}, accept), await sent({}, accept), await sent({ other: 1 }, accept)];
    expect(answers.map(({ status, complete }) => [status, complete])).toEqual([
      [201, true],
      [201, true],
      [422, true],
    ]);
    const [first, copy] = answers.map(({ body }) => body.toString("latin1"));
    expect(copy).toBe(first);
    const layers = answers.map((answer) => [
      ...linesOf(answer, "x-layer"),
      ...linesOf(answer, "content-encoding"),
    ]);
    expect(layers).toEqual(platform === "express" ? [["gzip"], ["gzip"], []] : [["1"], ["1"], ["1"]]);
    expect(complaints).toEqual([]);
  });

  onBoth("headers that stood before the handler are each exchange's own", async (platform) => {
    let exchanges = 0;
    const layer = {
      intercept: (context: ExecutionContext, next: CallHandler) => {
        exchanges += 1;
        context.switchToHttp().getResponse().header("x-exchange", String(exchanges));
        return next.handle();
      },
    };
    @Controller("charges")
    class Charges {
      @Post()
      @Header("x-constant", "1")
      @UseInterceptors(layer)
      @Idempotent()
      charge() {
        return {};
      }
    }
    const { sent } = await startNest(platform, { controllers: [Charges] });
    const answers = [await sent(), await sent(), await sent({ other: 1 })];
    expect(answers.map((answer) => linesOf(answer, "x-exchange"))).toEqual([["1"], ["2"], ["3"]]);
    for (const answer of answers) expect(linesOf(answer, "x-constant")).toEqual(["1"]);
  });

  onBoth(
    "one hears of the end of a handler that answers by itself no sooner than it ends",
    async (platform) => {
      const seen: string[] = [];
      const watching = {
        intercept: (_context: ExecutionContext, next: CallHandler) =>
          next.handle().pipe(finalize(() => seen.push("over"))),
      };
      let end = () => {};
      const ending = new Promise<void>((resolve) => {
        end = resolve;
      });
      @Controller("charges")
      class Charges {
        @Post()
        @UseInterceptors(watching)
        @Idempotent()
        async charge(@Res() response: ServerResponse & { readonly raw?: ServerResponse }) {
          const { raw = response } = response;
          raw.write("a");
          await ending;
          seen.push("handled");
          raw.end("b");
        }
      }
      const { port, state } = await startNest(platform, { controllers: [Charges] });
      const asked = call(port, { target: "/charges", headers: [["Idempotency-Key", "k"]] });
      await expect.poll(asked.sofar).toContain("a");
      await new Promise((resolve) => setTimeout(resolve, 20));
      end();
      expect((await asked.answer).body.toString()).toBe("ab");
      await expect.poll(() => seen).toEqual(["handled", "over"]);
      expect(await state()).toBe("completed");
    },
  );

  onBoth("one hears of the end of a copy whose client has hung up meanwhile", async (platform) => {
    const seen: string[] = [];
    const watching = {
      intercept: (_context: ExecutionContext, next: CallHandler) =>
        next.handle().pipe(finalize(() => seen.push("over"))),
    };
    let goOn = () => {};
    let going = Promise.resolve();
    const slowly = async () => {
      seen.push("asked");
      await going;
      return "alice";
    };
    @Controller("charges")
    class Charges {
      @Post()
      @UseInterceptors(watching)
      @Idempotent({ principal: slowly })
      charge() {
        return {};
      }
    }
    const { port, sent } = await startNest(platform, { controllers: [Charges] });
    assertFirst(await sent(), 201);
    going = new Promise((resolve) => {
      goOn = resolve;
    });
    const copy = call(port, { target: "/charges", ...json("k", { a: 1 }) });
    await expect.poll(() => seen).toEqual(["asked", "over", "asked"]);
    copy.hangUp();
    await copy.answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
    goOn();
    await expect.poll(() => seen).toEqual(["asked", "over", "asked", "over"]);
  });

  onBoth("one that asks the handler again does not make it run again", async (platform) => {
    let runs = 0;
    const again = {
      intercept: (_context: ExecutionContext, next: CallHandler) => next.handle().pipe(retry(2)),
    };
    @Controller("charges")
    class Charges {
      @Post()
      @UseInterceptors(again)
      @Idempotent()
      charge() {
        runs += 1;
        throw new HttpException("busy", 502);
      }
    }
    const { sent, state } = await startNest(platform, { controllers: [Charges] });
    expect((await sent()).status).toBe(500);
    problemOf(await sent(), "outcome_unknown", { retry: "never" });
    expect([runs, await state()]).toEqual([1, "unknown"]);
  });

  onBoth("a timeout's answer is not the handler's: nothing runs again", async (platform) => {
    let runs = 0;
    const impatient = {
      intercept: async (_context: ExecutionContext, next: CallHandler) => {
        const late = new Promise<never>((_resolve, reject) => {
          setTimeout(() => reject(new HttpException("too slow", 503)), 30);
        });
        const value: unknown = await Promise.race([lastOf(next), late]);
        return of(value);
      },
    };
    @Controller("charges")
    class Charges {
      @Post()
      @UseInterceptors(impatient)
      @Idempotent()
      async charge() {
        runs += 1;
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
    }
    const { sent, state } = await startNest(platform, { controllers: [Charges] });
    const first = await sent();
    expect([first.status, linesOf(first, "idempotency-status")]).toEqual([503, ["unknown"]]);
    problemOf(await sent(), "outcome_unknown", { retry: "never" });
    expect([runs, await state()]).toEqual([1, "unknown"]);
  });
});

function lastOf(next: CallHandler): Promise<unknown> {
  return new Promise((resolve, reject) => {
    next.handle().subscribe({ next: resolve, error: reject });
  });
}

describe("exception filters stand around protection", () => {
  onBoth(
    "an error without a status leaves an unknown outcome, and the filter's page says so",
    async (platform) => {
      const errors: unknown[] = [];
      const page = {
        catch: (error: unknown, host: ArgumentsHost) => {
          errors.push(error);
          host.switchToHttp().getResponse().status(418).send({ page: 1 });
        },
      };
      const lost = new Error("The connection broke off.");
      @Controller("charges")
      class Charges {
        @Post()
        @Idempotent()
        charge() {
          throw lost;
        }
      }
      const { sent, state } = await startNest(platform, {
        controllers: [Charges],
        set: (app) => app.useGlobalFilters(page),
      });
      const first = await sent();
      expect([first.status, first.body.toString(), linesOf(first, "idempotency-status")]).toEqual([
        418,
        '{"page":1}',
        ["unknown"],
      ]);
      problemOf(await sent(), "outcome_unknown", { retry: "never" });
      expect([errors, await state()]).toEqual([[lost], "unknown"]);
    },
  );

  onBoth("a file that breaks off is not taken for whole", async (platform) => {
    let fail = () => {};
    const failing = new Promise<void>((resolve) => {
      fail = resolve;
    });
    async function* broken() {
      yield Buffer.from("half");
      await failing;
      throw new Error("The disk is gone.");
    }
    @Controller("charges")
    class Charges {
      @Post()
      @Idempotent()
      charge() {
        // As releases of Nest did before they cut such an answer off.
        return new StreamableFile(Readable.from(broken())).setErrorHandler((_error, response) =>
          response.end(),
        );
      }
    }
    const { port, state } = await startNest(platform, { controllers: [Charges] });
    const asked = call(port, { target: "/charges", headers: [["Idempotency-Key", "k"]] });
    await expect.poll(asked.sofar).toContain("half");
    fail();
    expect((await asked.answer).complete).toBe(false);
    expect(await state()).toBe("unknown");
  });
});

describe("what is made wrong is said when Nest starts", () => {
  const controllerOf = (options: Parameters<typeof Idempotent>[0]) => {
    @Controller("charges")
    class Charges {
      @Post()
      @Idempotent(options)
      charge() {
        return {};
      }
    }
    return Charges;
  };
  const engineOf = () => createEngine({ store: memoryStore() });

  onBoth("a bad option, and no principal", async (platform) => {
    const wrong = startNest(platform, { controllers: [controllerOf({ effects: "transaction" })] });
    await expect(wrong).rejects.toMatchObject({ code: "configuration", field: "effects" });
    const nobody = startNest(platform, {
      controllers: [controllerOf({})],
      shared: [OncekeyModule.forRoot({ engine: engineOf() })],
    });
    await expect(nobody).rejects.toMatchObject({ code: "configuration", field: "principal" });
  });

  onBoth("a module that was forgotten", async (platform) => {
    const forgotten = startNest(platform, { controllers: [controllerOf({})], shared: [] });
    await expect(forgotten).rejects.toThrow(/OncekeyModule\.forRoot/);
  });

  onBoth("settings may be made of what is injected", async (platform) => {
    const { sent } = await startNest(platform, {
      controllers: [controllerOf({})],
      shared: [
        OncekeyModule.forRootAsync({
          imports: [
            {
              module: class Names {},
              providers: [{ provide: "name", useValue: "alice" }],
              exports: ["name"],
            },
          ],
          inject: ["name"],
          useFactory: async (name: string) => ({ engine: engineOf(), principal: () => name }),
        }),
      ],
    });
    assertFirst(await sent(), 201);
  });

  onBoth("a parser that keeps no bytes: nothing runs", async (platform) => {
    const { sent, state } = await startNest(platform, { controllers: [controllerOf({})], rawBody: false });
    expect((await sent()).status).toBe(500);
    expect(await state()).toBeUndefined();
  });

  test("a call that is not Nest's runs nothing, and neither does a decorator on something else", async () => {
    const Charges = controllerOf({});
    await expect(new Charges().charge()).rejects.toThrow(ConfigurationError);
    expect(() => Idempotent()(class {}, "prototype", {})).toThrow(ConfigurationError);
  });
});

describe("the handler", () => {
  onBoth("is handed its attempt, itself, and its other parameters", async (platform) => {
    @Controller("charges")
    class Charges {
      readonly name = "till";
      @Idempotent()
      @Post()
      charge(
        @Attempt() { number, signal }: RunContext,
        @Body() { amount }: Charge,
        @Attempt() same: RunContext,
      ) {
        return { till: this.name, number, aborted: signal.aborted, amount, same: same.number };
      }
    }
    const { sent } = await startNest(platform, { controllers: [Charges] });
    const { till, amount, aborted, number, same } = JSON.parse((await sent({ amount: 3 })).body.toString());
    expect({ till, amount, aborted }).toEqual({ till: "till", amount: 3, aborted: false });
    expect(number).toBeGreaterThan(0);
    expect(same).toBe(number);
  });

  onBoth("runs to its end although its client hangs up, an Observable too", async (platform) => {
    let entered = () => {};
    const begun = new Promise<void>((resolve) => {
      entered = resolve;
    });
    @Controller("charges")
    class Charges {
      @Post()
      @Idempotent()
      async charge() {
        entered();
        await new Promise((resolve) => setTimeout(resolve, 100));
        return of({ id: 1 });
      }
    }
    const { port, sent, state } = await startNest(platform, { controllers: [Charges] });
    const asked = call(port, {
      target: "/charges",
      headers: [
        ["Idempotency-Key", "k"],
        ["Content-Type", "application/json"],
      ],
      body: '{"a":1}',
    });
    await begun;
    asked.hangUp();
    await expect.poll(state, { timeout: 5_000 }).toBe("completed");
    expect((await sent({ a: 1 })).body.toString()).toBe('{"id":1}');
  });
});

test("a handler on Fastify may wait for a stream that it has sent", async () => {
  let waited = false;
  @Controller("charges")
  class Charges {
    @Post()
    @Idempotent()
    async charge(@Res() reply: FastifyReply) {
      async function* pieces() {
        for (const piece of ["a", "b"]) {
          yield piece;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
      await reply.type("text/plain").send(Readable.from(pieces()));
      waited = true;
      return reply;
    }
  }
  const { sent } = await startNest("fastify", { controllers: [Charges] });
  const first = await sent();
  expect([first.body.toString(), first.complete, waited]).toEqual(["ab", true, true]);
  assertReplay(first, await sent());
});

describe("a mount for the whole application", () => {
  let runs = 0;
  @Controller("charges")
  class Charges {
    @Post()
    make() {
      runs += 1;
      return { runs };
    }
    @Patch()
    change() {
      return this.make();
    }
    @Put()
    put() {
      return this.make();
    }
    @Sse("events")
    events() {
      return of({ data: "a" }, { data: "b" });
    }
    @Get()
    read(@Req() { method }: { readonly method: string }) {
      return method;
    }
    @Post("own")
    @Idempotent({ required: true })
    own(@Attempt() { number }: RunContext) {
      return { number };
    }
  }
  const mounted = (platform: PlatformName) =>
    startNest(platform, {
      controllers: [Charges],
      set: (app, engine) => app.useGlobalInterceptors(idempotency(engine, { principal })),
    });

  onBoth("protects POST and PATCH, asks for no key, and leaves the rest alone", async (platform) => {
    runs = 0;
    const { sent, port, state } = await mounted(platform);
    for (const _ of [1, 2]) assertFirst(await sent({}, [], "PUT"), 200);
    expect(await state()).toBeUndefined();
    const first = await sent({});
    expect(first.body.toString()).toBe('{"runs":3}');
    assertReplay(first, await sent({}));
    problemOf(await sent({}, [], "PATCH"), "key_reused", { effect: "done" });
    for (const _ of [1, 2]) assertFirst(await send(port, { target: "/charges" }), 201);
    expect(runs).toBe(5);
    const events = await fetch(`http://127.0.0.1:${port}/charges/events`);
    expect(await events.text()).toMatch(/data: a\n\n.*data: b\n\n/s);
    expect((await send(port, { method: "GET", target: "/charges" })).body.toString()).toBe("GET");
  });

  onBoth("leaves a route that has protection of its own to it", async (platform) => {
    const { port } = await mounted(platform);
    problemOf(await send(port, { target: "/charges/own" }), "key_missing");
    const headers = [["Idempotency-Key", "own"]] as const;
    const first = await send(port, { target: "/charges/own", headers });
    assertFirst(first, 201);
    assertReplay(first, await send(port, { target: "/charges/own", headers }));
  });
});
