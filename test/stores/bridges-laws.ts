import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type StoreSubject, storeLaws, unmetNeeds } from "../../src/conformance/index.ts";
import { recordId } from "../../src/stores/codec.ts";
import { seededRandom } from "../support/seed.ts";
import type { OpenedLayer } from "./bridges-layers.ts";

/** The laws of units, on a layer; the others go through the store's own pool, whoever opens the units. */
export function unitLaws(): <Tx>(given: () => OpenedLayer<Tx>) => void {
  const random = seededRandom().fraction;
  const named = storeLaws.flatMap((law) =>
    law.needs?.endsWith("transactions") ? [[law.id, law.promise, law] as const] : [],
  );
  return (given) => {
    test("none is left out", () => {
      expect(unmetNeeds(subjectOf(given(), random))).toEqual([]);
    });

    test.each(named)("%s: %s", (_id, _promise, law) => law.check(subjectOf(given(), random)));
  };
}

function subjectOf<Tx>({ store, other, admin }: OpenedLayer<Tx>, random: () => number): StoreSubject {
  return {
    ...{ store, another: async () => other, random },
    pause: (durationMs) => sleep(durationMs),
    damage: async (identity) => {
      const spoil = "update oncekey_records set tail = '[' where id = $1";
      await admin.query(spoil, [recordId(identity)]);
    },
  };
}
