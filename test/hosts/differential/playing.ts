import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { NotPerformed, OutcomeUnknown, PermanentFailure } from "../../../src/errors.ts";
import type { HeaderLine } from "../wire.ts";
import type { Act, Failure, NativeScript, Piece } from "./script.ts";

/** Plays a script on Node's own response, and returns what a handler of its kind returns. */
export function playNative({ acts, settles }: NativeScript, response: ServerResponse): unknown {
  const atOnce = () => {
    for (const act of acts) perform(act, response);
  };
  switch (settles) {
    case "promise":
      return inTurn(acts, response);
    case "at once":
      return atOnce();
    case "callback":
      setImmediate(atOnce);
      return undefined;
  }
}

async function inTurn(acts: readonly Act[], response: ServerResponse): Promise<void> {
  for (const act of acts) {
    if (act.act === "wait") await sleep(act.ms);
    else perform(act, response);
  }
}

function perform(act: Act, response: ServerResponse): void {
  switch (act.act) {
    case "status":
      response.statusCode = act.status;
      if (act.message !== null) response.statusMessage = act.message;
      return;
    case "set":
      return void response.setHeader(act.name, typeof act.value === "object" ? [...act.value] : act.value);
    case "append":
      return void response.appendHeader(act.name, act.value);
    case "remove":
      return void response.removeHeader(act.name);
    case "head":
      return void writeHead(act, response);
    case "interim":
      return void interim(act.form, response);
    case "flush":
      return void response.flushHeaders();
    case "cork":
      return void response.cork();
    case "uncork":
      return void response.uncork();
    case "late":
      return void late(response);
    case "write":
      return void Reflect.apply(response.write, response, [...given(act.piece), ...callback(act)]);
    case "wait":
      return; // a handler that does not wait has nothing to wait for
    case "trailers":
      return void response.addTrailers(act.headers.map(([name, value]): [string, string] => [name, value]));
    case "pipe":
      return void Readable.from(act.pieces.map(bytesOf)).pipe(response);
    case "end":
      return void Reflect.apply(response.end, response, [
        ...(act.piece === null ? [] : given(act.piece)),
        ...callback(act),
      ]);
    case "throw":
      throw errorOf(act.failure);
  }
}

function writeHead({ form, status, headers }: Act & { act: "head" }, response: ServerResponse): void {
  const given = {
    status: [],
    object: [Object.fromEntries(headers)],
    message: ["Said So", Object.fromEntries(headers)],
    list: [headers.flat()],
  }[form];
  Reflect.apply(response.writeHead, response, [status, ...given]);
}

function interim(form: (Act & { act: "interim" })["form"], response: ServerResponse): void {
  switch (form) {
    case "continue":
      response.writeContinue();
      return;
    case "processing":
      response.writeProcessing();
      return;
    case "hints":
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
  }
}

function late(response: ServerResponse): void {
  try {
    response.setHeader("X-Late", "1");
  } catch (error) {
    response.write(error instanceof Error && "code" in error ? String(error.code) : "no code");
  }
}

function given(piece: Piece): readonly unknown[] {
  if (piece.form === "text") return piece.encoding === null ? [piece.text] : [piece.text, piece.encoding];
  return [bytesOf(piece)];
}

const callback = ({ callback }: { readonly callback: boolean }) => (callback ? [() => {}] : []);

function bytesOf(piece: Piece): Uint8Array {
  if (piece.form === "text") return Buffer.from(piece.text, piece.encoding ?? "utf8");
  const bytes = Buffer.from(piece.hex, "hex");
  return piece.form === "buffer" ? bytes : new Uint8Array(bytes);
}

/** As hosts of Node's kind throw. */
export function errorOf(failure: Failure): Error {
  switch (failure.kind) {
    case "status":
      return Object.assign(new Error(failure.message), failing(failure.status));
    case "none":
      return new Error(failure.message);
    case "not_performed":
      return new NotPerformed("Nothing was sent.");
    case "outcome_unknown":
      return new OutcomeUnknown("Nobody knows.");
    case "permanent":
      return new PermanentFailure({ status: 402, json: { refused: true } });
  }
}

/** Headers of a script as one object, repeated ones as a list. */
export function gathered(headers: readonly HeaderLine[]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, readonly string[]>();
  for (const [name, value] of headers) {
    const known = [...names.keys()].find((each) => each.toLowerCase() === name.toLowerCase()) ?? name;
    names.set(known, [...(names.get(known) ?? []), value]);
  }
  return names;
}

/** In the words of Koa, Express and Fastify. */
const failing = (status: number) => ({ status, statusCode: status, expose: status < 500 });

export async function waited({ waitMs }: { readonly waitMs: number }): Promise<void> {
  if (waitMs > 0) await sleep(waitMs);
}
