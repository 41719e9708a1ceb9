import type { Command } from "commander";
import { onRecords, type Place, withEngine } from "../opening.ts";
import { type Format, print } from "../output.ts";
import { auditOf, documentOf, nameOf, plain, table } from "../records.ts";
import { identityIn, namingOne, type Selection } from "../selecting.ts";

/** `oncekey show`: one record, and what people overrode about it; of its answer the status and the size. */
export function addShow(program: Command): void {
  namingOne(onRecords(program.command("show").description("Show one record and its log."))).action(
    (url: string | undefined, options: Place & Format & Selection, command: Command) => {
      const identity = identityIn(options, command);
      return withEngine(url, options, command, async ({ engine: { store } }) => {
        const { record, now } = await store.read(identity);
        if (record === null) throw new Error(`There is no record of ${nameOf(identity)}.`);
        const audits = (await store.audits(identity)).map(auditOf);
        const document = { record: documentOf(record, now), audits };
        const lines = Object.entries(document.record).map(([name, value]) => [name, shown(value)]);
        const log = audits.map((entry) => Object.values(entry).map((value) => value ?? "–"));
        const text = [table(lines), ...(log.length === 0 ? [] : ["", "log", table(log)])].join("\n");
        print({ text, document }, options);
      });
    },
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? plain(value) : JSON.stringify(value);
}
