// Loaded before the service: lets the statement with which a settlement is finished go wrong, inside its transaction.
// FINISH_FAULT is `kill`, or `busy xx.`: the first two of these statements meet a file that another process has locked.
import { isBuiltin, register } from "node:module";
import pg from "pg";

const DRIVER = isBuiltin("node:sqlite") ? "node:sqlite" : "@photostructure/sqlite";
const real = await import(DRIVER);

// What the service finds in the place of its driver, whose own methods cannot be replaced.
export class DatabaseSync extends real.DatabaseSync {
  prepare(text) {
    strike(text);
    return super.prepare(text);
  }
}

const [kind, plan = ""] = (process.env["FINISH_FAULT"] ?? "").split(" ");
let tried = 0;

function strike(text) {
  if (typeof text !== "string" || !text.startsWith("UPDATE settlements SET status =")) return;
  if (!text.includes("external_reference =")) return;
  if (kind === "kill") process.kill(process.pid, "SIGKILL");
  if (kind !== "busy" || plan[tried++] !== "x") return;
  throw Object.assign(new Error("database is locked"), { code: "ERR_SQLITE_ERROR", errcode: 5 });
}

const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (text, ...rest) {
  strike(text);
  return query.call(this, text, ...rest);
};

const own = JSON.stringify(import.meta.url);
const resolving = `export const resolve = (specifier, context, next) =>
  specifier === ${JSON.stringify(DRIVER)} && context.parentURL !== ${own}
    ? { url: ${own}, shortCircuit: true }
    : next(specifier, context)`;
register(`data:text/javascript,${encodeURIComponent(resolving)}`);
