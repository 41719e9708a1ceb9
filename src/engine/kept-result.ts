import { OncekeyError } from "../errors.ts";
import { encodeValue } from "./values.ts";

/** The bytes of what a call returned; a typed error where they cannot be made, which leaves the effect in doubt. */
export function keptResult(step: string, value: unknown): Uint8Array {
  const encoded = encodeValue(value);
  if (encoded.kind === "encoded") return encoded.bytes;
  const said = isResponse(value)
    ? "is a Response, whose body is not read yet; read it first, and return what it says"
    : `cannot be kept: ${encoded.path} ${encoded.reason}; return plain data instead`;
  const message = `The result of ${step} ${said}. The call was made, so its outcome counts as unknown.`;
  throw new OncekeyError("value_unsupported", message);
}

/** The one of Node, and those of libraries that look like it. */
function isResponse(value: unknown): boolean {
  return typeof value === "object" && value !== null && "bodyUsed" in value && "status" in value;
}
