import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { type Direction, type Fault, type Link, openLink } from "./fault-link.ts";
import { openRuleDesk, type Reader, type Rule } from "./fault-rules.ts";

export interface FaultProxyOptions<Message> {
  readonly target: { readonly host?: string; readonly port: number };
  /** Makes a reader for each direction of each connection; it sees all bytes, whatever rules there are. */
  readonly reader?: (direction: Direction) => Reader<Message>;
}

export interface FaultProxy<Message> {
  readonly port: number;
  /** The same URL, by way of this proxy. */
  readonly url: (direct: string) => string;
  /** Adds a rule. Of all that hold for a chunk, the one planned first decides. */
  readonly plan: (rule: Rule<Message>) => void;
  /** Forgets every rule; what is under way stays so. */
  readonly heal: () => void;
  /** Lets go on whatever is held. */
  readonly release: () => void;
  /** How often a fault of this kind really happened; a planned one that met no bytes did not. */
  readonly happened: (kind: Fault["kind"]) => number;
  /** How many connections have an open socket on either side, or bytes that wait. */
  readonly connections: () => number;
  /** Resets every connection, on both sides. */
  readonly cutAll: () => void;
  /** Ends it all and waits until every socket is closed; rejects if a rule, a reader or the listening itself failed. */
  readonly close: () => Promise<void>;
}

/** Listens on a free port of 127.0.0.1 and passes every connection on to `target`, but for the faults that are planned. */
export async function startFaultProxy<Message = never>({
  target,
  reader = () => () => [],
}: FaultProxyOptions<Message>): Promise<FaultProxy<Message>> {
  const { plan, heal, judge, count, happened } = openRuleDesk(reader);
  const { hold, release } = createGate();
  const links = new Map<Link, Promise<void>>();
  const failures: unknown[] = [];
  let accepted = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    accepted += 1;
    const faultFor = judge(accepted);
    const failed = (failure: unknown) => void failures.push(failure);
    const link = openLink({ client, upstream: dial(target), faultFor, failed, hold, happened: count });
    const over = link.over.then(() => void links.delete(link));
    links.set(link, over);
  });
  server.on("error", (failure) => failures.push(failure));
  const port = await listen(server);
  const cutAll = () => {
    for (const link of links.keys()) link.cut();
  };
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    cutAll();
    await Promise.all([...links.values(), closed]);
    if (failures.length > 0) throw new AggregateError(failures, `The proxy failed: ${failures.join("; ")}`);
  };
  const connections = () => links.size;
  const url = (direct: string) => throughPort(direct, port);
  return { port, url, plan, heal, release, happened, connections, cutAll, close };
}

/** Where held chunks wait. */
function createGate() {
  const held = new Set<() => void>();
  const hold = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const go = () => {
        held.delete(go);
        resolve();
      };
      if (signal.aborted) return resolve();
      held.add(go);
      signal.addEventListener("abort", go, { once: true });
    });
  const release = () => {
    for (const go of held) go();
  };
  return { hold, release };
}

function dial({ host = "127.0.0.1", port }: FaultProxyOptions<unknown>["target"]): Socket {
  return connect({ host, port, allowHalfOpen: true, noDelay: true });
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  return address.port;
}

function throughPort(direct: string, port: number): string {
  const url = new URL(direct);
  url.host = `127.0.0.1:${port}`;
  return url.href;
}
