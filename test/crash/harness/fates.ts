import { setTimeout as sleep } from "node:timers/promises";
import type { SeededRandom } from "../../support/seed.ts";
import { nowMs } from "./clock.ts";
import type { Cluster } from "./cluster.ts";
import type { Place } from "./place.ts";
import { bankTimesIn, type Plan, RESTARTS, type Times } from "./plan.ts";
import { isRare } from "./points.ts";
import type { Slot } from "./slot.ts";
import type { Tally } from "./tally.ts";

/** What deals out faults until there were enough. */
export interface Fates {
  readonly plan: Plan;
  readonly times: Times;
  readonly random: SeededRandom;
  readonly tally: Tally;
  readonly isOver: () => boolean;
}

/** A point that nobody reaches in so many leases is given up for another. */
const LEASES_TO_REACH = 1.5;
const BETWEEN_FATES_MS = 800;

/** Kills, stops and revives the process of one place, again and again; in between it serves for a while. */
export async function ruleProcess(fates: Fates, slot: Slot): Promise<void> {
  const { plan, random, tally, isOver } = fates;
  while (!isOver()) {
    await sleep(random.below(BETWEEN_FATES_MS));
    // A point may be reached just when it was given up.
    if (await slot.isDead(0)) await slot.revive();
    const points = plan.points.filter((point) => tally.count(`killed: ${point}`) < plan.killsAtEach);
    const kinds = [
      ...(points.length > 0 ? (["kill at a point", "kill at a point", "kill at a point"] as const) : []),
      ...(tally.count("killed: at random") < plan.kills || isStarved(points) ? (["kill"] as const) : []),
      ...(tally.count("paused") < plan.pauses ? (["pause at a point", "pause"] as const) : []),
    ];
    if (kinds.length > 0) await suffer(fates, slot, { kind: random.pick(kinds), points });
  }
  await letGo(slot);
}

/** Until it answers: a slow process may have come to a point, and stopped or died there, just after it was given up. */
async function letGo(slot: Slot): Promise<void> {
  while (!(await armed(slot, { points: [], signal: "SIGSTOP" })))
    if (await slot.isDead(0)) await slot.revive();
    else slot.signal("SIGCONT");
}

/** Workers come past the rare points where attempts have died: with nothing else to die of, those would never be reached. */
function isStarved(points: readonly string[]): boolean {
  return points.length > 0 && points.every(isRare);
}

interface Fate {
  readonly kind: "kill at a point" | "kill" | "pause" | "pause at a point";
  /** Those at which there were not enough kills. */
  readonly points: readonly string[];
}

async function suffer(fates: Fates, slot: Slot, { kind, points }: Fate): Promise<void> {
  switch (kind) {
    case "kill at a point":
      return await killAt(fates, slot, chosen(fates.random, points));
    case "kill":
      slot.signal("SIGKILL");
      fates.tally.add("killed: at random");
      return await slot.revive();
    case "pause":
      return await pause(fates, slot);
    case "pause at a point":
      return await pauseAt(fates, slot);
  }
}

/** Those of the rare ones that come first, and one that many requests reach; now and then that one alone. */
function chosen(random: SeededRandom, points: readonly string[]): readonly string[] {
  const often = points.filter((point) => !isRare(point));
  const one = often.length > 0 ? [random.pick(often)] : [];
  return one.length > 0 && random.below(2) === 0 ? one : [...points.filter(isRare), ...one];
}

async function killAt(fates: Fates, slot: Slot, points: readonly string[]): Promise<void> {
  const point = await reaches(fates, slot, { points, signal: "SIGKILL" });
  if (point === null) return;
  fates.tally.add(`killed: ${point}`);
  await slot.revive();
}

/** The point at which the process has died or stopped; `null` where it has reached none of them. */
async function reaches({ times }: Fates, slot: Slot, { points, signal }: Order): Promise<string | null> {
  const before = slot.lines().length;
  if (!(await armed(slot, { points, signal }))) return null;
  const untilMs = nowMs() + LEASES_TO_REACH * times.lease;
  const reached = () =>
    slot
      .lines()
      .slice(before)
      .find((line) => line.includes('"reached"'));
  while (nowMs() < untilMs && reached() === undefined) await sleep(10);
  if (reached() === undefined) await armed(slot, { points: [], signal });
  const line = reached();
  return line === undefined ? null : String(JSON.parse(line).point);
}

interface Order {
  readonly points: readonly string[];
  readonly signal: "SIGKILL" | "SIGSTOP";
}

async function armed(slot: Slot, order: Order): Promise<boolean> {
  const headers = { "content-type": "application/json" };
  const request = { method: "PUT", headers, body: JSON.stringify(order), signal: AbortSignal.timeout(3_000) };
  const answer = await fetch(`${slot.url}/points`, request).catch(() => null);
  return answer?.ok === true;
}

async function pauseAt(fates: Fates, slot: Slot): Promise<void> {
  const points = chosen(fates.random, fates.plan.points);
  const point = await reaches(fates, slot, { points, signal: "SIGSTOP" });
  if (point === null) await letGo(slot);
  else await pause(fates, slot);
}

/** Stops a process for longer than an attempt may be unheard before a sweeper ends it and a reconciler looks. */
async function pause({ tally, times }: Fates, slot: Slot): Promise<void> {
  slot.signal("SIGSTOP"); // which it may have sent itself
  await sleep(1.1 * (times.lease + times.sweepGrace));
  slot.signal("SIGCONT");
  tally.add("paused");
}

/** How a bank misbehaves for a while; well, most of the time. */
function moodsOf(times: Times): readonly Readonly<Record<string, number | boolean>>[] {
  const { delayMs } = bankTimesIn(times);
  const slow = { delayMs };
  const hidden = { hideForMs: times.lease, commitThenDrop: true };
  return [
    ...[{}, {}, {}, slow, slow, slow, { commitThenHang: true }, { commitThenDrop: true }],
    ...[{ unavailable: true }, { decline: true }, hidden, { down: true }],
  ];
}

/** Spoils the bank's answers and kills it. */
export async function ruleBank(fates: Fates, { bank, putFaults }: Cluster): Promise<void> {
  const { plan, times, random, tally, isOver } = fates;
  while (!isOver()) {
    if (tally.count("killed: bank") < plan.bankKills && random.below(2) === 0) {
      bank.signal("SIGKILL");
      tally.add("killed: bank");
      await bank.revive(); // in a good mood
    }
    const mood = random.pick(moodsOf(times));
    if (await putFaults(mood)) tally.add(`bank: ${Object.keys(mood).join(" ") || "well"}`);
    await sleep(300 + random.below(900));
  }
  await putFaults({});
}

/** Ends the database in one way after the other, and starts it again. */
export async function ruleDatabase(fates: Fates, restart: NonNullable<Place["restart"]>): Promise<void> {
  const { plan, times, random, tally, isOver } = fates;
  for (let crash = 0; crash < plan.crashes && !isOver(); crash++) {
    await sleep(times.lease * (1 + 2 * random.fraction()));
    const signal = RESTARTS[crash % RESTARTS.length] ?? "SIGKILL";
    await restart(signal);
    tally.add(`database: ${signal}`);
  }
}
