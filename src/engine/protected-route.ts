import type { OnAmbiguous } from "../core/decide.ts";
import type { Effects } from "../core/record.ts";

/** What a protected route says of itself: for health pages, and for whoever reviews what a service promises. */
export interface ProtectedRoute {
  /** `null` where requests are named after their own method and pattern. */
  readonly operation: string | null;
  readonly effects: Effects | "operation";
  readonly required: boolean;
  /** Why its callers share their keys; `null` where each has their own. */
  readonly sharedPrincipal: string | null;
  readonly onAmbiguous: OnAmbiguous;
  readonly failOpen: boolean;
  readonly sendUnkept: boolean;
}

/** The protected routes of an engine, each description once, however many routes it fits. */
export type ProtectedRoutes = Map<string, ProtectedRoute>;

export function declareRoute(routes: ProtectedRoutes, route: ProtectedRoute): void {
  routes.set(JSON.stringify(route), route);
}
