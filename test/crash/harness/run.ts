import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { checkHistory } from "../../../src/conformance/history/check.ts";
import type { FaultProxy } from "../../support/fault-proxy.ts";
import { type PostgresStatement, startPostgresProxy } from "../../support/postgres-wire.ts";
import { type SeededRandom, seededRandom } from "../../support/seed.ts";
import { CUTS, cutting } from "../support/cutting.ts";
import { type Load, startLoad } from "../support/load.ts";
import { nowMs } from "./clock.ts";
import { tallyClocks } from "./clocks.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { type Fates, ruleBank, ruleDatabase, ruleProcess } from "./fates.ts";
import { countsOf, historyOf } from "./gather.ts";
import { callersView } from "./history/callers.ts";
import type { Told } from "./history/history.ts";
import { type Violation, violationsOf } from "./history/violations.ts";
import { openPlace, type Place } from "./place.ts";
import { type Plan, paceOfMachine, type Times, timesAt, wantedFaults } from "./plan.ts";
import { isEnough, openRecorder, type Recorder } from "./recorder.ts";
import { openTally } from "./tally.ts";
import { type Wanted, wantedBy } from "./wanted.ts";

/** What came of a run. */
export interface CrashRun {
  readonly violations: readonly Violation[];
  /** Processes that ended by themselves or complained. */
  readonly faults: readonly string[];
  /** Faults of which there were fewer than planned. */
  readonly short: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

const CLIENTS = 12;
/** Once the faults are over, every key must have its answer within this: leases, looks and their back-off are in it. */
const SETTLED_WITHIN_MS = 60_000;
const LOOK_MS = 50;
const LOOKS_TO_TELL = 400;
/** Of a hundred messages so many are cut off, in fair weather and in foul. */
const WEATHERS = [0, 5, 30];

/** Lets clients ask servers that are killed, stopped and cut off as planned, and judges what they were told. */
export async function crashRun(plan: Plan): Promise<CrashRun> {
  const random = seededRandom(plan.seed);
  const place = await openPlace(plan.database);
  onTestFinished(place.remove);
  const proxy = plan.database === "PostgreSQL" ? await startPostgresProxy(place.url) : null;
  if (proxy !== null) onTestFinished(proxy.close);
  const urls = { direct: place.url, cut: proxy?.url(place.url) ?? place.url };
  const pace = paceOfMachine();
  const times = timesAt(pace, plan);
  const cluster = await openCluster(plan, times, urls);
  const recorder = openRecorder(place.store, times.requestTimeout);
  const clients = startClients({ plan, times, random, cluster, recorder });
  onTestFinished(clients.load.stop);
  const given = { cluster, place, proxy };
  const fates = openFates({ plan, times, random }, given, clients.load);
  tallyClocks(cluster, fates.tally);
  await ruleAll(fates, given);
  await clients.finish(SETTLED_WITHIN_MS * pace);
  await recorder.quiet();
  const executed = await cluster.ledger();
  await cluster.close();
  const { asked } = clients;
  const lines = cluster.workers.flatMap((slot) => slot.lines());
  const history = await historyOf({ asked: [...asked.values()], recorder, place, executed, lines, times });
  return {
    violations: [...violationsOf(history), ...checkHistory(callersView(history))],
    faults: [...cluster.workers, cluster.bank].flatMap((slot) => slot.faults()),
    short: fates.tally.short(),
    counts: { ...fates.tally.all(), calls: recorder.calls.length, ...countsOf(lines) },
  };
}

interface Clients {
  readonly load: Load;
  readonly asked: ReadonlyMap<string, Wanted>;
  /** Waits for every answer, hears each once more, and asks for something else under some of their keys. */
  readonly finish: (withinMs: number) => Promise<void>;
}

interface ClientOptions {
  readonly plan: Plan;
  readonly times: Times;
  readonly random: SeededRandom;
  readonly cluster: Cluster;
  readonly recorder: Recorder;
}

/** A client sends nothing for up to a tenth of a lease before each request: the machine is for the servers, too. */
const THINKS_OF_LEASE = 0.1;

/** One key in so many is tried with another request. */
const OTHERS = 5;

function startClients({ plan, times, random, cluster, recorder }: ClientOptions): Clients {
  const asked = new Map<string, Wanted>();
  const answered = new Set<string>();
  const urlOf = () => {
    const up = cluster.servers.filter((slot) => slot.isUp());
    return random.pick(up.length > 0 ? up : cluster.servers).url;
  };
  const wantedOf = (name: string) => {
    const wanted = asked.get(name) ?? wantedBy(name, plan);
    asked.set(name, wanted);
    return wanted;
  };
  const note = (name: string, told: Told) => {
    const needsNoMore = isEnough(told);
    if (needsNoMore) answered.add(name);
    return needsNoMore;
  };
  const ledger = { note, noteReplay: () => {}, answered: () => [...answered] };
  const ask = async (name: string) => {
    await sleep(random.below(THINKS_OF_LEASE * times.lease));
    return await recorder.ask(wantedOf(name), urlOf());
  };
  let isQuiet = false;
  // A third of them come back late while there are faults, so that it is workers who find what their attempt left.
  const asideMs = () => random.pick([100, 250, isQuiet ? 250 : 2 * times.lease]);
  const askOthers = async () => {
    const some = [...answered].filter((_, index) => index % OTHERS === 0).values();
    const client = async () => {
      for (const name of some) await recorder.askOther(wantedOf(name), urlOf());
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  };
  const load = startLoad({ ask, clients: CLIENTS, random, ledger, asideMs });
  const finish = async (withinMs: number) => {
    isQuiet = true;
    await load.finish({ withinMs });
    await askOthers();
  };
  return { load, asked, finish };
}

interface Given {
  readonly cluster: Cluster;
  readonly place: Place;
  readonly proxy: FaultProxy<PostgresStatement> | null;
}

function openFates(
  { plan, times, random }: Pick<Fates, "plan" | "times" | "random">,
  { proxy }: Given,
  load: Load,
): Fates {
  const tally = openTally(wantedFaults(plan));
  tally.follow("keys", load.answered);
  for (const kind of CUTS) if (proxy !== null) tally.follow(kind, () => proxy.happened(kind));
  const untilMs = nowMs() + plan.withinMs;
  return { plan, times, random, tally, isOver: () => nowMs() > untilMs || tally.short().length === 0 };
}

/** Deals out faults of every kind at once, until there were enough of each or time is up; then all is well again. */
async function ruleAll(fates: Fates, { cluster, place, proxy }: Given): Promise<void> {
  const { plan, random, tally } = fates;
  const isEnough = () => CUTS.every((kind) => tally.count(kind) >= plan.cutsOfEach);
  const at = ({ messages }: { readonly messages: readonly unknown[] }) => messages.length > 0 && !isEnough();
  if (plan.cutsOfEach > 0)
    for (const rule of cutting({ random, hundredths: WEATHERS, at })) proxy?.plan(rule);
  const rules = [
    ...cluster.workers.map((slot) => ruleProcess(fates, slot)),
    ruleBank(fates, cluster),
    ...(place.restart === null ? [] : [ruleDatabase(fates, place.restart)]),
    tellProgress(fates),
  ];
  await Promise.all(rules);
  proxy?.heal();
}

/** For whoever waits, or wonders afterwards what took so long. */
async function tellProgress({ tally, isOver }: Fates): Promise<void> {
  for (let looks = 1; !isOver(); looks++) {
    await sleep(LOOK_MS);
    if (looks % LOOKS_TO_TELL === 0) console.log(`still wanted: ${tally.short().join(", ")}`);
  }
}
