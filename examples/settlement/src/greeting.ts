import { randomUUID } from "node:crypto";
import type { Configuration } from "./configuration.ts";

/** What is running, where. */
export interface Whereabouts {
  readonly url: string;
  readonly database: string;
  readonly bankUrl: string;
}

/** What start-up prints: where everything is, and a command to paste that settles something. */
export function greeting(
  { url, database, bankUrl }: Whereabouts,
  { bank, workers, demoToken }: Configuration,
): string {
  const kind = bank.kind === "embedded" ? "a simulator in this process" : "elsewhere";
  const run = workers === "here" ? "in this process" : "not in this process: run npm run worker";
  return [
    `The settlement service answers on ${url} (process ${process.pid})`,
    `  database  ${database}`,
    `  bank      ${bankUrl} (${kind})`,
    `  workers   ${run}`,
    "",
    "Try it; sent again, by you or by chance, it settles once and gives the same answer:",
    "",
    curlOf(url, demoToken ?? "YOUR-TOKEN"),
    "",
  ].join("\n");
}

function curlOf(url: string, token: string): string {
  const body = {
    amount: "12.50",
    currency: "EUR",
    debtor: "Alice",
    creditor: "Bob",
    reference: "invoice 17",
  };
  const headers = [
    `Authorization: Bearer ${token}`,
    `Idempotency-Key: ${randomUUID()}`,
    "Content-Type: application/json",
  ];
  return `curl -i ${url}/settlements ${headers.map((header) => `-H '${header}'`).join(" ")} -d '${JSON.stringify(body)}'`;
}
