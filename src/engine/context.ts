import type { Policy } from "../core/policy.ts";
import type { Attempt } from "./attempt.ts";
import type { Disclaim } from "./disclaim.ts";
import type { Driver } from "./driver.ts";
import type { EngineEvent } from "./events.ts";
import type { Keyed } from "./keyring.ts";
import type { Lookout } from "./lookout.ts";
import type { TellOverride } from "./override.ts";
import type { Runtime } from "./runtime.ts";
import type { Watch } from "./watch.ts";

/** What every part of an engine shares. */
export interface Context<Tx> {
  readonly driver: Driver<Tx>;
  readonly policy: Policy;
  readonly runtime: Runtime;
  readonly emit: (event: EngineEvent) => void;
  /** Part of every downstream key. */
  readonly namespace: string;
  /** Attempts of this process that have not ended. */
  readonly running: Set<Attempt<Tx>>;
  /** Claims on their way. */
  readonly beginning: Set<Promise<unknown>>;
  readonly draining: () => boolean;
  readonly disclaim: Disclaim;
  /** Where copies wait for the end of a running request. */
  readonly lookout: Lookout;
  readonly watch: Watch;
  readonly tellOverride: TellOverride;
  /** Fingerprints are keyed by it where there is a secret. */
  readonly keyed: Keyed;
}
