import type { Finding } from "../../../src/cli/probe/finding.ts";
import { otherThan } from "../../../src/cli/probe/other-body.ts";
import { type Probed, probe } from "../../../src/cli/probe/probe.ts";
import type { ProbeSettings } from "../../../src/cli/probe/settings.ts";

/** What the command makes of a bare URL with two principals, a body and a count. */
export function settingsFor(base: string, changes: Partial<ProbeSettings> = {}): ProbeSettings {
  const at = (path: string) => ({ url: new URL(path, base), mayLeave: false });
  const body = Buffer.from('{"amount": 100}');
  return {
    target: at("/orders"),
    method: "POST",
    keyHeader: "Idempotency-Key",
    body,
    otherBody: otherThan(body),
    headers: [
      ["Content-Type", "application/json"],
      ["Authorization", "Bearer a"],
    ],
    otherHeaders: [["authorization", "Bearer b"]],
    otherPath: at("/orders?dry=1"),
    also: [at("/empty"), at("/binary"), at("/declined")],
    counting: { target: at("/count"), headers: [], pointer: "", settleMs: 0 },
    copies: 6,
    rounds: 3,
    requestTimeoutMs: 5_000,
    timeLimitMs: 30_000,
    ...changes,
  };
}

/** The findings of a probe that got to its end. */
export async function findingsOf(settings: ProbeSettings): Promise<readonly Finding[]> {
  const probed: Probed = await probe(settings);
  if (probed.kind === "cannot") throw new Error(`could not probe: ${probed.reason}`);
  if (probed.unfinished !== null) throw new Error(`did not get to its end: ${probed.unfinished}`);
  return probed.findings;
}

/** What is not as it should be, in one line each. */
export function faultsIn(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ verdict }) => verdict === "fault").map(({ id, came }) => `${id}: ${came}`);
}

/** What a probe could not show. */
export function unshownIn(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ verdict }) => verdict === "not shown").map(({ id }) => id);
}
