import { describe, expect, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { protect } from "../../src/http/fetch.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { untyped } from "./untyped.ts";

describe("what plain JavaScript may get wrong is refused by name when it is made", () => {
  const engine = createEngine({ store: memoryStore() });

  test("an engine without a store", () => {
    expect(() => createEngine(untyped({}))).toThrow(expect.objectContaining({ field: "store" }));
  });

  test("a route without a principal", () => {
    const make = () => protect(engine, untyped({}), () => new Response());
    expect(make).toThrow(expect.objectContaining({ code: "configuration", field: "principal" }));
  });

  test("a watched handle whose statements would not be seen", () => {
    for (const handle of [{}, { selectFrom: () => {}, executeQuery: () => {} }])
      expect(() => engine.watch(handle)).toThrow(expect.objectContaining({ field: "handle" }));
  });

  test("commits in a call that has none", async () => {
    const request = { operation: "o", principal: "p", key: "k", commits: "one" };
    await expect(engine.run(request, () => 1)).rejects.toMatchObject({ field: "commits" });
  });
});
