import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { startProcess } from "../../../test/support/processes.ts";
import { type DatabaseName, databases, freshPlace, temporaryFolder } from "./support/places.ts";

describe.for(databases)("tables on $name", ({ name, skip }) => {
  test.skipIf(skip)("are made once by four processes that make them at the same moment", async () => {
    const places = await emptyPlaces(name, name === "SQLite" ? 8 : 4);
    const firstAtMs = Date.now() + 4_000;
    const moments = places.map((place, index) => `${firstAtMs + index * 400}=${place}`);
    const args = [fileURLToPath(new URL("./support/migrate-at.mjs", import.meta.url)), name, ...moments];
    const started = await Promise.all(
      Array.from({ length: 4 }, () => startProcess({ command: process.execPath, args })),
    );
    const codes = (await Promise.all(started.map(({ exited }) => exited))).map(({ code }) => code);
    expect(started.flatMap(({ stderr }) => stderr)).toEqual([]);
    expect(codes).toEqual([0, 0, 0, 0]);
  });
});

async function emptyPlaces(name: DatabaseName, count: number): Promise<readonly string[]> {
  if (name === "SQLite") {
    const folder = temporaryFolder();
    return Array.from({ length: count }, (_, index) => join(folder, `${index}.db`));
  }
  const places = await Promise.all(Array.from({ length: count }, () => freshPlace(name)));
  return places.map(({ environment }) => environment.DATABASE_URL);
}
