import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startProcess } from "../../../test/support/processes.ts";
import { type Books, differencesIn } from "../src/demo/books.ts";

const DEMO = fileURLToPath(new URL("../dist/demo/main.js", import.meta.url));

test("the demonstration shows a storm, a kill -9 and a late bank, finds its books right, and ends with 0", {
  timeout: 300_000,
}, async () => {
  const env = {
    NODE_ENV: "production",
    DATABASE_URL: "",
    TOKENS: "",
    ADMIN_TOKEN: "",
    PORT: "1",
    BANK_PORT: "1",
  };
  const demo = await startProcess({ command: process.execPath, args: [DEMO], env });
  const end = await demo.exited;
  const said = demo.stdout.join("\n");
  expect(demo.stderr).toEqual([]);
  expect(said).toMatch(/1\. A retry storm.*all 10 orders have their answer. Payments at the bank: 10\./s);
  expect(said).toMatch(/kill -9\.\n {2}The client hears: no answer.*201, the kept answer/s);
  expect(said).toMatch(/orders +13\n +settlements +13, 13 of them settled\n +bank's payments 13\n/);
  expect(said).toContain("Every order was paid once");
  expect(end).toEqual({ code: 0, signal: null });
});

const order = { key: "one", amount: "10.50" };
const settlement = { id: "s", status: "settled", amount: "10.50", reference: "one", externalReference: "p" };
const payment = { id: "p", amount: "10.50", reference: "one" };
const right: Books = { ordered: [order], settlements: [settlement], payments: [payment] };

const wrong: readonly (readonly [what: string, books: Partial<Books>])[] = [
  ["an order paid twice", { payments: [payment, { ...payment, id: "q" }] }],
  ["an order that nobody paid", { payments: [] }],
  ["an order without a settlement", { settlements: [] }],
  ["an order with two settlements", { settlements: [settlement, settlement] }],
  ["a settlement left unsettled", { settlements: [{ ...settlement, status: "pending" }] }],
  ["a settlement of another payment", { settlements: [{ ...settlement, externalReference: "q" }] }],
  ["another amount", { payments: [{ ...payment, amount: "10.51" }] }],
  ["a payment that nobody ordered", { payments: [payment, { ...payment, reference: "two" }] }],
];
test.each(wrong)("the demonstration's count finds %s", (_, books) => {
  expect(differencesIn(right)).toEqual([]);
  expect(differencesIn({ ...right, ...books })).toHaveLength(1);
});
