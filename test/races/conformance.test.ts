import { afterAll, describe, expect, test } from "vitest";
import type { StoreSubject } from "../../src/conformance/index.ts";
import { storeLaws } from "../../src/conformance/index.ts";
import { stamp } from "../../src/core/record.ts";
import { fromRow, stampRow, toRow } from "../../src/stores/row.ts";
import { seededRandom } from "../support/seed.ts";
import { listedChoices } from "./choices.ts";
import { createDatabase } from "./database.ts";
import { libraryIn } from "./library.ts";
import { simulatedStore } from "./simulated-store.ts";
import { addProcess, createWorld, type Happening, ready, storeNow, taken } from "./world.ts";

/**
 * Not simulated are tombstones, and lists, counts and the log, which no attempt and no worker reads. Nobody here writes into
 * bytes that he gave, refers to a record by a foreign key, damages one, or keeps a record too large for a store.
 */
const LEFT_OUT = [
  ...[
    "tombstone/",
    "list/",
    "count/",
    "audit/",
    "beat/",
    "damage/",
    "purge/leaves-the-log",
    "simultaneous/others-go-on",
  ],
  ...["keeping/is-a-copy", "identity/record-id-is-its-own", "fenced/too-large-keeps-nothing"],
];

const laws = storeLaws.filter(({ id }) => !LEFT_OUT.some((prefix) => id.startsWith(prefix)));

/** A world in which nothing fails and everything happens at once. */
function openSimulated(): { readonly subject: StoreSubject; readonly close: () => void } {
  const world = createWorld(listedChoices([]));
  const database = createDatabase({
    now: () => storeNow(world),
    keep: (write, version) => {
      stamp(write, version);
      return fromRow(stampRow(toRow(write), { ...version, now: version.updatedAt }));
    },
  });
  const library = libraryIn();
  const [store, other] = ["a", "b"].map((name) =>
    simulatedStore({ world, database, library, process: addProcess(world, name) }),
  );
  if (store === undefined || other === undefined) throw new Error("There are two.");
  const candidates: Happening[] = [];
  let closed = false;
  const turn = () => {
    for (const happening of [...ready(world, candidates)]) {
      taken(world, happening);
      happening.run();
    }
    if (!closed) setImmediate(turn);
  };
  setImmediate(turn);
  const pause = async (ms: number) => {
    world.nowMs += ms;
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const random = seededRandom().fraction;
  return {
    subject: { store, another: async () => other, pause, random },
    close: () => {
      closed = true;
    },
  };
}

describe("the simulated store keeps what the port promises", () => {
  const { subject, close } = openSimulated();
  afterAll(close);
  test.each(laws.map((law) => [law.id, law.promise, law] as const))("%s: %s", (_id, _promise, law) =>
    law.check(subject),
  );

  test("all but what nobody reads here is tried", () => {
    expect(laws.length).toBeGreaterThan(70);
  });
});
