import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import express, { type NextFunction, type Request, type Response } from "express";
import { idempotency, protect } from "../../../src/http/express.ts";
import { listening } from "../hosts.ts";
import { errorOf, gathered, playNative, waited } from "./playing.ts";
import type { Material } from "./script.ts";
import { type DifferentialHost, type DifferentialSite, OPTIONS } from "./site.ts";

/** The types are those of 5, which has the same methods. */
const express4: typeof express = createRequire(import.meta.url)("express4");

export const expressHosts = (): readonly DifferentialHost[] => [
  expressHost("Express 5", express, "route"),
  expressHost("Express 4", express4, "route"),
  expressHost("Express 5, mounted", express, "mount"),
  expressHost("Express 4, mounted", express4, "mount"),
];

function expressHost(name: string, create: typeof express, by: "route" | "mount"): DifferentialHost {
  return {
    ...{ name, ways: Object.keys(WAYS), native: true, framesAnew: false },
    ...{ share: by === "route" ? 1 : 1 / 3 },
    ...{ hearsThrows: by === "route", dropsEmpty: false },
    serve: async (site) => {
      const app = create();
      app.set("env", "production"); // its error page shows no stack then
      const handler = handlerOf(site);
      const bare = (request: Request, response: Response, next: NextFunction) => {
        const failed = (error: unknown) => next(error);
        try {
          void Promise.resolve(handler(request, response)).catch(failed);
        } catch (error) {
          failed(error);
        }
      };
      app.all("/bare/:n", bare);
      if (by === "mount") app.use(idempotency(site.engine, OPTIONS));
      app.all("/kept/:n", by === "mount" ? bare : protect(site.engine, OPTIONS, handler));
      return await listening(createServer(app).listen(0, "127.0.0.1"));
    },
  };
}

function handlerOf(site: DifferentialSite) {
  return (request: Request, response: Response): unknown => {
    const script = site.enter(request.method, request.originalUrl);
    return script.kind === "native" ? playNative(script, response) : answered(script.way, script, response);
  };
}

async function answered(way: string, material: Material, response: Response): Promise<void> {
  await waited(material);
  response.status(material.status);
  for (const [name, values] of gathered(material.headers)) {
    const [only = ""] = values;
    response.set(name, values.length === 1 ? only : [...values]);
  }
  if (material.failure !== null) throw errorOf(material.failure);
  await WAYS[way]?.(response, material);
}

const WAYS: Readonly<Record<string, (response: Response, material: Material) => unknown>> = {
  json: (response, { json }) => response.json(json),
  "send text": (response, { text }) => response.send(text),
  "send bytes": (response, { bytes }) => response.send(Buffer.from(bytes)),
  "send an object": (response, { json }) => response.send({ json }),
  "send nothing": (response) => response.send(),
  sendStatus: (response, { status }) => response.sendStatus(status),
  "type and send": (response, { text }) => response.type("txt").send(text),
  redirect: (response) => response.redirect("/charges/1"),
  "location, vary and end": (response) => response.location("/charges/1").vary("Accept").end(),
  "cookie and json": (response, { json }) => response.cookie("sid", "A").append("Link", "<c>").json(json),
  "attachment and send": (response, { bytes }) => response.attachment("a.bin").send(Buffer.from(bytes)),
  "write and end": async (response, material) => {
    for (const piece of material.pieces) {
      response.write(piece);
      await waited(material);
    }
    response.end();
  },
  pipe: (response, { pieces }) => void Readable.from(pieces).pipe(response),
  sendFile: (response) => response.sendFile(fileURLToPath(import.meta.url)),
  "end bytes": (response, { bytes }) => response.end(bytes),
};
