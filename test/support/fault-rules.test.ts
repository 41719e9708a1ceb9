import { afterEach, expect, test } from "vitest";
import { startFaultProxy } from "./fault-proxy.ts";
import { holds } from "./fault-rules.ts";
import { until } from "./processes.ts";
import { closePeers, dial, greeted, proxiedEcho, startEcho } from "./tcp-peers.ts";

afterEach(closePeers);

test("bytes are found across chunks; what came before stays with the target", async () => {
  const { proxy, echo } = await proxiedEcho();
  proxy.plan({ when: holds("COMMIT", "request"), fault: { kind: "cut_before" } });
  const client = dial(proxy.port);
  for (const [part, sofar] of [
    ["a COM", "a COM"],
    ["M", "a COMM"],
  ] as const) {
    client.socket.write(part);
    await until(() => client.text() === sofar);
  }
  client.socket.write("IT b");
  await until(() => client.ended() === "reset");
  expect(echo.text()).toBe("a COMM");
});

test("bytes that have been found are not found again in the next chunk", async () => {
  const { proxy } = await proxiedEcho();
  proxy.plan({ when: holds("hello", "request"), fault: { kind: "delay", ms: 0 } });
  const client = await greeted(proxy);
  client.socket.write("!");
  await until(() => client.text() === "hello!");
  expect(proxy.happened("delay")).toBe(1);
});

test("a rule holds n times, the first that was planned decides, and none is left after heal", async () => {
  const { proxy } = await proxiedEcho();
  const seen: number[] = [];
  const isRequest = holds("h", "request");
  proxy.plan({ when: isRequest, fault: { kind: "delay", ms: 0 }, times: 2 });
  proxy.plan({
    when: (passage) => isRequest(passage) && seen.push(passage.connection) > 0,
    fault: { kind: "half_close", direction: "request" },
  });
  for (let each = 0; each < 3; each += 1) await greeted(proxy);
  expect([proxy.happened("delay"), seen]).toEqual([2, [3]]);
  proxy.heal();
  await greeted(proxy);
  expect(seen).toEqual([3]);
});

test("a rule that throws cuts the connection, and close tells of it", async () => {
  const echo = await startEcho();
  const proxy = await startFaultProxy({ target: { port: echo.port } });
  proxy.plan({
    when: () => {
      throw new Error("no such rule");
    },
    fault: { kind: "hold" },
  });
  const client = dial(proxy.port);
  client.socket.write("hello");
  await until(() => client.ended() === "reset");
  await expect(proxy.close()).rejects.toThrow(/no such rule/);
});

test("a pattern that no rule could see whole is refused", () => {
  expect(() => holds("x".repeat(1025), "request")).toThrow(/1024 bytes/);
});
