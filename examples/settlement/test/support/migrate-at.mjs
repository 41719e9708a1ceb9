// Makes the tables of each place that is named, at the moment that is named with it; several of these run at once.
import { setTimeout as until } from "node:timers/promises";
import { postgresDatabase } from "../../dist/database/postgres.js";
import { sqliteDatabase } from "../../dist/database/sqlite.js";

const [kind, ...moments] = process.argv.slice(2);
for (const moment of moments) {
  const [atMs, place] = moment.split("=", 2);
  const given = { path: place, url: place, storeTimeoutMs: 10_000 };
  const database = await (kind === "SQLite" ? sqliteDatabase(given) : postgresDatabase(given));
  await until(Number(atMs) - Date.now());
  await database.migrate();
  await database.close();
}
