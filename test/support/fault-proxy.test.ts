import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { startFaultProxy } from "./fault-proxy.ts";
import { holds } from "./fault-rules.ts";
import { freePort, until } from "./processes.ts";
import { closePeers, dial, greeted, proxiedEcho, startEcho, startFlood, startProxy } from "./tcp-peers.ts";

afterEach(closePeers);

describe("without a rule", () => {
  test("every byte goes through, both ways, and so does the end", async () => {
    const { proxy, echo } = await proxiedEcho();
    const client = dial(proxy.port);
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251));
    client.socket.end(bytes);
    await until(() => client.ended() !== undefined);
    expect(client.bytes().equals(bytes)).toBe(true);
    expect(client.ended()).toBe("fin");
    expect(echo.ended()).toEqual(["fin"]);
    await until(() => proxy.connections() === 0);
  });

  test("the end of the answers leaves the way for requests open", async () => {
    const { proxy, echo } = await proxiedEcho();
    const client = await greeted(proxy);
    echo.mute();
    echo.endAll();
    await until(() => client.ended() === "fin");
    client.socket.end(" and then");
    await until(() => echo.ended().length === 1);
    expect([echo.text(), ...echo.ended()]).toEqual(["hello and then", "fin"]);
    await until(() => proxy.connections() === 0);
  });

  test("a reset on one side is a reset on the other", async () => {
    const { proxy, echo } = await proxiedEcho();
    const first = await greeted(proxy);
    first.socket.resetAndDestroy();
    await until(() => echo.ended().length === 1);
    const second = await greeted(proxy);
    echo.resetAll();
    await until(() => second.ended() !== undefined);
    expect(echo.ended()[0]).toBe("reset");
    expect(second.ended()).toBe("reset");
    await until(() => proxy.connections() === 0);
  });

  test("a target that goes on talking to a client that is gone is reset", async () => {
    const { proxy, echo } = await proxiedEcho({ endsWithClient: false });
    (await greeted(proxy)).socket.destroy();
    await until(() => echo.ended().length === 1);
    await until(() => {
      echo.say("still there?");
      return echo.ended()[0] === "reset";
    });
    await until(() => proxy.connections() === 0);
  });

  test("a target that is not there is a reset", async () => {
    const proxy = await startProxy({ target: { port: await freePort() } });
    const client = dial(proxy.port);
    client.socket.write("anybody?");
    await until(() => client.ended() === "reset");
  });

  test("a sender waits while nobody reads, and nothing of what it sent is lost", async () => {
    const totalBytes = 96 * 2 ** 20;
    const source = await startFlood(totalBytes);
    const proxy = await startProxy({ target: { port: source.port } });
    const client = connect({ port: proxy.port, host: "127.0.0.1" });
    client.pause();
    let polls = 0;
    let sent = -1;
    // Half a second without a byte: the sender stands still, or is through.
    await until(() => {
      polls = sent === source.sentBytes() && sent > 0 ? polls + 1 : 0;
      sent = source.sentBytes();
      return polls === 25;
    });
    expect(sent).toBeLessThan(totalBytes / 2);
    let receivedBytes = 0;
    client.on("data", (chunk) => {
      receivedBytes += chunk.length;
    });
    client.resume();
    await once(client, "end");
    expect(receivedBytes).toBe(totalBytes);
  });

  test("the same URL leads through the proxy", async () => {
    const { proxy } = await proxiedEcho();
    expect(proxy.url("postgres://somebody:secret@database.test:5432/orders?a=b")).toBe(
      `postgres://somebody:secret@127.0.0.1:${proxy.port}/orders?a=b`,
    );
  });
});

test("close leaves no socket and no timer, whatever was under way", async () => {
  const echo = await startEcho();
  const onlyTheServiceIsLeft = () => resources().join() === "TCPServerWrap";
  await until(onlyTheServiceIsLeft);
  const proxy = await startFaultProxy({ target: { port: echo.port } });
  proxy.plan({ when: holds("1", "request"), fault: { kind: "delay", ms: 3_600_000 } });
  proxy.plan({ when: holds("2", "request"), fault: { kind: "hold" } });
  proxy.plan({ when: holds("3", "request"), fault: { kind: "swallow_reply", cutAfterMs: 3_600_000 } });
  proxy.plan({ when: holds("4", "request"), fault: { kind: "half_close", direction: "reply" } });
  proxy.plan({ when: holds("5", "request"), fault: { kind: "cut_after", ending: "fin" } });
  const kinds = ["delay", "hold", "swallow_reply", "half_close", "cut_after"] as const;
  const clients = ["1", "2", "3", "4", "5"].map((text) => {
    const client = dial(proxy.port);
    client.socket.write(text);
    return client;
  });
  await until(() => kinds.every((kind) => proxy.happened(kind) === 1));
  expect(resources()).toEqual(expect.arrayContaining(["TCPSocketWrap", "Timeout"]));
  await proxy.close();
  expect(proxy.connections()).toBe(0);
  for (const { socket } of clients) socket.destroy();
  await until(() => echo.open() === 0);
  await until(onlyTheServiceIsLeft);
});

function resources(): readonly string[] {
  return process
    .getActiveResourcesInfo()
    .filter((kind) => /^(TCP|Timeout)/.test(kind))
    .sort();
}
