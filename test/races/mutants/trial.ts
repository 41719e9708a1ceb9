import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seededChoices } from "../choices.ts";
import type { Kind } from "../kinds.ts";
import { BUILT, type Library, libraryIn, ROOT } from "../library.ts";
import { played } from "../play.ts";
import { drawnSetup } from "../swarm.ts";
import type { Fared, Mutant } from "./mutant.ts";
import { protocolMutants } from "./protocol.ts";
import { storeMutants } from "./stores.ts";
import { workMutants } from "./work.ts";

export const mutants: readonly Mutant[] = [...storeMutants, ...protocolMutants, ...workMutants];

/** A copy of the built engine with the mutant's texts in it; `remove` takes it away. */
export function mutated({ name, edits = [] }: Mutant): {
  readonly library: Library;
  readonly remove: () => void;
} {
  if (edits.length === 0) return { library: libraryIn(), remove: () => {} };
  const folder = mkdtempSync(join(ROOT, "node_modules", ".races-"));
  cpSync(BUILT, folder, {
    recursive: true,
    filter: (path) => !path.endsWith(".map") && !path.endsWith(".d.ts"),
  });
  for (const { file, from, to } of edits) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    if (text.split(from).length !== 2)
      throw new Error(`"${name}": ${file} does not hold its text once: ${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  }
  return { library: libraryIn(folder), remove: () => rmSync(folder, { recursive: true }) };
}

/** Plays schedules of one kind until one breaks a promise; yields after each. */
export function* tried(
  mutant: Mutant,
  library: Library,
  kind: Kind,
  { seed, most }: Trying,
): Generator<void, Fared, void> {
  const flaw = mutant.flaw === undefined ? {} : { flaw: mutant.flaw, storeOnTrial: true };
  for (let after = 1; after <= most; after += 1) {
    const choices = seededChoices(seed + after);
    const { violation } = played(drawnSetup(choices, [kind]), { library, choices, ...flaw });
    if (violation !== null) return { kind: "killed", after, violation };
    yield;
  }
  return { kind: "survived", schedules: most };
}

export interface Trying {
  readonly seed: number;
  readonly most: number;
}
