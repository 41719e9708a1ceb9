import type { Statement } from "./connector.ts";
import type { Parameters } from "./sql.ts";

/**
 * A statement with its parameters written into it, so that several can go in one message and any driver can send it. Its
 * text is of letters, digits and harmless signs only, whatever the values hold: no setting of the session
 * (`standard_conforming_strings`, `client_encoding`) and no placeholder of a driver can change what it means.
 */
export function inlined({ text, values }: Statement): string {
  return text.replace(PARAMETER, (_, number: string, type: string) => {
    return `${literal(values[Number(number) - 1])}::${type}`;
  });
}

/** As `parameters` of `sql.ts`, for a statement that is never sent with parameters: what is added is written in at once. */
export function literals(): Parameters {
  return { values: [], add: (value, type) => `${literal(value)}::${type}` };
}

/** As `parameters` in `sql.ts` names them. */
const PARAMETER = /\$(\d+)::(\w+)/g;

/** Text in which nothing could be read as anything but itself; JSON of plain values, too. */
const HARMLESS = /^[\w .,:;/+="{}[\]-]*$/;

function literal(value: unknown): string {
  if (value === null) return "NULL";
  if (typeof value === "number") return `'${value}'`;
  if (value instanceof Uint8Array) return decoded(value);
  if (typeof value !== "string") throw new Error(`A ${typeof value} cannot be written into a statement.`);
  return HARMLESS.test(value) ? `'${value}'` : `convert_from(${decoded(Buffer.from(value))}, 'UTF8')`;
}

function decoded(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  return `decode('${Buffer.from(buffer, byteOffset, byteLength).toString("base64")}', 'base64')`;
}
