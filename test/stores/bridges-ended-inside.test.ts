import { describe, expect, test } from "vitest";
import { seen } from "../../src/core/transition.ts";
import { onEveryLayer } from "./bridges-layers.ts";
import { begun, completedFrom } from "./postgres-server.ts";

describe("a unit that a layer of the user's opens, and whose work ends the transaction itself", () => {
  onEveryLayer((given) => {
    test.each(["rollback", "commit"])("with a %s keeps no answer", async (text) => {
      const { store, statement, effects } = given();
      const record = await begun(store, text);
      const unit = store.fenced({ kind: "held", seen: seen(record) }, async (tx) => {
        await statement(tx, `insert into effects values ('${text}')`);
        await statement(tx, text);
        return { kind: "commit", write: completedFrom(record), value: null };
      });
      await expect(unit).rejects.toMatchObject({
        ...{ code: "not_performed", message: expect.stringMatching(/ended inside it/) },
      });
      expect((await store.read(record.identity)).record).toEqual(record);
      expect((await effects()).includes(text)).toBe(text === "commit");
    });

    test("without a ground is told so too", async () => {
      const { store, statement, effects } = given();
      const unit = store.transaction(async (tx) => {
        await statement(tx, "insert into effects values ('no ground')");
        await statement(tx, "rollback");
        return { kind: "commit", value: null };
      });
      await expect(unit).rejects.toMatchObject({ code: "not_performed" });
      expect(await effects()).not.toContain("no ground");
    });
  });
});
