import { createServer } from "node:http";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import * as ofExpress from "oncekey/express";
import * as ofFastify from "oncekey/fastify";
import { protect as protectFetch } from "oncekey/fetch";
import { protect as protectHono } from "oncekey/hono";
import * as ofKoa from "oncekey/koa";
import { protect as protectNode } from "oncekey/node";

/**
 * Each host with one handler, which reads a JSON body as its host does and answers with JSON, on three paths: bare on
 * `/bare`, behind `protect` on `/kept`, and behind what protects a whole application on `/mounted`.
 */
export const HOSTS = {
  "node:http": async (engine) => nodeListener(engine),
  "Express 5": async (engine) => expressListener(express, engine),
  "Express 4": async (engine) => expressListener(createRequire(import.meta.url)("express4"), engine),
  Koa: async (engine) => koaListener(engine),
  Fastify: async (engine) => await fastifyListener(engine),
  Hono: async (engine) => honoServer(engine),
  fetch: async (engine) => fetchServer(engine),
};

const OPTIONS = { principal: () => "bench" };
const KEYLESS = { ...OPTIONS, required: false };

/** What every handler answers, about as long as what it is asked. */
const answerTo = ({ id }) => ({ id, status: "booked", note: "n".repeat(900) });

function nodeListener(engine) {
  const handle = async (request, response) => {
    const answer = JSON.stringify(answerTo(JSON.parse(await text(request))));
    response.writeHead(201, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(answer),
    });
    response.end(answer);
  };
  const paths = {
    "/bare": handle,
    "/kept": protectNode(engine, OPTIONS, handle),
    "/mounted": protectNode(engine, KEYLESS, handle),
  };
  return createServer((request, response) => void paths[request.url](request, response));
}

function expressListener(create, engine) {
  const handle = (request, response) => void response.status(201).json(answerTo(request.body));
  const app = create();
  app.use(create.json({ verify: ofExpress.keepBytes }));
  app.post("/bare", handle);
  app.post("/kept", ofExpress.protect(engine, OPTIONS, handle));
  app.use("/mounted", ofExpress.idempotency(engine, OPTIONS));
  app.post("/mounted", handle);
  return createServer(app);
}

function koaListener(engine) {
  const handle = async (context) => {
    context.status = 201;
    context.body = answerTo(JSON.parse(await text(context.req)));
  };
  const kept = ofKoa.protect(engine, OPTIONS, handle);
  const mount = ofKoa.idempotency(engine, OPTIONS);
  const paths = {
    "/bare": handle,
    "/kept": kept,
    "/mounted": (context) => mount(context, () => handle(context)),
  };
  const app = new Koa();
  app.use((context) => paths[context.path](context, async () => {}));
  return createServer(app.callback());
}

async function fastifyListener(engine) {
  const handle = async (request, reply) => {
    reply.code(201);
    return answerTo(request.body);
  };
  const app = Fastify();
  app.post("/bare", handle);
  await app.register(async (scope) => {
    scope.addHook("preParsing", ofFastify.rawBody);
    scope.post("/kept", ofFastify.protect(engine, OPTIONS, handle));
  });
  await app.register(async (scope) => {
    await scope.register(ofFastify.idempotency(engine, OPTIONS));
    scope.post("/mounted", handle);
  });
  await app.ready();
  return app.server;
}

function honoServer(engine) {
  const handle = async (c) => c.json(answerTo(await c.req.json()), 201);
  const app = new Hono();
  app.post("/bare", handle);
  app.post("/kept", protectHono(engine, OPTIONS, handle));
  app.post("/mounted", protectHono(engine, KEYLESS, handle));
  return serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
}

function fetchServer(engine) {
  const handle = async (request) => Response.json(answerTo(await request.json()), { status: 201 });
  const paths = {
    "/bare": handle,
    "/kept": protectFetch(engine, OPTIONS, handle),
    "/mounted": protectFetch(engine, KEYLESS, handle),
  };
  const fetch = (request) => paths[new URL(request.url).pathname](request);
  return serve({ fetch, port: 0, hostname: "127.0.0.1" });
}
