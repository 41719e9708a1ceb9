import type { Context, Handler } from "hono";
import { principalOf } from "./authentication.ts";
import { problemResponse } from "./problem.ts";

/** Names one thing of one caller. */
export interface Own {
  readonly id: string;
  readonly owner: string;
}

/** Shows callers what is theirs; what is somebody else's they cannot tell from what does not exist. */
export function shown<Thing>({
  what,
  find,
  view,
}: {
  readonly what: string;
  readonly find: (own: Own) => Promise<Thing | null>;
  readonly view: (thing: Thing) => object;
}): Handler {
  return async (c: Context) => {
    const id: string = c.req.param("id") ?? "";
    const thing = ID.test(id) ? await find({ id, owner: principalOf(c) }) : null;
    return thing === null ? problemResponse(notFound(what)) : c.json(view(thing));
  };
}

/** No id looks otherwise, and what does could be a text that no database takes. */
const ID = /^[\w-]{1,64}$/;

function notFound(what: string) {
  return {
    status: 404,
    code: "not_found",
    title: "There is no such thing",
    detail: `There is no ${what} of yours.`,
  };
}
