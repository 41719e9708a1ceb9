import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";

/** The engine as it ships, or a copy of it that was broken on purpose. */
export type Library = typeof import("../../src/index.ts");

/** Node itself loads it, so that what runs is what is published, at its own speed. */
const load: (path: string) => Library = createRequire(import.meta.url);

export const ROOT: string = new URL("../../", import.meta.url).pathname;
export const BUILT: string = join(ROOT, "dist");

export function libraryIn(folder: string = BUILT): Library {
  if (folder === BUILT) refuseStale();
  return load(join(folder, "index.js"));
}

/** A build that is older than its sources would pass for them. */
function refuseStale(): void {
  for (const layer of ["core", "engine", "stores", "worker"]) {
    for (const name of readdirSync(join(ROOT, "src", layer))) {
      if (!name.endsWith(".ts")) continue;
      const source = statSync(join(ROOT, "src", layer, name)).mtimeMs;
      const built = statSync(join(BUILT, layer, name.replace(/\.ts$/, ".js")), {
        throwIfNoEntry: false,
      })?.mtimeMs;
      if (built === undefined || built < source)
        throw new Error(`dist is older than src/${layer}/${name}: run npm run build.`);
    }
  }
}

/** Lets everything happen that waits for no time and no reply. */
export const drained: () => void = checkpoint();

/** V8 runs its microtasks when it is asked to, where nothing else is running them: not inside a promise. */
function checkpoint(): () => void {
  setFlagsFromString("--allow-natives-syntax");
  const made: unknown = new Function("%PerformMicrotaskCheckpoint()");
  if (!isAction(made)) throw new Error("A function was not made.");
  return made;
}

function isAction(value: unknown): value is () => void {
  return typeof value === "function";
}
