import type { HostLaw } from "./law.ts";
import { authorisingLaws } from "./laws/authorising.ts";
import { bodyLaws } from "./laws/bodies.ts";
import { captureLaws } from "./laws/capture.ts";
import { claimingLaws } from "./laws/claiming.ts";
import { codedBodyLaws } from "./laws/coded-bodies.ts";
import { declaredLaws } from "./laws/declared.ts";
import { endingLaws } from "./laws/endings.ts";
import { finalityLaws } from "./laws/finality.ts";
import { fingerprintRecordLaws } from "./laws/fingerprint-records.ts";
import { fingerprintLaws } from "./laws/fingerprints.ts";
import { guestLaws } from "./laws/guests.ts";
import { keyLaws } from "./laws/keys.ts";
import { observingLaws } from "./laws/observing.ts";
import { oneCommitLaws } from "./laws/one-commit.ts";
import { oneCommitOutageLaws } from "./laws/one-commit-outages.ts";
import { oneCommitRunningLaws } from "./laws/one-commit-running.ts";
import { operationLaws } from "./laws/operations.ts";
import { outageLaws } from "./laws/outages.ts";
import { secretLaws } from "./laws/secrets.ts";
import { streamLaws } from "./laws/streams.ts";
import { transactionLaws } from "./laws/transactions.ts";
import { waitingLaws } from "./laws/waiting.ts";

/** What every host owes its clients, whatever the store. */
export const hostLaws: readonly HostLaw[] = [
  ...claimingLaws,
  ...waitingLaws,
  ...keyLaws,
  ...guestLaws,
  ...authorisingLaws,
  ...fingerprintLaws,
  ...bodyLaws,
  ...fingerprintRecordLaws,
  ...codedBodyLaws,
  ...captureLaws,
  ...secretLaws,
  ...streamLaws,
  ...endingLaws,
  ...finalityLaws,
  ...declaredLaws,
  ...transactionLaws,
  ...oneCommitLaws,
  ...oneCommitRunningLaws,
  ...operationLaws,
  ...observingLaws,
  ...outageLaws,
  ...oneCommitOutageLaws,
];
