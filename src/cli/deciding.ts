import { userInfo } from "node:os";
import type { Command } from "commander";
import type { Identity } from "../core/record.ts";
import type { Engine } from "../engine/engine.ts";
import { type PersonsVerdict, type Resolved, resolve, undecided } from "../worker/resolve.ts";
import { onRecords, type Place, withEngine } from "./opening.ts";
import { type Format, print } from "./output.ts";
import { nameOf, plain } from "./records.ts";
import {
  choosesMany,
  choosingMany,
  identityIn,
  namingOne,
  type Selection,
  unknownOnes,
} from "./selecting.ts";

/** What a command that overrides is told beside the verdict. */
export interface Overriding extends Place, Format, Selection {
  readonly reason: string;
  readonly actor?: string;
  readonly dryRun: boolean;
}

/** Adds what every command has by which a person overrides. */
export function overriding(command: Command): Command {
  return choosingMany(namingOne(onRecords(command)))
    .requiredOption("--reason <text>", "why; it is kept in the log")
    .option("--actor <name>", "who decides (the user of this machine)")
    .option("--dry-run", "show what would be decided, and change nothing", false);
}

/** Carries a verdict out for everything that was chosen; fails where one of them was not resolved. */
export async function decide(
  url: string | undefined,
  options: Overriding,
  command: Command,
  verdict: PersonsVerdict,
): Promise<void> {
  const { reason, actor = userInfo().username, dryRun } = options;
  if (reason.trim() === "") command.error("error: --reason must say why");
  const many = choosesMany(options, command);
  const one = many ? null : identityIn(options, command);
  await withEngine(url, options, command, async ({ engine }) => {
    const chosen = one === null ? await identitiesOf(engine, options) : [one];
    const outcomes: Outcome[] = [];
    for (const identity of chosen) {
      const resolved = dryRun
        ? await wouldBe(engine, identity)
        : await resolve(engine, identity, verdict, { actor, reason });
      outcomes.push(outcomeOf(identity, resolved));
    }
    const text = outcomes.length === 0 ? "Nothing was chosen." : outcomes.map(({ text }) => text).join("\n");
    const document = { dryRun, outcomes: outcomes.map(({ text: _text, ...rest }) => rest) };
    print({ text, document }, options);
    const left = outcomes.filter(({ outcome }) => outcome !== "resolved" && outcome !== "would be resolved");
    if (left.length > 0) process.exitCode = 1;
  });
}

async function identitiesOf({ store }: Engine, selection: Selection): Promise<readonly Identity[]> {
  return (await unknownOnes(store, selection)).map(({ identity }) => identity);
}

type WouldBe = { readonly kind: "would be resolved" };

/** What stands, as far as a look can tell. */
async function wouldBe({ store }: Engine, identity: Identity): Promise<Resolved | WouldBe> {
  const { record, now } = await store.read(identity);
  const standing = undecided(record, now);
  return "kind" in standing ? standing : { kind: "would be resolved" };
}

interface Outcome {
  readonly identity: Identity;
  readonly outcome: (Resolved | WouldBe)["kind"];
  readonly state: string | null;
  readonly text: string;
}

function outcomeOf(identity: Identity, resolved: Resolved | WouldBe): Outcome {
  const state = "record" in resolved ? (resolved.record?.state ?? null) : null;
  const text = `${plain(nameOf(identity))}: ${wordsFor(resolved)}`;
  return { identity, outcome: resolved.kind, state, text };
}

function wordsFor(resolved: Resolved | WouldBe): string {
  switch (resolved.kind) {
    case "resolved":
      return `resolved, now ${resolved.record.state}`;
    case "would be resolved":
      return "would be resolved";
    case "absent":
      return "there is no record";
    case "running":
      return `its attempt is alive (its lease has ${Math.ceil(resolved.leaseLeftMs / 1_000)} s left): only it knows; left as it is`;
    case "ended":
      return `has ended already: ${resolved.record.state}; left as it is`;
    case "taken":
      return "a request or a worker has taken it over just now; look again";
    case "kept_for_later":
      return "the operation's rows could not be finished now; the result is kept, and the reconciler finishes";
    case "operation_unknown":
      return `its operation (${plain(resolved.record.operation)}) is not known here: give --config`;
    case "sealed":
      return "what its operation needs is sealed by a key that is not here: give the key, or an answer to keep";
  }
}
