import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { CHECKS } from "../../../src/cli/probe/checks.ts";
import { RIGHT, startKeyedServer } from "./keyed-server.ts";
import { faultsIn, findingsOf, settingsFor, unshownIn } from "./settings.ts";
import { WRONG_SERVERS } from "./wrong-servers.ts";

/** Probes wait for a second to go by, which they can do together; their races are better run apart. */
const APART_MS = 80;

const found = new Map<string, readonly string[]>();

beforeAll(async () => {
  const probes = WRONG_SERVERS.map(async ([fault, , rules], index) => {
    await pause(index * APART_MS);
    found.set(fault, faultsIn(await findingsOf(settingsFor(await startKeyedServer({ ...RIGHT, ...rules })))));
  });
  await Promise.all(probes);
});

describe("a probe", () => {
  test("finds nothing wrong with a right server, and shows every promise of it", async () => {
    const findings = await findingsOf(settingsFor(await startKeyedServer(RIGHT)));
    expect(faultsIn(findings)).toEqual([]);
    expect(unshownIn(findings)).toEqual([]);
    expect(findings.map(({ id }) => id).toSorted()).toEqual(Object.keys(CHECKS).toSorted());
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
