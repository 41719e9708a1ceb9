import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { until } from "../../../test/support/processes.ts";
import { type Answered, call, ledger, setFaults, settle } from "./support/calls.ts";
import { startService } from "./support/launch.ts";
import { databases, freshPlace } from "./support/places.ts";

const short = {
  ...{ REQUEST_TIMEOUT: "3500ms", LEASE: "4s", BANK_TIMEOUT: "3400ms" },
  ...{ SWEEP_GRACE: "100ms", SWEEP_INTERVAL: "100ms", RECONCILE_INTERVAL: "100ms" },
};

describe.for(databases)("a crash on $name", ({ name, skip }) => {
  test.skipIf(skip)("between the bank's commit and ours ends in the bank's truth, paid once", async () => {
    const place = await freshPlace(name);
    const killed = await startService({ ...place.environment, ...short });
    await setFaults(killed.bankUrl, { commitThenHang: true });
    const key = randomUUID();
    const cut = expect(settle(killed.url, { key })).rejects.toThrow("fetch failed");
    await until(async () => (await ledger(killed.bankUrl)).length === 1);
    killed.kill("SIGKILL");
    await Promise.all([cut, killed.exited]);
    expect(await place.count("SELECT count(*) FROM settlements WHERE status = 'pending'")).toBe(1);

    const { url, bankUrl } = await startService({ ...place.environment, ...short });
    const answers: Answered[] = [];
    const settled = () => answers.find(({ status }) => status === 201);
    await until(
      async () => {
        answers.push(await settle(url, { key }));
        return settled() !== undefined;
      },
      { withinMs: 30_000, everyMs: 50 },
    );
    const onTheWay = answers.filter((answer) => answer !== settled()).map(({ status }) => status);
    expect(onTheWay.filter((status) => ![409, 503, 504].includes(status))).toEqual([]);
    const [payment, ...more] = await ledger(bankUrl);
    expect(more).toEqual([]);
    expect(settled()?.body).toMatchObject({ status: "settled", externalReference: payment?.["id"] });
    expect(await settle(url, { key })).toMatchObject({ status: 201, text: settled()?.text });
    expect(await place.count("SELECT count(*) FROM settlements WHERE status = 'settled'")).toBe(1);
    expect(await place.count("SELECT count(*) FROM settlements")).toBe(1);
  });

  test.skipIf(skip)(
    "before the bank was reached is settled by a retry, paid once, in the same row",
    async () => {
      const place = await freshPlace(name);
      const killed = await startService({ ...place.environment, ...short });
      await setFaults(killed.bankUrl, { delayMs: 60_000 });
      const key = randomUUID();
      const cut = expect(settle(killed.url, { key })).rejects.toThrow("fetch failed");
      await until(async () => (await place.count("SELECT count(*) FROM settlements")) === 1);
      killed.kill("SIGKILL");
      await Promise.all([cut, killed.exited]);

      const { url, bankUrl } = await startService({ ...place.environment, ...short });
      await until(async () => (await settle(url, { key })).status === 201, { withinMs: 30_000, everyMs: 50 });
      expect(await ledger(bankUrl)).toHaveLength(1);
      expect(await place.count("SELECT count(*) FROM settlements")).toBe(1);
    },
  );

  test.skipIf(skip)("whose caller never asks again is settled all the same", async () => {
    const place = await freshPlace(name);
    const killed = await startService({ ...place.environment, ...short });
    await setFaults(killed.bankUrl, { commitThenHang: true });
    const cut = expect(settle(killed.url)).rejects.toThrow("fetch failed");
    await until(async () => (await ledger(killed.bankUrl)).length === 1);
    killed.kill("SIGKILL");
    await Promise.all([cut, killed.exited]);

    const { url, bankUrl } = await startService({ ...place.environment, ...short });
    const settled = async () => JSON.parse((await call(url, "GET /settlements")).text);
    await until(async () => (await settled())[0].status === "settled", { withinMs: 30_000, everyMs: 50 });
    expect(await settled()).toMatchObject([{ externalReference: (await ledger(bankUrl))[0]?.["id"] }]);
    expect((await call(url, "GET /metrics")).text).toMatch(/oncekey_transitions_total{by="sweeper",.*} 1\n/);
  });
});
