/** Whose key. */
export interface Whose {
  readonly principal: string;
  readonly key: string;
}

/** What the callers of a service saw, and what is there once it is over: plain data, of any service in any language. */
export interface History {
  readonly calls: readonly HistoryCall[];
  /** Every effect that exists, counted where effects really are: in the domain's tables, at the provider. */
  readonly effects: readonly HistoryEffect[];
  /** How long an answer is kept; where nothing is said, for longer than the history lasts. */
  readonly retentionMs?: number;
}

/** One request, as its caller saw it. */
export interface HistoryCall extends Whose {
  /** What it asked for: the same text for the same request, and for no other. */
  readonly intent: string;
  /** Before it was sent and after it was answered or given up, on one monotonic clock of all callers, in milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly told: Told;
}

export type Told =
  /** An answer for good: its status, headers and bytes as one text, and what it says of the effect. */
  | {
      readonly kind: "final";
      readonly answer: string;
      readonly effect: "made" | "none";
      /** The effect that it names, where it names one. */
      readonly effectId?: string;
    }
  /** Another copy is at it. */
  | { readonly kind: "in_progress" }
  /** The effect may have happened. */
  | { readonly kind: "outcome_unknown" }
  /** Nothing was done, and the same key may ask again. */
  | { readonly kind: "not_performed" }
  /** The key belongs to another request. */
  | { readonly kind: "key_reused" }
  /** No answer, or one that says nothing of the key: the request may have been carried out or not. */
  | { readonly kind: "unheard" };

export interface HistoryEffect extends Whose {
  readonly id: string;
}

/** Something that must not be so, and the guarantee that it breaks. */
export interface HistoryViolation extends Whose {
  readonly guarantee: `G${1 | 2 | 3 | 4 | 8 | 11 | 12}`;
  /** A sentence about the key. */
  readonly what: string;
}

/** Everything that was seen of one key. */
export interface KeyHistory {
  readonly calls: readonly HistoryCall[];
  readonly effects: readonly HistoryEffect[];
  readonly retentionMs: number;
}

export type Final = HistoryCall & { readonly told: Extract<Told, { kind: "final" }> };

export function isFinal(call: HistoryCall): call is Final {
  return call.told.kind === "final";
}

/** What was found of one key, before it is said whose it is. */
export type Finding = Omit<HistoryViolation, keyof Whose>;
