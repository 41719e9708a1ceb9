import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";

/** What a figure is worth nothing without. */
export function circumstances() {
  const [first] = cpus();
  return {
    takenAt: new Date().toISOString(),
    node: process.version,
    oncekey: versionOf("oncekey"),
    platform: `${process.platform} ${process.arch}`,
    cpus: cpus().length,
    cpuModel: first?.model.trim() ?? "unknown",
  };
}

/** Of the last minute; more than there are processors means that others were at work, too. */
export function loadAverage() {
  return Number(loadavg()[0].toFixed(2));
}

/** The version of an installed package, whether or not it exports its own description. */
export function versionOf(name) {
  let folder = dirname(createRequire(import.meta.url).resolve(name));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  const described = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (described.name !== name) throw new Error(`Found ${described.name} instead of ${name}.`);
  return described.version;
}
