import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { CHECKS, type CheckId } from "../../../src/cli/probe/checks.ts";
import { RIGHT, startKeyedServer } from "./keyed-server.ts";
import { faultsIn, findingsOf, settingsFor, unshownIn } from "./settings.ts";
import { WRONG_SERVERS } from "./wrong-servers.ts";

/** Probes wait for a second to go by, which they can do together; their races are better run apart. */
const APART_MS = 80;

/** Found among answers without a body and without a mark. */
const ALIKE: readonly CheckId[] = ["race", "principal", "quoted-key"];

const found = new Map<string, readonly string[]>();

beforeAll(async () => {
  const probes = WRONG_SERVERS.map(async ([fault, , rules], index) => {
    await pause(index * APART_MS);
    found.set(fault, faultsIn(await findingsOf(settingsFor(await startKeyedServer({ ...RIGHT, ...rules })))));
  });
  await Promise.all(probes);
});

describe("a probe", () => {
  test.concurrent("finds nothing wrong with a right server, and shows every promise of it", async () => {
    const findings = await findingsOf(settingsFor(await startKeyedServer(RIGHT)));
    expect(faultsIn(findings)).toEqual([]);
    expect(unshownIn(findings)).toEqual([]);
    expect(findings.map(({ id }) => id)).toEqual(Object.keys(CHECKS));
  });

  test.concurrent("takes a mark that says no for none", async () => {
    const unmarked = { ...RIGHT, firstHeaders: () => ({ "idempotent-replayed": "false" }) };
    expect(faultsIn(await findingsOf(settingsFor(await startKeyedServer(unmarked))))).toEqual([]);
  });

  test.concurrent("tells a kept Set-Cookie, and finds it where another principal gets it", async () => {
    const keeping = { ...RIGHT, keepsCookies: true };
    const apart = await findingsOf(settingsFor(await startKeyedServer(keeping)));
    expect(faultsIn(apart)).toEqual([]);
    expect(apart).toContainEqual(expect.objectContaining({ id: "exchange-headers", verdict: "told" }));
    const shared = await startKeyedServer({ ...keeping, identity: (_, key) => key });
    expect(faultsIn(await findingsOf(settingsFor(shared)))).toEqual([
      expect.stringMatching(/^exchange-headers: another principal got the Set-Cookie/),
      expect.stringMatching(/^principal: /),
    ]);
  });

  test.concurrent.each(ALIKE)("finds %s by the count alone where all answers are alike", async (found) => {
    const [, , rules] = WRONG_SERVERS.find(([, id]) => id === found) ?? [];
    const base = await startKeyedServer({ ...RIGHT, ...rules, replayHeaders: {} });
    const target = { url: new URL("/empty", base), mayLeave: false };
    const faults = faultsIn(await findingsOf(settingsFor(base, { target, also: [] })));
    expect(faults.map((each) => each.split(":")[0])).toEqual([found, "replay-marked"].toSorted(inOrder));
  });

  test.each(WRONG_SERVERS)("of a server that %s finds %s and nothing else", (fault, id) => {
    expect(found.get(fault)).toEqual([expect.stringMatching(new RegExp(`^${id}: `))]);
  });

  test("explains each of its checks in the guide, and nothing that is none", () => {
    const guide = readFileSync(join(import.meta.dirname, "../../../docs/guide/probe.md"), "utf8");
    expect([...guide.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading)).toEqual(Object.keys(CHECKS));
  });

  test("has a wrong server for every check of answers", () => {
    const ids = new Set<string>(WRONG_SERVERS.map(([, id]) => id));
    expect(Object.keys(CHECKS).filter((id) => id !== "answers" && !ids.has(id))).toEqual([]);
  });
});

/** As the report has them. */
function inOrder(one: string, other: string): number {
  const ids = Object.keys(CHECKS);
  return ids.indexOf(one) - ids.indexOf(other);
}
