/** One promise that can be checked: data, so that a test runner, a command and a page of the docs walk the same array. */
export interface Law<Subject, Need extends string = never> {
  /** Stable, for reports: `replace/old-revision-is-stale`. */
  readonly id: string;
  /** What is promised, as the port says it. */
  readonly promise: string;
  /** What a subject must offer before the promise means anything. */
  readonly needs?: Need;
  /** Resolves where the promise is kept; rejects where it is broken, saying how. */
  readonly check: (subject: Subject) => Promise<void>;
}
