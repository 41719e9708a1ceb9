import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { holds } from "./fault-rules.ts";
import { until } from "./processes.ts";
import { closePeers, dial, greeted, proxiedEcho, startFlood, startProxy } from "./tcp-peers.ts";

afterEach(closePeers);

describe("cuts", () => {
  test.each(["reset", "fin"] as const)(
    "cut_before keeps the bytes from the target; both see a %s",
    async (ending) => {
      const { proxy, echo } = await proxiedEcho();
      proxy.plan({ when: holds("pay", "request"), fault: { kind: "cut_before", ending } });
      const client = await greeted(proxy);
      client.socket.write("pay 10");
      await until(() => client.ended() !== undefined && echo.ended().length === 1);
      expect([client.ended(), ...echo.ended()]).toEqual([ending, ending]);
      expect(echo.text()).toBe("hello");
      expect(proxy.happened("cut_before")).toBe(1);
    },
  );

  test.each(["reset", "fin"] as const)(
    "cut_after lets the target have the bytes; the client sees a %s, no answer",
    async (ending) => {
      const { proxy, echo } = await proxiedEcho();
      proxy.plan({ when: holds("pay", "request"), fault: { kind: "cut_after", ending } });
      const client = await greeted(proxy);
      client.socket.write("pay 10");
      await until(() => client.ended() !== undefined && echo.ended().length === 1);
      expect([client.ended(), ...echo.ended()]).toEqual([ending, "fin"]);
      expect(echo.text()).toBe("hellopay 10");
      expect(client.text()).toBe("hello");
      expect(proxy.happened("cut_after")).toBe(1);
    },
  );

  test("a cut can wait for what the target says", async () => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({ when: holds("pay", "reply"), fault: { kind: "cut_after" } });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => client.ended() !== undefined && echo.ended().length === 1);
    expect([client.ended(), ...echo.ended()]).toEqual(["fin", "reset"]);
    expect(client.text()).toBe("hellopay 10");
  });

  test("cutAll resets every connection, and is no fault that was planned", async () => {
    const { proxy, echo } = await proxiedEcho();
    const clients = [await greeted(proxy), await greeted(proxy)];
    expect(proxy.connections()).toBe(2);
    proxy.cutAll();
    await until(() => proxy.connections() === 0 && echo.ended().length === 2);
    await until(() => clients.every((client) => client.ended() !== undefined));
    expect([...clients.map((client) => client.ended()), ...echo.ended()]).toEqual(Array(4).fill("reset"));
    expect(proxy.happened("cut_before") + proxy.happened("cut_after")).toBe(0);
    expect((await greeted(proxy)).text()).toBe("hello");
  });

  test("a cut that met a dead target is not counted", async () => {
    const { proxy, echo } = await proxiedEcho();
    const client = await greeted(proxy);
    proxy.plan({ when: holds("wait", "reply"), fault: { kind: "hold" } });
    proxy.plan({ when: holds("pay", "request"), fault: { kind: "cut_after" } });
    client.socket.write("wait");
    await until(() => proxy.happened("hold") === 1);
    echo.resetAll();
    await until(() => echo.open() === 0);
    client.socket.write("pay 10");
    await until(() => client.ended() === "reset");
    expect(proxy.happened("cut_after")).toBe(0);
  });

  test("cutAll ends a connection that is just being ended", async () => {
    const { proxy } = await proxiedEcho();
    const isPay = holds("pay", "request");
    proxy.plan({
      when: (passage) => {
        queueMicrotask(proxy.cutAll);
        return isPay(passage);
      },
      fault: { kind: "cut_before", ending: "fin" },
    });
    const client = dial(proxy.port);
    client.socket.write("pay 10");
    await until(() => client.ended() !== undefined && proxy.connections() === 0);
  });

  test("cutAll ends a connection whose receiver does not read", async () => {
    const source = await startFlood(96 * 2 ** 20);
    const proxy = await startProxy({ target: { port: source.port } });
    proxy.plan({ when: holds("stop", "request"), fault: { kind: "half_close", direction: "reply" } });
    const client = connect({ port: proxy.port, host: "127.0.0.1" }).on("error", () => {});
    client.pause();
    client.write("stop");
    await until(() => source.sentBytes() > 2 ** 20);
    proxy.cutAll();
    await until(() => proxy.connections() === 0);
    client.destroy();
  });
});

describe("swallow_reply", () => {
  test("the target has the request and its answer is dropped; the client hangs until it is cut", async () => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({ when: holds("pay", "request"), fault: { kind: "swallow_reply" }, times: 1 });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => proxy.happened("swallow_reply") === 1);
    client.socket.write(", and more");
    await until(() => echo.text() === "hellopay 10, and more");
    echo.endAll();
    const other = await greeted(proxy);
    expect([other.text(), client.text(), client.ended()]).toEqual(["hello", "hello", undefined]);
    proxy.cutAll();
    await until(() => client.ended() === "reset");
    expect(proxy.happened("swallow_reply")).toBe(1);
  });

  test.each([0, 30])("the client is cut %i ms after the answer that it does not get", async (cutAfterMs) => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({
      when: holds("pay", "request"),
      fault: { kind: "swallow_reply", cutAfterMs, ending: "fin" },
    });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => client.ended() === "fin");
    expect(echo.text()).toBe("hellopay 10");
    expect(client.text()).toBe("hello");
    expect(proxy.happened("swallow_reply")).toBe(1);
  });

  test("until the time has come, the client that gets no answer is not cut either", async () => {
    const { proxy } = await proxiedEcho();
    proxy.plan({
      when: holds("pay", "request"),
      fault: { kind: "swallow_reply", cutAfterMs: 3_600_000 },
      times: 1,
    });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => proxy.happened("swallow_reply") === 1);
    await greeted(proxy);
    expect(client.ended()).toBe(undefined);
  });

  test("a target that ends without an answer has swallowed nothing, but the client is cut", async () => {
    const { proxy, echo } = await proxiedEcho();
    const client = await greeted(proxy);
    echo.mute();
    proxy.plan({ when: holds("pay", "request"), fault: { kind: "swallow_reply", cutAfterMs: 0 } });
    client.socket.write("pay 10");
    await until(() => echo.text() === "hellopay 10");
    echo.endAll();
    await until(() => client.ended() === "reset");
    expect(proxy.happened("swallow_reply")).toBe(0);
  });

  test("it can begin with an answer", async () => {
    const { proxy } = await proxiedEcho();
    proxy.plan({ when: holds("paid", "reply"), fault: { kind: "swallow_reply", cutAfterMs: 0 } });
    const client = await greeted(proxy);
    client.socket.write("paid");
    await until(() => client.ended() === "reset");
    expect(client.text()).toBe("hello");
  });
});

describe("half_close", () => {
  test("the target sees the end of the requests, and the client still gets answers", async () => {
    const { proxy, echo } = await proxiedEcho({ endsWithClient: false });
    proxy.plan({ when: holds("last", "request"), fault: { kind: "half_close", direction: "request" } });
    const client = await greeted(proxy);
    client.socket.write("last");
    await until(() => echo.ended().length === 1);
    client.socket.write("too late");
    echo.say(" and then");
    await until(() => client.text() === "hellolast and then");
    expect([echo.text(), ...echo.ended(), client.ended()]).toEqual(["hellolast", "fin", undefined]);
    expect(proxy.happened("half_close")).toBe(1);
  });

  test("the client sees the end of the answers, and the target still gets requests", async () => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({
      when: holds("last", "request"),
      fault: { kind: "half_close", direction: "reply" },
      times: 1,
    });
    const client = await greeted(proxy);
    client.socket.write("last");
    await until(() => client.ended() === "fin");
    client.socket.write(" and then");
    await until(() => echo.text() === "hellolast and then");
    expect([client.text(), echo.ended()]).toEqual(["hello", []]);
    expect(proxy.happened("half_close")).toBe(1);
  });
});

describe("delay and hold", () => {
  test("a delayed chunk comes late, what follows it waits behind it, and answers do not", async () => {
    const { proxy, echo } = await proxiedEcho();
    const client = await greeted(proxy);
    proxy.plan({ when: holds("slow", "request"), fault: { kind: "delay", ms: 150 } });
    const sentAt = performance.now();
    client.socket.write("slow");
    await until(() => proxy.happened("delay") === 1);
    client.socket.write("fast");
    echo.say("meanwhile");
    await until(() => client.text().includes("meanwhile"));
    await until(() => echo.text() === "helloslowfast", { everyMs: 1 });
    expect(performance.now() - sentAt).toBeGreaterThan(149);
    await until(() => client.text() === "hellomeanwhileslowfast");
  });

  test("what is held arrives when it is released, though its sender is gone", async () => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({ when: holds("pay", "request"), fault: { kind: "hold" } });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => proxy.happened("hold") === 1);
    client.socket.destroy();
    const other = await greeted(proxy);
    expect([other.text(), echo.text(), echo.ended()]).toEqual(["hello", "hellohello", []]);
    proxy.release();
    await until(() => echo.text() === "hellopay 10hello" && echo.ended().length === 1);
  });

  test("what is held for ever goes with its connection", async () => {
    const { proxy, echo } = await proxiedEcho();
    proxy.plan({ when: holds("pay", "request"), fault: { kind: "hold" } });
    const client = await greeted(proxy);
    client.socket.write("pay 10");
    await until(() => proxy.happened("hold") === 1);
    proxy.cutAll();
    await until(() => proxy.connections() === 0);
    proxy.release();
    expect(echo.text()).toBe("hello");
  });

  test("a rule may cut the connection itself, and nothing is held", async () => {
    const { proxy, echo } = await proxiedEcho();
    const isPay = holds("pay", "request");
    proxy.plan({
      when: (passage) => {
        proxy.cutAll();
        return isPay(passage);
      },
      fault: { kind: "hold" },
    });
    const client = dial(proxy.port);
    client.socket.write("pay 10");
    await until(() => client.ended() === "reset" && proxy.connections() === 0);
    expect(echo.text()).toBe("");
  });
});
