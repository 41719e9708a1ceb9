import type { Engine } from "../../../src/engine/engine.ts";
import type { Listening } from "../harness.ts";
import { MOST_KEPT_BYTES } from "./drawing.ts";
import type { Script } from "./script.ts";

/** A host that serves every script twice: as it is under `/bare/17`, and behind `protect` under `/kept/17`. */
export interface DifferentialHost {
  readonly name: string;
  /** How much of all handlers it is tried with: a mount differs from a route only in where the handler stands. */
  readonly share: number;
  /** The ways of answering that only this host has. */
  readonly ways: readonly string[];
  /** Whether a handler can answer by Node's own response as well. */
  readonly native: boolean;
  /**
   * Answers are made of a `Response`, which has neither framing nor spelling of names: the server gives it both, and may
   * guess a type where it has none.
   */
  readonly framesAnew: boolean;
  /** False where what a handler throws goes to error handlers of the host, and past whatever stands around it. */
  readonly hearsThrows: boolean;
  /** Whether the host itself drops body and type of what has status 204, 205 or 304, and is not sent by Node's response. */
  readonly dropsEmpty: boolean;
  readonly serve: (site: DifferentialSite) => Promise<Listening>;
}

export interface DifferentialSite {
  readonly engine: Engine<never, never>;
  /** Counts that a handler was entered, and says what it is to do. */
  readonly enter: (method: string, target: string) => Script;
}

/** What a protected route is told, on every host. */
export const OPTIONS: { readonly principal: () => string; readonly maxResponseBytes: number } = {
  principal: () => "alice",
  maxResponseBytes: MOST_KEPT_BYTES,
};
