import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** A way of answering by Node's own response. */
export interface Way {
  readonly name: string;
  readonly answer: (response: ServerResponse) => unknown;
}

const later = (milliseconds = 15) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const way = (name: string, answer: Way["answer"]): Way => ({ name, answer });

/** Each way in which Node lets a response be answered, its odd forms included. */
export const NATIVE_WAYS: readonly Way[] = [
  way("end of text", (response) => response.end("made")),
  way("end of text in an encoding, and a callback", (response) => response.end("6d616465", "hex", () => {})),
  way("end of bytes", (response) => response.end(Uint8Array.of(0, 255, 1))),
  way("end of nothing", (response) => response.end()),
  way("end of an empty text", (response) => response.end("")),
  way("end with a callback only", (response) => response.end(() => {})),
  way("a status and a message", (response) => {
    response.statusCode = 202;
    response.statusMessage = "Taken In";
    response.end("made");
  }),
  way("headers in an odd spelling", (response) => {
    response.setHeader("X-ODD-Name", "1");
    response.setHeader("x-list", ["a", "b"]);
    response.setHeader("X-Number", 7);
    response.end("made");
  }),
  way("writeHead and end", (response) => response.writeHead(201, { "X-Own": "1" }).end("made")),
  way("writeHead with a message", (response) =>
    response.writeHead(201, "Made It", { "X-Own": "1" }).end("made"),
  ),
  way("writeHead with a flat list, repeats and all", (response) =>
    response.writeHead(201, ["Link", "<a>", "X-Own", "1", "LINK", "<b>"]).end("made"),
  ),
  way("writeHead with two spellings of one name", (response) =>
    response.writeHead(201, { link: "<a>", LINK: ["<b>", "<c>"], "X-Own": "1" }).end("made"),
  ),
  way("writeHead over headers that were set", (response) => {
    response.setHeader("X-Own", "0");
    response.setHeader("X-Kept", "1");
    response.writeHead(201, ["X-Own", "1", "X-Own", "2"]).end("made");
  }),
  way("writeHead with a length", (response) => response.writeHead(201, { "Content-Length": 4 }).end("made")),
  way("write, write, end", (response) => {
    response.write("a");
    response.write(Buffer.from("b"), () => {});
    response.end("c");
  }),
  way("write in an encoding", (response) => {
    response.write("6162", "hex");
    response.end();
  }),
  way("slow pieces", async (response) => {
    for (const piece of ["a", "b", "c"]) {
      response.write(piece);
      await later();
    }
    response.end();
  }),
  way("slow pieces of a known length", async (response) => {
    response.setHeader("Content-Length", "3");
    for (const piece of ["a", "b", "c"]) {
      response.write(piece);
      await later();
    }
    response.end();
  }),
  way("slow bytes under a header outside ASCII", async (response) => {
    response.setHeader("X-Name", "caf\u00e9");
    response.write(Buffer.from("a"));
    await later();
    response.end(Buffer.from("b"));
  }),
  way("flushHeaders, then the body", async (response) => {
    response.setHeader("X-Own", "1");
    response.flushHeaders();
    await later();
    response.end("made");
  }),
  way("cork and uncork", (response) => {
    response.cork();
    response.write("a");
    response.write("b");
    response.uncork();
    response.end();
  }),
  way("trailers", (response) => {
    response.writeHead(200, { Trailer: "X-Sum" });
    response.write("made");
    response.addTrailers({ "X-Sum": "4" });
    response.end();
  }),
  way("an interim answer first", (response) => {
    response.writeProcessing();
    response.end("made");
  }),
  way("a pipe of a file", (response) => {
    createReadStream(new URL(import.meta.url)).pipe(response);
  }),
  way("a pipeline of much", (response) =>
    pipeline(Readable.from(Array.from({ length: 60 }, () => Buffer.alloc(10_000, "x"))), response),
  ),
  way("nothing by its status, and a body all the same", (response) => {
    response.statusCode = 204;
    response.end("dropped");
  }),
  way("not modified", (response) => response.writeHead(304, { ETag: '"1"' }).end()),
  way("reset content", (response) => response.writeHead(205, { "Content-Length": 0 }).end()),
  way("a redirect", (response) => response.writeHead(303, { Location: "/charges/1" }).end()),
  way("ended twice", (response) => {
    response.end("first");
    response.end();
  }),
  way("written after its end", (response) => {
    response.on("error", () => {});
    response.end("first");
    response.write("second");
  }),
  way("by a callback", (response) => void setTimeout(() => response.end("made"), 15)),
  way("a header that is set too late", (response) => {
    response.write("a");
    try {
      response.setHeader("X-Late", "1");
    } catch (error) {
      response.write(error instanceof Error && "code" in error ? String(error.code) : "");
    }
    response.end();
  }),
  way("a status that cannot be", (response) => {
    try {
      response.writeHead(99);
    } catch (error) {
      response.statusCode = 400;
      response.end(String(error));
    }
  }),
  way("what is told of it in between", (response) => {
    const told = () => [response.headersSent, response.writableEnded].join();
    const before = told();
    response.writeHead(200);
    const between = told();
    response.write(`${before} ${between}`);
    response.end();
  }),
];
