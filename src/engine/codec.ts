import { OncekeyError } from "../errors.ts";
import { decodeValue, encodeValue } from "./values.ts";

/** Keeps values of one type: what was encoded as a `T` comes back as one. */
export interface Codec<T> {
  readonly encode: (value: T) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => T;
}

/** `what` names the value in the error that tells the programmer it cannot be kept. */
export function codec<T>(what: string): Codec<T> {
  return {
    encode: (value) => {
      const encoded = encodeValue(value);
      if (encoded.kind === "encoded") return encoded.bytes;
      const { path, reason } = encoded;
      throw new OncekeyError(
        "value_unsupported",
        `${what} cannot be kept: ${path} ${reason}. Return plain data instead.`,
      );
    },
    decode: (bytes) => decodeValue(bytes) as T,
  };
}
