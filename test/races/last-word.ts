import { scopeOf } from "./judge.ts";
import { isLocal, type Kind, providerKindOf, type Reply } from "./kinds.ts";
import { drained } from "./library.ts";
import { type Client, type Play, settles } from "./schedule.ts";

/** A client that keeps asking, once everything else is at rest: it must hear the end, or that a person has to find out. */
export function asksAgain(play: Play, client: Client, meanwhile: () => void): void {
  const { judge, world, database, setup, servers } = play;
  const [at] = servers;
  const scope = scopeOf(client.asking);
  for (let round = 0; at !== undefined && round < LAST_ROUNDS && judge.violation() === null; round += 1) {
    let heard: Reply | null = null;
    const since = judge.epochOf(scope);
    world.trace?.(`${client.name} asks a last time`);
    at.server()
      .ask(client.asking)
      .then(
        (reply) => {
          heard = reply;
        },
        (error: unknown) => judge.report("L5", `a door threw ${String(error)}`),
      );
    drained();
    settles(play, 1_000);
    const reply: Reply | null = heard;
    if (isFinal(play, client, reply, since)) return;
    world.nowMs += 1_500;
    meanwhile();
  }
  const states = [...database.records.values()].map(({ state }) => state);
  judge.report("L2", `${scope} of ${setup.kind} never heard the end of it: ${states.join(", ")}`);
}

const LAST_ROUNDS = 8;

function isFinal(
  { judge, setup, world }: Play,
  { asking }: Client,
  reply: Reply | null,
  since: number,
): boolean {
  if (reply === null) return false;
  world.trace?.(`  and is told ${reply.kind === "final" ? reply.value : reply.why}`);
  if (reply.kind === "final") {
    judge.told({ scope: scopeOf(asking), input: asking.input, value: reply.value, since });
    return true;
  }
  if (reply.why === "key_reused" || reply.why === "mismatch") return true;
  return reply.why === "outcome_unknown" && mayStayUnknown(setup.kind);
}

/** Only effects about which nobody can be asked may be left to a person. */
export function mayStayUnknown(kind: Kind): boolean {
  if (isLocal(kind)) return false;
  const offered = providerKindOf(kind);
  return offered === "blind" || offered === "repeatable";
}
