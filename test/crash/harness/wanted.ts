import { seededRandom } from "../../support/seed.ts";
import type { Asked } from "./history/history.ts";
import type { Plan } from "./plan.ts";

/** One request, and what may come of it. */
export interface Wanted extends Asked {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const PRINCIPALS = ["alice", "bob"] as const;
export const ACCOUNTS = 40;

/** How often each route is asked, of so many requests. */
const ROUTES = [
  ...["keyed", "keyed", "keyed", "keyed", "keyed", "keyed"],
  ...["transfer", "transfer", "transfer", "one", "one", "query", "blind", "blind"],
  ...["declared", "declared", "declared"],
] as const;

/** Of a request whose effects are declared, in their order. */
const STEPS = ["charge", "order", "receipt"] as const;

/** More than the servers ever let through. */
const TOO_MUCH = 20_000;

/** The request that has a name, the same each time; two callers use each key, each for a request of their own. */
export function wantedBy(name: string, { seed, forgets }: Pick<Plan, "seed" | "forgets">): Wanted {
  const number = Number(name.slice(name.indexOf("-") + 1));
  const random = seededRandom(seed + 7919 * (number + 1));
  random.below(2); // the first draws of neighbouring seeds are alike
  const route = random.pick(forgets ? ROUTES.filter((each) => each !== "declared") : ROUTES);
  const principal = number % 2 === 0 ? PRINCIPALS[0] : PRINCIPALS[1];
  const key = `key-${Math.floor(number / 2)}`;
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  const effect = route === "transfer" || route === "one" ? "local" : route;
  const amount = effect === "local" && random.below(12) === 0 ? TOO_MUCH : 1 + random.below(100);
  const mark = `${name} of ${principal}`;
  const body = { from, to, amount, mark };
  const steps = effect === "declared" ? STEPS : [];
  const whose = { principal, key, mark, path: `/${route}`, body, intent: JSON.stringify(body) };
  return { ...whose, effect, steps, done: [201], refused: [effect === "local" ? 422 : 402] };
}
