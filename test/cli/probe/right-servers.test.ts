import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../../src/engine/engine.ts";
import { protect } from "../../../src/http/node.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { commandIsBuilt, oncekey } from "../../support/command.ts";
import { freePort } from "../../support/processes.ts";
import { startSettlement } from "../../support/settlement.ts";
import { listening, RIGHT, startKeyedServer } from "./keyed-server.ts";
import { faultsIn, findingsOf, settingsFor, unshownIn } from "./settings.ts";

beforeAll(commandIsBuilt);

const ALICE = ["--header", "Authorization: Bearer demo-alice"];
const BOB = ["--other-header", "Authorization: Bearer demo-bob"];

test("a server made of this library's own node:http host on the memory store keeps every promise", async () => {
  const findings = await findingsOf(settingsFor(await startOwnServer()));
  expect(faultsIn(findings)).toEqual([]);
  expect(unshownIn(findings)).toEqual([]);
});

test("the settlement service keeps every promise that its endpoint can show, and the command says so with 0", async () => {
  const { url, ledger } = await startSettlementAndBank();
  const order = { amount: "12.50", currency: "EUR", debtor: "Ada", creditor: "Bert", reference: "invoice 7" };
  const { code, stdout, stderr } = await oncekey(
    ...["probe", `${url}/settlements`, "--body", JSON.stringify(order), ...ALICE, ...BOB],
    ...["--count-url", ledger, "--json"],
  );
  expect(stderr).toBe("");
  const report = JSON.parse(stdout);
  const not = (verdict: string) =>
    report.checks.filter((check: { verdict: string }) => check.verdict === verdict).map(nameOf);
  expect(not("fault")).toEqual([]);
  expect(not("not shown")).toEqual(["empty-answers", "binary-answers", "error-answers"]);
  expect({ code, faults: report.faults }).toEqual({ code: 0, faults: 0 });
});

test("faults end the command with 1, and the report says what they mean and what mends them", async () => {
  const base = await startKeyedServer({ ...RIGHT, identity: (_, key) => key });
  const { code, stdout } = await oncekey(
    ...["probe", `${base}/orders`, "--body", '{"amount":1}', "--header", "Authorization: Bearer s3cret-a"],
    ...["--other-header", "Authorization: Bearer s3cret-b", "--count-url", `${base}/count`],
  );
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^FAULT +principal: .*\n +tried .*\n +came .*\n +means .*\n +mend .*\n +docs +docs\/guide\/probe\.md#principal$/m,
  );
  expect(stdout).toMatch(/^1 fault; 3 of 24 checks could not be shown/m);
  expect(stdout).not.toMatch(/s3cret/);
});

test("what cannot be probed ends the command with 2 and says why, to programs as well", async () => {
  const away = await oncekey("probe", `http://127.0.0.1:${await freePort()}/orders`, "--json");
  expect(away).toMatchObject({ code: 2, stderr: "" });
  expect(JSON.parse(away.stdout)).toEqual({
    error: { code: null, message: expect.stringMatching(/^could not probe: .*ECONNREFUSED/) },
  });
  const base = await startKeyedServer(RIGHT);
  const missing = await oncekey("probe", `${base}/orders`, "--count-url", `${base}/orders`);
  expect(missing).toMatchObject({ code: 2, stdout: "" });
});

test.each([
  [["http://192.0.2.1/orders"], /192\.0\.2\.1 is not this machine.*--yes-this-host 192\.0\.2\.1/],
  [["http://localhost.example/", "--yes-this-host", "localhost"], /localhost\.example is not this machine/],
  [["http://127.0.0.1/", "--count-url", "http://192.0.2.1/"], /192\.0\.2\.1 is not this machine/],
  [["http://127.0.0.1/", "--other-path", "//192.0.2.1/x"], /192\.0\.2\.1 is not this machine/],
  [["http://a:b@127.0.0.1/"], /a name or a password/],
  [["http://127.0.0.1/", "--header", "a: b\nc: d"], /holds what no header may/],
  [["http://127.0.0.1/", "--method", "get"], /a method that changes something/],
  [["http://127.0.0.1/", "--copies", "1000000"], /from 2 to 100/],
])("%j is refused with 2 before anything is sent", async (parameters, reason) => {
  const { code, stderr } = await oncekey("probe", ...parameters);
  expect(code).toBe(2);
  expect(stderr).toMatch(reason);
});

function nameOf({ check }: { readonly check: string }): string {
  return check;
}

async function startOwnServer(): Promise<string> {
  const engine = createEngine({ store: memoryStore() });
  onTestFinished(() => engine.close());
  let effects = 0;
  const serve = protect(
    engine,
    { principal: (request: IncomingMessage) => request.headers.authorization ?? "" },
    async (request: IncomingMessage, response: ServerResponse) => {
      await pause(20); // long enough to be met by a copy
      effects += 1;
      answer(request.url ?? "", response);
    },
  );
  return await listening(
    createServer((request, response) => {
      if (request.url === "/count") response.end(String(effects));
      else void serve(request, response);
    }),
  );
}

function answer(path: string, response: ServerResponse): void {
  response.setHeader("Set-Cookie", `sid=${randomUUID()}`);
  if (path === "/empty") response.writeHead(204).end();
  else if (path === "/binary") response.writeHead(200, { "Content-Type": "image/png" }).end(randomBytes(64));
  else if (path === "/declined") response.writeHead(402).end("No.");
  else response.writeHead(201, { Location: `/orders/${randomUUID()}` }).end(randomUUID());
}

async function startSettlementAndBank(): Promise<{ readonly url: string; readonly ledger: string }> {
  const folder = mkdtempSync(join(tmpdir(), "probe-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const bank = String(await freePort());
  const { url, process } = await startSettlement({ DATA_DIR: folder, BANK_PORT: bank });
  onTestFinished(async () => {
    process.kill("SIGKILL");
    await process.exited;
  });
  return { url, ledger: `http://127.0.0.1:${bank}/ledger` };
}
