import fc from "fast-check";
import { expect, test } from "vitest";
import { seed } from "../../../test/support/seed.ts";
import {
  type Currency,
  formatAmount,
  isCurrency,
  MOST_MINOR_UNITS,
  parseAmount,
} from "../src/domain/money.ts";

const [EUR, JPY, KWD] = [currency("EUR"), currency("JPY"), currency("KWD")];

test("an amount has as many decimals as its currency, or fewer", () => {
  expect(parseAmount("12.50", EUR)).toEqual({ kind: "amount", minorUnits: 1250n });
  expect(parseAmount("12.5", EUR)).toEqual({ kind: "amount", minorUnits: 1250n });
  expect(parseAmount("12", EUR)).toEqual({ kind: "amount", minorUnits: 1200n });
  expect(parseAmount("0.01", EUR)).toEqual({ kind: "amount", minorUnits: 1n });
  expect(parseAmount("12", JPY)).toEqual({ kind: "amount", minorUnits: 12n });
  expect(parseAmount("0.125", KWD)).toEqual({ kind: "amount", minorUnits: 125n });
  for (const [text, currency] of [
    ["12.505", EUR],
    ["12.0", JPY],
    ["1.0001", KWD],
  ] as const) {
    expect(parseAmount(text, currency)).toMatchObject({
      kind: "invalid",
      reason: expect.stringContaining("decimals"),
    });
  }
});

test("what is not a plain decimal above zero is refused", () => {
  const texts = [
    "",
    " 1",
    "1 ",
    "+1",
    "-1",
    "01",
    ".5",
    "5.",
    "1e3",
    "1,50",
    "0x10",
    "NaN",
    "Infinity",
    "1_000",
    "١",
  ];
  for (const text of texts) expect(parseAmount(text, EUR), text).toMatchObject({ kind: "invalid" });
  for (const zero of ["0", "0.00"]) {
    expect(parseAmount(zero, EUR)).toEqual({ kind: "invalid", reason: "must be above zero" });
    expect(parseAmount(zero, EUR, { zero: "welcome" })).toEqual({ kind: "amount", minorUnits: 0n });
  }
});

test("the largest amount fits every database, and one digit more is refused", () => {
  const largest = parseAmount(`${"9".repeat(15)}.999`, KWD);
  expect(largest).toEqual({ kind: "amount", minorUnits: MOST_MINOR_UNITS });
  expect(MOST_MINOR_UNITS * 2n).toBeLessThan(2n ** 63n);
  expect(parseAmount("1".repeat(16), JPY)).toMatchObject({ kind: "invalid" });
});

test("what is written is read back as the same money, in every kind of currency", () => {
  const money = fc.tuple(
    fc.bigInt({ min: 1n, max: MOST_MINOR_UNITS / 1000n }),
    fc.constantFrom(EUR, JPY, KWD),
  );
  fc.assert(
    fc.property(money, ([minorUnits, currency]) => {
      expect(parseAmount(formatAmount(minorUnits, currency), currency)).toEqual({
        kind: "amount",
        minorUnits,
      });
    }),
    { seed: seed() },
  );
  expect(formatAmount(5n, EUR)).toBe("0.05");
  expect(formatAmount(0n, EUR)).toBe("0.00");
  expect(formatAmount(1250n, JPY)).toBe("1250");
});

test("only codes of ISO 4217 are currencies", () => {
  for (const code of ["eur", "EU", "XXX", "toString", ""]) expect(isCurrency(code), code).toBe(false);
});

function currency(code: string): Currency {
  if (isCurrency(code)) return code;
  throw new Error(`${code} is no currency.`);
}
