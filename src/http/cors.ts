import { EXPIRES_HEADER, KEY_HEADER, REPLAYED_HEADER, STATUS_HEADER } from "./exchange.ts";

/**
 * What a CORS policy must name (Fetch standard, CORS protocol) for a script of another origin to send a key and to see what
 * became of it: `allowHeaders` for `Access-Control-Allow-Headers`, `exposeHeaders` for `Access-Control-Expose-Headers`.
 * Add them to your own lists, in a CORS layer that stands before `protect`, so that refusals and replays pass it too.
 */
export const CORS_LISTS: CorsLists = Object.freeze({
  allowHeaders: Object.freeze([KEY_HEADER]),
  exposeHeaders: Object.freeze([REPLAYED_HEADER, EXPIRES_HEADER, STATUS_HEADER, "retry-after"]),
});

/** Names of headers in lower case. */
export interface CorsLists {
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
}
