import { damageLaws } from "./laws/damage.ts";
import { dueLaws } from "./laws/due.ts";
import { fencedLaws } from "./laws/fenced.ts";
import { rivalLaws } from "./laws/fenced-rivals.ts";
import { identityLaws } from "./laws/identity.ts";
import { insertLaws } from "./laws/insert.ts";
import { keepingLaws } from "./laws/keeping.ts";
import { listingLaws } from "./laws/listing.ts";
import { logLaws } from "./laws/log.ts";
import { purgeLaws } from "./laws/purge.ts";
import { replaceLaws } from "./laws/replace.ts";
import { simultaneousLaws } from "./laws/simultaneous.ts";
import { timeLaws } from "./laws/time.ts";
import { tombstoneLaws } from "./laws/tombstone.ts";
import { transactionLaws } from "./laws/transaction.ts";
import type { StoreLaw } from "./subject.ts";

export { checkHistory } from "./history/check.ts";
export type {
  History,
  HistoryCall,
  HistoryEffect,
  HistoryViolation,
  Told,
} from "./history/history.ts";
export type { Law } from "./law.ts";
export { type StoreLaw, type StoreNeed, type StoreSubject, unmetNeeds } from "./subject.ts";

/** Everything that the port promises, in the order in which a new store best comes to keep it. */
export const storeLaws: readonly StoreLaw[] = [
  ...insertLaws,
  ...replaceLaws,
  ...keepingLaws,
  ...identityLaws,
  ...timeLaws,
  ...dueLaws,
  ...purgeLaws,
  ...tombstoneLaws,
  ...listingLaws,
  ...logLaws,
  ...damageLaws,
  ...transactionLaws,
  ...simultaneousLaws,
  ...fencedLaws,
  ...rivalLaws,
];
