import type { HeaderLine } from "../wire.ts";

/** A handler, as data: it can be drawn, printed, and played on any host any number of times. */
export type Script = NativeScript | OwnScript;

/** Answers by Node's own response. */
export interface NativeScript {
  readonly kind: "native";
  readonly acts: readonly Act[];
  /** `callback`: it has returned, with nothing, before it answers. */
  readonly settles: "promise" | "at once" | "callback";
}

/** Answers in one of the ways that only its host has. */
export interface OwnScript extends Material {
  readonly kind: "own";
  readonly way: string;
}

/** What a host's own way makes an answer of; each takes what it has a use for. */
export interface Material {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly text: string;
  readonly json: unknown;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly pieces: readonly Uint8Array<ArrayBuffer>[];
  /** Before it answers, and between pieces. */
  readonly waitMs: number;
  readonly failure: Failure | null;
}

/** How a handler throws before anything of its answer has left: with a status, without one, or in plain words. */
export type Failure =
  | { readonly kind: "status"; readonly status: number; readonly message: string }
  | { readonly kind: "none"; readonly message: string }
  | { readonly kind: "not_performed" | "outcome_unknown" | "permanent" };

/** A piece of a body, in one of the forms in which Node takes it. */
export type Piece =
  | { readonly form: "text"; readonly text: string; readonly encoding: BufferEncoding | null }
  | { readonly form: "buffer" | "array"; readonly hex: string };

export type Act =
  | { readonly act: "status"; readonly status: number; readonly message: string | null }
  | { readonly act: "set"; readonly name: string; readonly value: string | number | readonly string[] }
  | { readonly act: "append"; readonly name: string; readonly value: string }
  | { readonly act: "remove"; readonly name: string }
  | {
      readonly act: "head";
      readonly form: "status" | "object" | "message" | "list";
      readonly status: number;
      readonly headers: readonly HeaderLine[];
    }
  | { readonly act: "interim"; readonly form: "continue" | "processing" | "hints" }
  | { readonly act: "flush" | "cork" | "uncork" }
  /** Sets a header where none can be set any more, and writes what that was answered with. */
  | { readonly act: "late" }
  | { readonly act: "write"; readonly piece: Piece; readonly callback: boolean }
  | { readonly act: "wait"; readonly ms: number }
  | { readonly act: "trailers"; readonly headers: readonly HeaderLine[] }
  | { readonly act: "pipe"; readonly pieces: readonly Piece[] }
  | { readonly act: "end"; readonly piece: Piece | null; readonly callback: boolean }
  | { readonly act: "throw"; readonly failure: Failure };

/** The failure that a script ends with, and whether its answer had begun by then. */
export function failureOf(script: Script): { readonly failure: Failure; readonly begun: boolean } | null {
  if (script.kind === "own")
    return script.failure === null ? null : { failure: script.failure, begun: false };
  const begun = script.acts.some(({ act }) => BEGINNING.has(act));
  const last = script.acts.at(-1);
  return last?.act === "throw" ? { failure: last.failure, begun } : null;
}

const BEGINNING: ReadonlySet<Act["act"]> = new Set(["head", "flush", "write", "late"]);

/** A script in one line for people. */
export function described(script: Script): string {
  return JSON.stringify(script, (_name, value: unknown) =>
    value instanceof Uint8Array ? shortened(Buffer.from(value).toString("hex")) : shortened(value),
  );
}

function shortened(value: unknown): unknown {
  if (typeof value !== "string" || value.length <= 120) return value;
  return `${value.slice(0, 80)}… (${value.length} characters)`;
}
