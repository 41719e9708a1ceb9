/** A currency that the service settles in. */
export type Currency = string & { readonly [CURRENCY]: true };

declare const CURRENCY: unique symbol;

/** An amount that was read, or what is wrong with it. */
export type AmountReading =
  | { readonly kind: "amount"; readonly minorUnits: bigint }
  | { readonly kind: "invalid"; readonly reason: string };

/** Says whether the service knows this code, and thereby how many decimals its amounts have. */
export function isCurrency(code: string): code is Currency {
  return EXPONENTS.has(code);
}

/**
 * Reads a decimal string, exactly: digits without superfluous zeros in front, at most as many decimals as the currency
 * has, no sign, no exponent, no blanks. Zero only where it is said to be welcome.
 */
export function parseAmount(
  text: string,
  currency: Currency,
  { zero = "refused" }: { readonly zero?: "refused" | "welcome" } = {},
): AmountReading {
  const exponent = exponentOf(currency);
  const [, whole, decimals = ""] = SYNTAX.exec(text) ?? [];
  if (whole === undefined)
    return { kind: "invalid", reason: `must be a decimal string such as ${example(exponent)}` };
  if (whole.length > MOST_DIGITS) {
    return { kind: "invalid", reason: `must have at most ${MOST_DIGITS} digits before the decimal point` };
  }
  if (decimals.length > exponent) {
    return { kind: "invalid", reason: `must have at most ${exponent} decimals in ${currency}` };
  }
  const minorUnits = BigInt(whole + decimals.padEnd(exponent, "0"));
  if (minorUnits === 0n && zero === "refused") return { kind: "invalid", reason: "must be above zero" };
  return { kind: "amount", minorUnits };
}

/** Writes minor units as people do, with all the decimals of the currency: 1250 as "12.50" in EUR, as "1250" in JPY. */
export function formatAmount(minorUnits: bigint, currency: Currency): string {
  const exponent = exponentOf(currency);
  if (exponent === 0) return minorUnits.toString();
  const digits = minorUnits.toString().padStart(exponent + 1, "0");
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/** The most that one account holds, in minor units: the largest amount, far below the end of a 64-bit integer. */
export const MOST_MINOR_UNITS = 999_999_999_999_999_999n;

/** With three decimals they stay within `MOST_MINOR_UNITS`. */
const MOST_DIGITS = 15;

const SYNTAX = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/** ISO 4217, without funds codes, metals and the two units of account that have four decimals. */
const CODES_BY_EXPONENT: readonly (readonly [exponent: number, codes: string])[] = [
  [0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"],
  [
    2,
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP " +
      "CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES " +
      "KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK " +
      "NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB " +
      "TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW",
  ],
  [3, "BHD IQD JOD KWD LYD OMR TND"],
];

const EXPONENTS: ReadonlyMap<string, number> = new Map(
  CODES_BY_EXPONENT.flatMap(([exponent, codes]) => codes.split(" ").map((code) => [code, exponent] as const)),
);

function exponentOf(currency: Currency): number {
  const exponent = EXPONENTS.get(currency);
  if (exponent === undefined) throw new RangeError(`The currency ${currency} is unknown.`);
  return exponent;
}

function example(exponent: number): string {
  return exponent === 0 ? '"12"' : `"12.${"50".padEnd(exponent, "0")}"`;
}
