import fc from "fast-check";

const units = fc.array(fc.oneof(fc.nat({ max: 0xffff }), fc.constantFrom(0xd800, 0xdc00, 0x22)), {
  maxLength: 5,
});
const strings = units.map((codes) => String.fromCharCode(...codes));

/** Whatever can be kept, of any shape. */
export const values: fc.Arbitrary<unknown> = fc.anything({
  key: fc.oneof(strings, fc.constantFrom("__proto__", "$date", "$object", "$", "0", "constructor", "toJSON")),
  values: [
    fc.constantFrom<unknown>(undefined, null, true, false, Number.NaN, -0, Number.POSITIVE_INFINITY),
    fc.constant(new Date(Number.NaN)),
    fc.double(),
    fc.bigInt(),
    strings,
    fc.date({ noInvalidDate: false }),
    fc.uint8Array({ maxLength: 8 }),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  ],
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
});

/** The plainer form in which a value comes back. */
export function plainer(value: unknown): unknown {
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return Array.from(value, plainer);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [plainer(key), plainer(item)]));
  if (value instanceof Set) return new Set([...value].map(plainer));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plainer(item)]));
}

/** The value with a mark for each invalid date, because two of them are not deeply equal in Node 20. */
export function marked(value: unknown): unknown {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? Symbol.for("invalid date") : value;
  if (Array.isArray(value)) return value.map(marked);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [marked(key), marked(item)]));
  if (value instanceof Set) return new Set([...value].map(marked));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, marked(item)]));
}
