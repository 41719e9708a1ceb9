import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { seed, seededRandom } from "../support/seed.ts";
import { nativeScript, ownScript } from "./differential/drawing.ts";
import { differentialHosts } from "./differential/hosts.ts";
import { judged } from "./differential/judging.ts";
import type { Script } from "./differential/script.ts";
import type { DifferentialHost } from "./differential/site.ts";
import type { Listening } from "./harness.ts";

/** How many handlers each host is tried with: `HANDLERS=5000 SEED=1 npx vitest run test/hosts/differential`. */
const HANDLERS = Number(process.env["HANDLERS"] ?? 300);

const AT_A_TIME = 20;

/** Some hosts tell each error to the console. */
vi.spyOn(console, "error").mockImplementation(() => {});

const PROMISE = "each random handler answers as on the bare host, and its copy gets what it is owed";

describe.each(differentialHosts.map((host) => [host.name, host] as const))("%s", (_name, host) => {
  const scripts = scriptsFor(host);
  const runs = new Map<string, number>();
  let served: Listening;
  beforeAll(async () => {
    const enter = (method: string, target: string) => {
      const entered = `${method} ${target}`;
      runs.set(entered, (runs.get(entered) ?? 0) + 1);
      const script = scripts[Number(target.split("/").at(-1))];
      if (script === undefined) throw new Error(`There is no handler at ${target}.`);
      return script;
    };
    served = await host.serve({ engine: createEngine<never, never>({ store: memoryStore() }), enter });
  });
  afterAll(() => served.close());

  test(PROMISE, { timeout: 1_200_000 }, async () => {
    const trials = scripts.map((script, n) => {
      return { host, script, n, port: served.port, runs: () => runs.get(`POST /kept/${n}`) ?? 0 };
    });
    const failures: unknown[] = [];
    for (let at = 0; at < trials.length; at += AT_A_TIME) {
      const judging = trials.slice(at, at + AT_A_TIME).map((trial) => judged(trial));
      for (const { status, ...rest } of await Promise.allSettled(judging))
        if (status === "rejected" && "reason" in rest) failures.push(rest.reason);
    }
    const shown = failures
      .slice(0, 3)
      .map((failure) => (failure instanceof Error ? failure.message : failure));
    expect(failures.length, `${failures.length} of ${scripts.length}:\n\n${shown.join("\n\n")}`).toBe(0);
  });
});

/** The same ones for a seed and a host, whichever other hosts are tried. */
function scriptsFor({ name, ways, native, share }: DifferentialHost): readonly Script[] {
  const mine = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 0x7fff_ffff, seed());
  const random = seededRandom(mine);
  return Array.from({ length: Math.ceil(HANDLERS * share) }, () => {
    const natively = native && (ways.length === 0 || random.below(2) === 0);
    return natively ? nativeScript(random) : ownScript(random, ways);
  });
}
