import { type Ordered, said, type Told } from "./client.ts";
import { type Stage, untilPaid } from "./stage.ts";

/** One thing that goes wrong in real life; returns what must not have been, in sentences. */
export interface Act {
  readonly title: string;
  readonly play: (stage: Stage) => Promise<readonly string[]>;
}

export const acts: readonly Act[] = [
  { title: "A retry storm", play: storm },
  { title: "kill -9 between the bank's commit and ours", play: killed },
  { title: "A bank that answers late, having paid", play: paidLate },
  { title: "A bank that is so late that we have given up", play: tooLate },
];

const ORDERS = 10;
const COPIES = 25;

async function storm({ client, order, ledger, say }: Stage): Promise<readonly string[]> {
  const orders = Array.from({ length: ORDERS }, (_, index) => order(`storm-${index + 1}`));
  say(`${ORDERS} orders, each of them sent ${COPIES} times, all at once: ${ORDERS * COPIES} requests.`);
  const copies = orders.flatMap((each) => Array.from({ length: COPIES }, () => each));
  const told = await Promise.all(copies.map(client.send));
  const count = (of: (each: Told) => boolean) => told.filter(of).length;
  say(`  ${count((each) => each.kind === "settled" && !each.replayed)} ran and were settled.`);
  say(`  ${count((each) => each.kind === "settled" && each.replayed)} were given the kept answer.`);
  for (const [answer, copies] of refusalsIn(told)) say(`  ${copies} were told ${answer}.`);
  const finals = await Promise.all(orders.map((each) => client.untilSettled(each)));
  say(
    `  Asked again, all ${finals.length} orders have their answer. Payments at the bank: ${(await ledger()).length}.`,
  );
  const texts = orders.flatMap((each, index) => {
    const own = told.filter((_, copy) => copies[copy] === each).concat(finals[index] ?? []);
    const answers = new Set(own.map((one) => (one.kind === "settled" ? one.text : null)).filter(Boolean));
    return answers.size === 1 ? [] : [`${each.key} was given ${answers.size} different answers`];
  });
  return [...texts, ...wrongOf(told)];
}

/** How many copies were told to come again, by what they were told. */
function refusalsIn(told: readonly Told[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const each of told.filter(({ kind }) => kind === "not_yet"))
    counts.set(said(each), (counts.get(said(each)) ?? 0) + 1);
  return counts;
}

async function killed(stage: Stage): Promise<readonly string[]> {
  const { client, order, ledger, killServer, restartServer, server, say } = stage;
  const paid = (await ledger()).length;
  await stage.setFaults({ commitThenHang: true });
  const lost = order("killed");
  const first = client.send(lost);
  await untilPaid(stage, paid + 1);
  say(
    `The bank has paid. Our server (process ${server().pid}) waits for its answer, and is killed: kill -9.`,
  );
  await killServer();
  say(`  The client hears: ${said(await first)}.`);
  await stage.setFaults({});
  await restartServer();
  say(
    `  A new server (process ${server().pid}) runs on the same database. The client sends the same request again:`,
  );
  return (await settledAfter(stage, { order: lost, payments: paid + 1 })).problems;
}

async function paidLate(stage: Stage): Promise<readonly string[]> {
  const { client, order, ledger, say } = stage;
  const paid = (await ledger()).length;
  await stage.setFaults({ commitThenHang: true });
  const late = order("late");
  const first = await client.send(late);
  say("The bank pays and says nothing for longer than we wait for it.");
  say(`  The client hears: ${said(first)}. Nobody claims that it failed, and nobody pays again.`);
  await stage.setFaults({});
  say("  The reconciler asks the bank what became of it. The client sends the same request again:");
  const { problems } = await settledAfter(stage, { order: late, payments: paid + 1 });
  const inDoubt = first.kind === "not_yet" && first.code === "outcome_unknown";
  return inDoubt ? problems : [...problems, `late heard ${said(first)}`];
}

async function tooLate(stage: Stage): Promise<readonly string[]> {
  const { client, order, ledger, say } = stage;
  const paid = (await ledger()).length;
  await stage.setFaults({ delayMs: OVERDUE_MS });
  const overdue = order("overdue");
  const arrived = new Promise((resolve) => setTimeout(resolve, OVERDUE_MS));
  const first = await client.send(overdue);
  say(`The order is held up on its way: it will be paid only after ${OVERDUE_MS / 1_000} s.`);
  say(`  The client hears: ${said(first)}.`);
  await stage.setFaults({});
  say("  The reconciler asks the bank what became of it. The client sends the same request again:");
  const { problems, end } = await settledAfter(stage, { order: overdue, payments: paid + 1 });
  if (end.kind === "settled" && !end.replayed) {
    say(
      "  The bank did not know of it yet. That proves nothing, so the reconciler had it cancelled: the bank will",
    );
    say("  refuse it when it arrives. Only then was the client's next try let through, and it paid.");
  }
  await arrived;
  await untilQuiet();
  const payments = (await ledger()).length - paid;
  say(`  By now the first order has arrived. Payments for it at the bank: ${payments}.`);
  return payments === 1 ? problems : [...problems, `overdue was paid ${payments} times`];
}

/** Well beyond the time that we wait for the bank, and the reconciler's first look. */
const OVERDUE_MS = 12_000;

/** What has just arrived is decided by then. */
function untilQuiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_000));
}

/** Asks again until there is an answer, says what is heard on the way, and counts the payments. */
async function settledAfter(
  { client, ledger, say }: Stage,
  { order, payments }: { readonly order: Ordered; readonly payments: number },
): Promise<{ readonly problems: readonly string[]; readonly end: Told }> {
  const end = await client.untilSettled(order, (told) => say(`    ${said(told)}`));
  const made = (await ledger()).length - payments + 1;
  say(`  Payments for it at the bank: ${made}.`);
  const settled = end.kind === "settled" ? [] : [`${order.key} was never settled: ${said(end)}`];
  return { problems: made === 1 ? settled : [...settled, `${order.key} was paid ${made} times`], end };
}

/** A storm may be told to wait, and nothing worse. */
function wrongOf(told: readonly Told[]): readonly string[] {
  return told.flatMap((each) =>
    each.kind === "wrong" || each.kind === "cut" ? [`a copy heard ${said(each)}`] : [],
  );
}
