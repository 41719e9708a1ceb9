import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Trial } from "./harness.ts";
import { honoHost } from "./hosts.ts";
import { hostLaws } from "./laws.ts";
import { storesUnderHosts } from "./stores.ts";

describe.each(storesUnderHosts)("Hono on $name", ({ isHere, lacks, open }) => {
  let trial: Trial;
  beforeAll(async () => {
    if (isHere()) trial = await open(honoHost);
  });
  afterAll(() => trial?.close());

  const missing = [...lacks, ...honoHost.lacks];
  const laws = hostLaws.filter(({ needs }) => needs === undefined || !missing.includes(needs));
  test.skipIf(!isHere()).each(laws.map((law) => [law.id, law.promise, law] as const))(
    "%s: %s",
    async (_id, _promise, law) => {
      await expect(trial.check(law)).resolves.toBeUndefined();
    },
  );
});
