// Builds the library, then every workspace that is compiled against it. Plain tsc, no bundler.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, rmSync } from "node:fs";

for (const project of [".", "examples/settlement"]) {
  if (!existsSync(`${project}/tsconfig.json`)) continue;
  rmSync(`${project}/dist`, { recursive: true, force: true });
  const { status } = spawnSync("npx", ["--no-install", "tsc", "-p", project], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

// npm makes a command executable when it links it, which may be before this has run.
chmodSync("dist/cli/main.js", 0o755);
