/**
 * What was seen of one run: plain data, from which it can be judged afterwards whether keys did what they promise. Every
 * time in it is of one monotonic clock, in milliseconds.
 */
export interface History {
  /** Whatever was asked for, once per principal and key. */
  readonly asked: readonly Asked[];
  readonly calls: readonly Call[];
  /** Rows of the domain that exist because a request succeeded, once the run is over. */
  readonly effects: readonly Effect[];
  /** What the provider really did, once the run is over. */
  readonly executions: readonly Execution[];
  /** Records as they stand once the run is over. */
  readonly standing: readonly Standing[];
  /** Records as plain reads saw them while the run went on. */
  readonly looks: readonly Look[];
  /** What the processes said of themselves; whatever a process had said before it died is in here. */
  readonly traces: readonly Trace[];
  readonly accounts: readonly Account[];
  readonly times: { readonly leaseMs: number; readonly sweepGraceMs: number };
}

export interface Whose {
  readonly principal: string;
  readonly key: string;
}

/** Where an effect is counted: in the domain alone, or at a provider too, and what that provider offers. */
export type EffectKind = "local" | "repeatable" | "keyed" | "query" | "blind" | "declared";

/** One intent under one key. */
export interface Asked extends Whose {
  /** The body of its request; a call with another one is another request. */
  readonly intent: string;
  readonly effect: EffectKind;
  /** Where its effects are declared: their steps, in the order in which they are made. There is no row then. */
  readonly steps: readonly string[];
  /** Words that only its own answer contains. */
  readonly mark: string;
  /** Statuses of a final answer: with the effect, and without it. */
  readonly done: readonly number[];
  readonly refused: readonly number[];
}

/** One copy of a request. */
export interface Call extends Whose {
  readonly intent: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly told: Told;
}

export type Told =
  | Answer
  /** The connection ended before an answer was whole: nobody knows what became of it. */
  | { readonly kind: "interrupted" };

export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  /** Those that belong to the answer and not to one exchange of it, sorted. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Byte for byte, as Latin-1. */
  readonly body: string;
  readonly replayed: boolean;
  readonly retryAfter: string | null;
}

export interface Effect extends Whose {
  readonly id: string;
  /** The attempt that wrote it; `null` where a worker may have. */
  readonly attempt: number | null;
  /** Money that it moved. */
  readonly moves: readonly { readonly account: string; readonly amount: number }[];
}

export interface Execution extends Whose {
  readonly id: string;
  /** The declared step for which it was; `null` where the key has one execution. */
  readonly step: string | null;
}

/** One version of a record; `absent` where there is none. */
export interface Standing extends Whose {
  readonly state: "absent" | "in_progress" | "released" | "unknown" | "completed" | "failed_permanent";
  readonly disposition: "reconcile" | "review" | "hold" | null;
  readonly attempt: number;
  readonly revision: number;
  readonly answer: { readonly status: number; readonly body: string } | null;
}

export interface Look extends Standing {
  /** When it was asked for, and when it was there. */
  readonly fromMs: number;
  readonly toMs: number;
}

export type Trace =
  /** The work of an attempt began; the request that claimed it had arrived at `arrivedMs`. */
  | (Whose & {
      readonly kind: "ran";
      readonly attempt: number;
      readonly arrivedMs: number;
      readonly atMs: number;
    })
  /** The call of a step began; or the handler had what came of it, so that this is on record. */
  | (Whose & {
      readonly kind: "called" | "kept";
      readonly step: string;
      readonly attempt: number;
      readonly atMs: number;
    })
  /** A record was moved. */
  | (Whose & {
      readonly kind: "moved";
      readonly by: "attempt" | "duplicate" | "sweeper" | "reconciler";
      readonly attempt: number;
      readonly from: string;
      readonly to: string;
      readonly atMs: number;
    });

export interface Account {
  readonly id: string;
  readonly opening: number;
  readonly balance: number;
}
