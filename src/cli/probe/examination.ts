import type { CheckId } from "./checks.ts";
import type { Finding } from "./finding.ts";
import type { First } from "./first.ts";
import type { Trial } from "./trial.ts";

/** A few checks that share their requests. */
export interface Examination {
  /** Each of them has one finding in what `examine` returns. */
  readonly ids: readonly CheckId[];
  readonly examine: (trial: Trial, first: First) => Promise<readonly Finding[]>;
}
