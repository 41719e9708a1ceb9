// Ends the PostgreSQL server of one folder, then removes the folder, once its standard input closes.
// Plain JavaScript because it runs on its own: it must outlive the test run that started it.
import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [, , home] = process.argv;
if (home === undefined) throw new Error("guardian.mjs needs the folder it guards as its argument.");

process.stdin.resume();
process.stdin.on("end", async () => {
  const pid = serverOf(home);
  // SIGINT asks for a fast stop; SIGQUIT, for a server that ignored it, drops everything.
  if (pid !== undefined && !(await ends(pid, "SIGINT")) && !(await ends(pid, "SIGQUIT")))
    process.exitCode = 1;
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

/** The pid is the one the server wrote into its own folder, so it can be nobody else's server. */
function serverOf(folder) {
  try {
    return Number(readFileSync(`${folder}/data/postmaster.pid`, "utf8").split("\n")[0]);
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function ends(pid, signal) {
  for (let waitedMs = 0; waitedMs < 10_000; waitedMs += 50) {
    try {
      process.kill(pid, waitedMs === 0 ? signal : 0);
    } catch (error) {
      if (error.code === "ESRCH") return true;
      throw error;
    }
    await sleep(50);
  }
  return false;
}
