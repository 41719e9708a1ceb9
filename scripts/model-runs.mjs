// What the model of models/ is checked with: sound configurations to their end, and careless ones until a trail is found.

/** Every one of these is explored to its end, and no promise may break in it. */
export const SOUND = [
  { CLASS: "LOCAL", FAULTS: 4, CLIENTS: 3 },
  { CLASS: "LOCAL", FAULTS: 3, CLIENTS: 3, OTHER: 1, DECLINES: 1, RETENTION: 1 },
  { CLASS: "KEYED", FAULTS: 3 },
  { CLASS: "KEYED", FAULTS: 2, CLIENTS: 3 },
  { CLASS: "KEYED", FAULTS: 2, RECONCILERS: 2 },
  { CLASS: "KEYED", FAULTS: 2, OTHER: 1, DECLINES: 1, RETENTION: 1 },
  { CLASS: "KEYED", FAULTS: 2, STEPS: 1, OTHER: 1, DECLINES: 1 },
  { CLASS: "QUERY", FAULTS: 3 },
  { CLASS: "QUERY", FAULTS: 2, MAX_LOOKS: 4 },
  { CLASS: "QUERY", FAULTS: 2, RECONCILERS: 2 },
  { CLASS: "QUERY", FAULTS: 2, STEPS: 1, OTHER: 1, DECLINES: 1 },
  { CLASS: "REPEATABLE", FAULTS: 2, CLIENTS: 3 },
  { CLASS: "REPEATABLE", FAULTS: 2, STEPS: 1, OTHER: 1, DECLINES: 1 },
  { CLASS: "BLIND", FAULTS: 3, CLIENTS: 3, OTHER: 1, DECLINES: 1 },
  { CLASS: "BLIND", FAULTS: 3, STEPS: 1 },
];

/** One careless change each, where it shows. */
export const MUTANTS = [
  {
    mutant: "M_NO_FENCE",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "an attempt's write asks neither for its owner nor for its revision",
  },
  {
    mutant: "M_OWNER_ONLY",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "a compare-and-set compares the owner and not the revision",
  },
  {
    mutant: "M_CLAIM_BY_READ",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "a takeover rests on what was read",
  },
  {
    mutant: "M_SWEEP_EARLY",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "the sweeper waits for no lease and no grace",
  },
  {
    mutant: "M_SWEEP_RELEASES",
    bounds: { CLASS: "QUERY", FAULTS: 2 },
    what: "a dead attempt is released whatever it may have done",
  },
  { mutant: "M_NO_SWEEPER", bounds: { CLASS: "KEYED", FAULTS: 2, CLIENTS: 1 }, what: "nobody sweeps" },
  {
    mutant: "M_SPLIT_COMMIT",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "the effect is committed before its record",
  },
  {
    mutant: "M_UNFENCED_RETRY",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "when a commit's reply is lost the effect is made again",
  },
  {
    mutant: "M_LOSER_ANSWERS",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "an attempt that has lost its key sends its own answer",
  },
  {
    mutant: "M_ANSWER_FIRST",
    bounds: { CLASS: "LOCAL", FAULTS: 2 },
    what: "the answer is sent before it is kept",
  },
  {
    mutant: "M_NO_FINGERPRINT",
    bounds: { CLASS: "LOCAL", FAULTS: 2, OTHER: 1 },
    what: "another body under the key is taken for a copy",
  },
  {
    mutant: "M_PURGE_LIVE",
    bounds: { CLASS: "BLIND", FAULTS: 2, RETENTION: 1 },
    what: "the purge takes records that have not ended",
  },
  {
    mutant: "M_RERUN_UNKNOWN",
    bounds: { CLASS: "QUERY", FAULTS: 2 },
    what: "an unknown is run again whatever its provider offers",
  },
  {
    mutant: "M_TIMEOUT_FAILS",
    bounds: { CLASS: "KEYED", FAULTS: 2 },
    what: "a call that was not answered in time counts as refused",
  },
  {
    mutant: "M_TIMEOUT_RELEASES",
    bounds: { CLASS: "QUERY", FAULTS: 2 },
    what: "a call that was not answered in time counts as not made",
  },
  {
    mutant: "M_KEY_PER_ATTEMPT",
    bounds: { CLASS: "REPEATABLE", FAULTS: 2 },
    what: "each attempt sends a downstream key of its own",
  },
  {
    mutant: "M_REPEAT_PAST_TTL",
    bounds: { CLASS: "REPEATABLE", FAULTS: 2 },
    what: "a call is repeated after its key's time at the provider",
  },
  {
    mutant: "M_NO_CANCEL",
    bounds: { CLASS: "KEYED", FAULTS: 2 },
    what: "not found releases, and nothing is cancelled",
  },
  {
    mutant: "M_CANCEL_SAME_KEY",
    bounds: { CLASS: "KEYED", FAULTS: 2 },
    what: "a cancelled key is used again",
  },
  {
    mutant: "M_NO_DEADLINE",
    bounds: { CLASS: "QUERY", FAULTS: 2 },
    what: "the provider is sent no validUntil",
  },
  { mutant: "M_NOT_FOUND_PROVES", bounds: { CLASS: "QUERY", FAULTS: 2 }, what: "not found releases at once" },
  {
    mutant: "M_ONE_LOOK",
    bounds: { CLASS: "QUERY", FAULTS: 2 },
    what: "one look after validUntil is enough",
  },
  {
    mutant: "M_DEADLINE_AFTER_ASKING",
    bounds: { CLASS: "QUERY", FAULTS: 2, MAX_LOOKS: 4 },
    what: "the time of a look is read after the provider was asked",
  },
  {
    mutant: "M_RECONCILER_NO_FENCE",
    bounds: { CLASS: "KEYED", FAULTS: 3, RECONCILERS: 2 },
    what: "a reconciler's write asks for an unknown only",
  },
  {
    mutant: "M_CALL_BEFORE_MARK",
    bounds: { CLASS: "BLIND", STEPS: 1, FAULTS: 2 },
    what: "the call starts before its mark stands",
  },
];

/** Statements of an inlined part that cannot be reached where it is put in, and why. */
export const NEVER = [
  [/^Sweeper .*(gen = \(gen\+0\)|assert\(\(gen<8\)\))/, "the sweeper releases only what has no open mark"],
  [
    /^Client .*(strayGen\[c\] = |strayToken\[c\] = )/,
    "an attempt that dies has no call under way at this place",
  ],
  [/^Client \S+:31 /, "the reply to a commit was lost: the record is its own, whatever happened meanwhile"],
];
