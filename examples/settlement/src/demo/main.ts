import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Act, acts } from "./acts.ts";
import { differencesIn } from "./books.ts";
import { openStage, type Stage } from "./stage.ts";

const VERDICT =
  "\nEvery order was paid once, and every settlement names the bank's own payment for it. Nobody was told anything that was not so.";

// Ends with 1 where anything was not as it should be. DATABASE_URL, if set, is where the service's tables go.
const folder = mkdtempSync(join(tmpdir(), "settlement-demo-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const problems = await demonstrate(process.env["DATABASE_URL"] || `sqlite:${join(folder, "demo.sqlite")}`);
process.exit(problems.length === 0 ? 0 : 1);

async function demonstrate(databaseUrl: string): Promise<readonly string[]> {
  const stage = await openStage(folder, databaseUrl);
  const { say, server, bank } = stage;
  say("What becomes of payments when everything goes wrong that can. It takes about a minute.");
  say(
    `A settlement service (process ${server().pid}) and a bank (process ${bank.pid}); ${placeOf(databaseUrl)}.`,
  );
  const problems: string[] = [];
  for (const [index, act] of acts.entries()) problems.push(...(await played(stage, act, index + 1)));
  problems.push(...(await counted(stage)));
  say(problems.length === 0 ? VERDICT : `\nThis is wrong:\n  ${problems.join("\n  ")}`);
  await Promise.all([server().kill(), bank.kill()]);
  return problems;
}

async function played(stage: Stage, { title, play }: Act, number: number): Promise<readonly string[]> {
  stage.say(`\n${number}. ${title}`);
  return await play(stage);
}

async function counted({ ordered, settlements, ledger, say }: Stage): Promise<readonly string[]> {
  const books = { ordered, settlements: await settlements(), payments: await ledger() };
  const settled = books.settlements.filter(({ status }) => status === "settled").length;
  say("\nThe books");
  say(`  orders          ${ordered.length}`);
  say(`  settlements     ${books.settlements.length}, ${settled} of them settled`);
  say(`  bank's payments ${books.payments.length}`);
  return differencesIn(books);
}

/** Never with its password. */
function placeOf(databaseUrl: string): string {
  return databaseUrl.startsWith("sqlite:")
    ? "both keep their books in SQLite files"
    : "the service on its own database";
}
