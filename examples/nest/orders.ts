import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Body, type CanActivate, Controller, type DynamicModule, Post, Req } from "@nestjs/common";
import { APP_GUARD } from "@nestjs/core";
import type { Engine } from "oncekey";
import { Attempt, Idempotent, type KeptAnswer, OncekeyModule, type TransactionContext } from "oncekey/nest";
import type { SqliteConnection } from "oncekey/sqlite";

interface Request {
  readonly headers: IncomingHttpHeaders;
  caller?: string | undefined;
}

/** An order is placed once: a row of `orders (id, owner, item)`, in one commit with its answer. */
@Controller("orders")
class Orders {
  @Post()
  @Idempotent({ effects: "transaction" })
  place(
    @Body() { item }: { readonly item: string },
    @Req() { caller = "" }: Request,
    @Attempt() { transaction }: TransactionContext<SqliteConnection, "sync">,
  ): Promise<KeptAnswer> {
    const id = randomUUID();
    return transaction((tx) => {
      tx.prepare("INSERT INTO orders (id, owner, item) VALUES (?, ?, ?)").run(id, caller, item);
      return { status: 201, headers: { location: `/orders/${id}` }, json: { id, item } };
    });
  }
}

class Shop {}

/** For `NestFactory.create(createModule(parts), { rawBody: true })`: a request is compared by the bytes of its body. */
export function createModule({ engine, tokens }: Parts): DynamicModule {
  const known: CanActivate = {
    canActivate: (context) => {
      const request = context.switchToHttp().getRequest<Request>();
      request.caller = tokens.get(request.headers.authorization?.slice("Bearer ".length) ?? "");
      return request.caller !== undefined;
    },
  };
  return {
    module: Shop,
    imports: [OncekeyModule.forRoot({ engine, principal: ({ caller }: Request) => caller })],
    controllers: [Orders],
    providers: [{ provide: APP_GUARD, useValue: known }],
  };
}

export interface Parts {
  readonly engine: Engine<SqliteConnection, "sync">;
  /** Principals by their tokens. */
  readonly tokens: ReadonlyMap<string, string>;
}
