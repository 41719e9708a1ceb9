import type { ProviderKind } from "../../src/core/record.ts";
import type { Effect, Engine } from "../../src/index.ts";
import { answerText, type Judge } from "./judge.ts";
import type { Library } from "./library.ts";
import type { OpenTx, Row } from "./open-tx.ts";
import { operationDoor } from "./operation.ts";
import type { Provider, Seen, Word } from "./provider.ts";
import { meet, type Process, type World } from "./world.ts";

/** Where an effect is, and what its provider offers: each kind is driven through its own public door. */
export type Kind =
  | "local"
  | "local, one commit"
  | "undeclared"
  | `declared ${ProviderKind}`
  | `operation ${ProviderKind}`;

export const KINDS: readonly Kind[] = [
  ...(["local", "local, one commit", "undeclared"] as const),
  ...(["declared repeatable", "declared keyed", "declared query", "declared blind"] as const),
  ...(["operation repeatable", "operation keyed", "operation query", "operation blind"] as const),
];

export const SETTINGS = {
  ...{ requestTimeout: 600, lease: 900, sweepGrace: 300, sweepInterval: 500, reconcileInterval: 500 },
  ...{ storeTimeout: 200, completionTimeout: 200, retention: 20_000, releasedRetention: 20_000 },
  ...{ unknownRetention: 20_000, notFoundGrace: 1_000, maxReconcileLooks: 40 },
};

export const KEY_TTL_MS = 5_000;
export const VALID_FOR_MS = 3_000;

export function providerKindOf(kind: Kind): ProviderKind {
  switch (kind) {
    case "local":
    case "local, one commit":
    case "undeclared":
      return "blind";
    case "declared repeatable":
    case "operation repeatable":
      return "repeatable";
    case "declared keyed":
    case "operation keyed":
      return "keyed";
    case "declared query":
    case "operation query":
      return "query";
    case "declared blind":
    case "operation blind":
      return "blind";
  }
}

export function isLocal(kind: Kind): boolean {
  return kind === "local" || kind === "local, one commit";
}

/** The programmer's own part may fail at any place after its effect. */
export function failsNow(world: World): void {
  if (!world.choices.flag(world.rates.fail)) return;
  meet(world, "the programmer's part failed");
  throw new Error("The programmer's part failed.");
}

/** One request of a client. */
export interface Asking {
  readonly principal: string;
  readonly key: string;
  readonly input: string;
}

/** What a client was told: an answer for good, or that it may ask again. */
export type Reply =
  | { readonly kind: "final"; readonly value: string }
  | { readonly kind: "not now"; readonly why: string };

/** One engine of one process, and the door of its kind. */
export interface Server {
  readonly engine: Engine<OpenTx, "async">;
  readonly ask: (asking: Asking) => Promise<Reply>;
}

export interface ServerOptions {
  readonly kind: Kind;
  readonly world: World;
  readonly library: Library;
  readonly provider: Provider;
  readonly judge: Judge;
  readonly process: Process;
  readonly engine: Engine<OpenTx, "async">;
}

export function createServer(options: ServerOptions): Server {
  const { kind, engine, library, provider, process } = options;
  const offered = providerKindOf(kind);
  if (kind.startsWith("declared") && (offered === "keyed" || offered === "query")) {
    const look = async ({ attempt }: { readonly attempt: { readonly downstreamKey: string } }) =>
      sightedStep(await provider.look(process, attempt.downstreamKey));
    const cancel = async ({ attempt }: { readonly attempt: { readonly downstreamKey: string } }) => {
      const word = await provider.cancel(process, attempt.downstreamKey);
      if (word.kind === "declined") throw new Error("It was declined; look again.");
      return word.kind === "done" ? { kind: "found" as const, result: word.id } : word;
    };
    const charge =
      offered === "keyed"
        ? ({ provider: offered, look, cancel } as const)
        : ({ provider: offered, look, validFor: VALID_FOR_MS } as const);
    library.declareSteps(engine, "pay", { charge });
  }
  return { engine, ask: doorOf(options) };
}

function sightedStep(seen: Seen) {
  switch (seen.kind) {
    case "done":
      return { kind: "found", result: seen.id } as const;
    case "declined":
      return { kind: "refused", failure: seen.value } as const;
    case "not_found":
    case "pending":
      return { kind: seen.kind };
  }
}

function doorOf(options: ServerOptions): Server["ask"] {
  const { kind } = options;
  switch (kind) {
    case "local":
    case "local, one commit":
      return (asking) => localDoor(options, asking);
    case "undeclared":
      return (asking) => undeclaredDoor(options, asking);
    case "declared repeatable":
    case "declared keyed":
    case "declared query":
    case "declared blind":
      return (asking) => declaredDoor(options, asking);
    case "operation repeatable":
    case "operation keyed":
    case "operation query":
    case "operation blind":
      return operationDoor(options);
  }
}

async function localDoor(options: ServerOptions, asking: Asking): Promise<Reply> {
  const { engine, kind, judge, world } = options;
  const scope = `${asking.principal}/${asking.key}`;
  const commits = kind === "local" ? "two" : "one";
  const work = (tx: OpenTx, { number }: { readonly number: number }) => {
    judge.started(scope, number);
    const what = `${options.process.name} ${tx.rows.length} ${number}`;
    const row: Row = { scope, attempt: number, what };
    tx.rows.push(row);
    failsNow(world);
    return answerText(scope, asking.input, number, what);
  };
  return await told(options, () => engine.runInTransaction({ operation: "pay", ...asking, commits }, work));
}

async function undeclaredDoor(options: ServerOptions, asking: Asking): Promise<Reply> {
  const { engine, judge, provider, process } = options;
  const scope = `${asking.principal}/${asking.key}`;
  return await told(options, () =>
    engine.run({ operation: "pay", ...asking }, async ({ number }) => {
      judge.started(scope, number);
      const { input } = asking;
      const call = { key: scope, scope, input, attempt: number, validUntil: null };
      const word = await provider.call(process, call);
      return answerText(scope, asking.input, number, effectOf(options, word));
    }),
  );
}

async function declaredDoor(options: ServerOptions, asking: Asking): Promise<Reply> {
  const { engine, judge, provider, process, world } = options;
  const scope = `${asking.principal}/${asking.key}`;
  return await told(options, () =>
    engine.run({ operation: "pay", ...asking, effects: "declared" }, async ({ number, effect }) => {
      judge.started(scope, number);
      const call = async (
        key: string,
        given: { readonly number: number; readonly validUntil: Date | null },
      ) => {
        const validUntil = given.validUntil?.getTime() ?? null;
        const { input } = asking;
        const sent = { key, scope, input, attempt: given.number, validUntil };
        return effectOf(options, await provider.call(process, sent));
      };
      const id = await charged(options, effect, call);
      failsNow(world);
      return answerText(scope, asking.input, number, id);
    }),
  );
}

type CallOfRun = (
  key: string,
  given: { readonly number: number; readonly validUntil: Date | null },
) => Promise<string>;

function charged({ kind }: ServerOptions, effect: Effect, call: CallOfRun): Promise<string> {
  switch (providerKindOf(kind)) {
    case "repeatable":
      return effect("charge", { provider: "repeatable", keyTtl: KEY_TTL_MS }, call);
    case "blind":
      return effect("charge", { provider: "blind" }, call);
    case "keyed":
    case "query":
      return effect("charge", call);
  }
}

/** What was made, or the provider's refusal as an error. */
function effectOf({ library }: ServerOptions, word: Word): string {
  if (word.kind === "done") return word.id;
  throw new library.PermanentFailure(word.value);
}

/** What `run` brings, in the client's terms; errors that nobody may expect are findings. */
async function told({ library, judge }: ServerOptions, run: () => Promise<string>): Promise<Reply> {
  try {
    return { kind: "final", value: await run() };
  } catch (error) {
    if (error instanceof library.PermanentFailure) return { kind: "final", value: String(error.answer) };
    if (error instanceof library.OncekeyError) return { kind: "not now", why: error.code };
    if (error instanceof Error && EXPECTED.test(error.message)) return { kind: "not now", why: "threw" };
    judge.report("L5", `a client met ${String(error)}`);
    return { kind: "not now", why: "unexpected" };
  }
}

const EXPECTED = /the connection broke|The programmer's part failed|was cancelled|Too late|Too old/;
