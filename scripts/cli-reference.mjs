// Writes docs/reference/cli.md from the built command's own help, or prints it: node scripts/cli-reference.mjs [--print]
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const main = join(root, "dist/cli/main.js");

/** The page as it should be. */
function reference() {
  const help = (...names) =>
    execFileSync(process.execPath, [main, ...names, "--help"], {
      encoding: "utf8",
      env: { ...process.env, COLUMNS: "100" },
    }).trimEnd();
  const whole = help();
  const names = [...whole.slice(whole.indexOf("Commands:")).matchAll(/^ {2}([a-z]+)\b/gm)].map(
    ([, name]) => name,
  );
  const commands = names.filter((name) => name !== "help");
  const sections = commands.map((name) => `## ${name}\n\n\`\`\`text\n${help(name)}\n\`\`\`\n`);
  return [
    "# The command line",
    "",
    "`oncekey` looks after the records of a store. What runs and when is in [the guide to the workers](../guide/workers.md).",
    "This page is made of the command's own help by `scripts/cli-reference.mjs`.",
    "",
    "It ends with 0 when it did its work, with 1 when it could not (of many, when one of them was left as it was), and with 2 when",
    "its arguments make no sense; `probe` with 1 where it found faults and with 2 where it could not probe. With `--json` it prints",
    "one JSON document, `worker` one on each line. Passwords are never shown. Of a kept answer only the status, the names of its",
    "headers and its size are shown; [`probe`](../guide/probe.md) shows the beginnings of the answers that it gets.",
    "",
    ...sections,
  ].join("\n");
}

if (process.argv[2] === "--print") process.stdout.write(reference());
else writeFileSync(join(root, "docs/reference/cli.md"), reference());
