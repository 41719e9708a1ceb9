// One host in a process of its own, so that its processor time is told from its clients'. Forked by hosts.mjs.
import { once } from "node:events";
import { createEngine } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { HOSTS } from "./host-servers.mjs";

const engine = createEngine({ store: memoryStore(), allowMemoryStore: true });
const server = await HOSTS[process.argv[2]](engine);
if (!server.listening) await once(server.listen(0, "127.0.0.1"), "listening");
process.send({ port: server.address().port });
// Microseconds of all threads of this process so far.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpuUs: user + system });
});
process.once("disconnect", () => process.exit());
