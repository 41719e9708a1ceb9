import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { ConfigurationError, REGISTRY } from "../../src/errors.ts";
import { protect } from "../../src/http/fetch.ts";
import { sharedPrincipal } from "../../src/http/guests.ts";
import { type PolicyDocument, policyDocument } from "../../src/http/policy/document.ts";
import { openApiOf } from "../../src/http/policy/openapi.ts";
import { memoryStore } from "../../src/stores/memory.ts";

const engine = createEngine({ store: memoryStore(), retention: "7d" });
const payments = { operation: "pay", ignore: ["/client_ts"], fingerprintHeaders: ["x-branch"], strict: true };
const routes = [
  { method: "POST", path: "/payments", options: payments },
  { method: "post", path: "/mails", options: { required: false, mode: "raw" } },
  { method: "PATCH", path: "/orders/{id}", options: { effects: "transaction" } },
  { method: "PUT", path: "/orders/{id}", options: { effects: "declared" } },
  { method: "POST", path: "/settlements", options: {}, isOperation: true },
] as const;

const made = (): PolicyDocument => policyDocument(engine, { title: "Keys at the bank", routes });

describe("the policy document", () => {
  test("is a valid part of an OpenAPI 3.1 description, and every reference in it leads somewhere", async () => {
    const { openapi } = made();
    const whole = { openapi: "3.1.0", info: { title: "A bank", version: "1" }, ...openapi };
    const validator = new Validator();
    const result = await validator.validate(JSON.parse(JSON.stringify(whole)));
    expect(result).toMatchObject({ valid: true });
    const references = [...JSON.stringify(openapi).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
      ([, to = ""]) => to,
    );
    expect(references.length).toBeGreaterThan(20);
    for (const reference of references) expect(at(whole, reference.split("/")), reference).toBeDefined();
  });

  test("asks for a key where the route does, in the form that the route takes", () => {
    const { openapi } = made();
    const parameter = (path: string, method: string) => {
      const found = at(openapi, ["paths", path, method, "parameters", "0", "$ref"]);
      return at(openapi, String(found).slice(2).split("/"));
    };
    expect(parameter("/payments", "post")).toMatchObject({
      in: "header",
      name: "Idempotency-Key",
      required: true,
      schema: { pattern: '^".+"' },
    });
    expect(parameter("/mails", "post")).toMatchObject({ required: false });
    expect(Object.keys(Object(at(openapi, ["paths", "/orders/{id}"])))).toEqual(["patch", "put"]);
  });

  test("names every problem that a route answers with, under its status, and no others", async () => {
    const { openapi } = made();
    const codesAt = (path: string, method: string, status: number) =>
      at(openapi, [
        ...["paths", path, method, "responses", String(status), "content", "application/problem+json"],
        ...["schema", "allOf", "1", "properties", "code", "enum"],
      ]);
    const met: Record<string, number> = {};
    const route = protect(engine, { principal: () => "alice" }, async () => {
      throw new Error("nobody knows");
    });
    for (const headers of [
      {},
      { "idempotency-key": "" },
      { "idempotency-key": "a" },
      { "idempotency-key": "a" },
    ]) {
      const answer = await route(new Request("http://a.test/settlements", { method: "POST", headers })).catch(
        () => null,
      );
      if (answer === null) continue;
      met[String(at(await answer.json(), ["code"]))] = answer.status;
    }
    expect(met).toMatchObject({ key_missing: 400, key_invalid: 400, outcome_unknown: 409 });
    for (const [code, status] of Object.entries(met))
      expect(codesAt("/settlements", "post", status), code).toContain(code);
    expect(codesAt("/mails", "post", 400)).toEqual(["key_invalid"]);
    expect(codesAt("/orders/{id}", "put", 503)).toContain("unfinished");
    expect(codesAt("/orders/{id}", "patch", 503)).not.toContain("unfinished");
  });

  test("tells people the rules of the keys, what is kept for how long, what is the same, and the errors", () => {
    const { page } = made();
    expect(page).toContain("# Keys at the bank\n");
    expect(page).toContain("`POST /payments` must have a key, in double quotes");
    expect(page).toContain("`POST /mails` may have a key; without one it is not protected");
    expect(page).toContain("kept for 7 days");
    expect(page).toContain("`x-branch`");
    expect(page).toContain("`/client_ts`");
    expect(page).toContain("compared byte by byte");
    for (const code of ["key_missing", "key_reused", "outcome_unknown", "unfinished"] as const)
      expect(page).toContain(`| \`${code}\` |`);
    expect(page).toContain(`| \`${REGISTRY.key_reused.retry}\` | \`${REGISTRY.key_reused.effect}\` |`);
  });

  test("tells which answers are kept by asking the engine's own rule", () => {
    const { page } = made();
    expect(page).toContain(
      "`POST /payments`, `POST /mails`: kept and repeated: 200–400, 402, 404–407, 409–424, 426–428, 430–499; nothing was done, a repeated request runs anew: 401, 403, 425, 429, 503; the outcome is unknown, a repeated request is told so: 408, 500–502, 504–599.",
    );
    expect(page).toContain(
      "`PATCH /orders/{id}`, `PUT /orders/{id}`: kept and repeated: 200–399, 402, 409–410, 422, 451; nothing was done",
    );
  });

  test("says of a route with a fingerprint of its own that the service decides", () => {
    const options = { fingerprint: () => "order" };
    const { page } = policyDocument(engine, { routes: [{ method: "POST", path: "/forms", options }] });
    expect(page).toContain("What of the body is compared the service decides.");
    expect(page).not.toContain("byte by byte");
  });

  test("says where an answer itself is not kept", () => {
    const { page } = policyDocument(engine, {
      routes: [{ method: "POST", path: "/secrets", options: { store: "none" } }],
    });
    expect(page).toContain("a repeated request hears `response_not_stored` and the status: 200–400");
    expect(page).not.toContain("kept and repeated");
  });

  test("tells of a route's own words: its guests, its permissions and its judgement", () => {
    const options = {
      principal: sharedPrincipal("checkout without login"),
      authorizeReplay: () => true,
      finality: () => "completed" as const,
    };
    const { page } = policyDocument(engine, { routes: [{ method: "POST", path: "/checkouts", options }] });
    expect(page).toMatch(/At `POST \/checkouts` \(checkout without login\).* at least 32 characters/);
    expect(page).toContain("the route may judge an answer otherwise");
    for (const code of ["replay_forbidden", "authorization_failed"]) {
      expect(page).toContain(`| \`${code}\` |`);
      expect(made().page).not.toContain(code);
    }
  });

  test("tells what becomes of an outcome that nobody knows where a route has said so", () => {
    const pageOf = (onAmbiguous: "keep" | "replay" | "rerun") =>
      policyDocument(engine, { routes: [{ method: "POST", path: "/mails", options: { onAmbiguous } }] }).page;
    expect(pageOf("keep")).toContain("the outcome is unknown, a repeated request is told so: 408");
    expect(pageOf("replay")).toContain(
      "kept and repeated: 200–400, 402, 404–424, 426–428, 430–502, 504–599;",
    );
    expect(pageOf("replay")).not.toContain("the outcome is unknown");
    expect(pageOf("rerun")).toContain(
      "the outcome is unknown, a repeated request runs the work again: 408, 500–502, 504–599",
    );
    expect(pageOf("rerun")).not.toContain("is told so");
  });

  test("says nothing twice of routes with the same rule, and changes with the configuration", () => {
    const short = policyDocument(createEngine({ store: memoryStore(), retention: "90m" }), { routes });
    expect(short.page).toContain("kept for 90 minutes");
    expect(short.page).not.toContain("7 days");
    const remembering = createEngine({ store: memoryStore(), retention: "7d", tombstone: "30d" });
    expect(policyDocument(remembering, { routes }).page).toContain(
      "For 30 days after that a request with this key is answered 409 `key_expired`",
    );
    expect(short.page).not.toContain("key_expired`, and nothing is done");
    expect(short.page, "as a record of another process may say").toContain("key_expired");
    expect(openApiOf(routes.slice(1, 2)).components["parameters"]).toEqual({
      IdempotencyKeyOptional: expect.anything(),
    });
  });

  test.each([
    ["no route", []],
    ["a safe method", [{ method: "GET", path: "/", options: {} }]],
    ["no path", [{ method: "POST", path: "payments", options: {} }]],
    ["a route that is observed only", [{ method: "POST", path: "/", options: { observe: true } }]],
    ["one route twice", [routes[1], { ...routes[1], method: "POST" }]],
    ["options that protect would refuse", [{ method: "POST", path: "/", options: { ignore: ["x"] } }]],
  ])("is refused for %s", (_what, wrong) => {
    expect(() => policyDocument(engine, { routes: wrong })).toThrow(ConfigurationError);
  });
});

/** What stands at a path of names in a document. */
function at(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => {
    const key = name.replaceAll("~1", "/");
    return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }, document);
}
