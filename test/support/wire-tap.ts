import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** What was said between clients and a PostgreSQL server, in plain text and word for word. */
export interface WireTap {
  /** Leads through the tap to where the given URL leads. */
  readonly url: string;
  /** Every text that was sent to be carried out, or to be prepared. */
  readonly texts: readonly string[];
  /** The names under which statements were prepared; the unnamed one has none. */
  readonly preparedNames: readonly string[];
  /** The SQLSTATE of every error and of every notice that came back. */
  readonly complaints: readonly string[];
  readonly close: () => Promise<void>;
}

/** Listens on a port of its own, passes everything on unchanged to the server behind `url`, and writes down what it hears. */
export async function openWireTap(url: string): Promise<WireTap> {
  const target = new URL(url);
  const heard = { texts: [] as string[], preparedNames: [] as string[], complaints: [] as string[] };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const end = () => [client, upstream].forEach((socket) => void socket.destroy());
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.on(
      "data",
      frames("untyped first", (message) => hearClient(message, heard)),
    );
    upstream.on(
      "data",
      frames("all typed", (message) => hearServer(message, heard)),
    );
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The system named no port.");
  const through = new URL(url);
  through.host = `127.0.0.1:${address.port}`;
  return {
    ...{ url: through.href, ...heard },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

interface Heard {
  readonly texts: string[];
  readonly preparedNames: string[];
  readonly complaints: string[];
}

interface Message {
  readonly type: string;
  readonly body: Buffer;
}

/** Puts messages together from the chunks of one direction; a client's first message has no type. */
function frames(
  start: "untyped first" | "all typed",
  hear: (message: Message) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let typeBytes = start === "untyped first" ? 0 : 1;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= typeBytes + LENGTH_BYTES) {
      const end = typeBytes + rest.readInt32BE(typeBytes); // the length counts itself
      if (rest.length < end) return;
      const type = rest.toString("latin1", 0, typeBytes);
      hear({ type, body: rest.subarray(typeBytes + LENGTH_BYTES, end) });
      rest = rest.subarray(end);
      typeBytes = 1;
    }
  };
}

const LENGTH_BYTES = 4;

function hearClient({ type, body }: Message, { texts, preparedNames }: Heard): void {
  const [first = "", second = ""] = body.toString("utf8").split("\0");
  if (type === "Q") texts.push(first);
  if (type !== "P") return;
  texts.push(second);
  if (first !== "") preparedNames.push(first);
}

/** The fields of an error or a notice each begin with their letter; `C` is the code. */
function hearServer({ type, body }: Message, { complaints }: Heard): void {
  if (type !== "E" && type !== "N") return;
  const code = body
    .toString("utf8")
    .split("\0")
    .find((field) => field.startsWith("C"));
  complaints.push(code?.slice(1) ?? "no code");
}
