import { expect, test } from "vitest";
import { createAnswerReader } from "../../../src/cli/probe/answer-reader.ts";
import { numberIn } from "../../../src/cli/probe/counting.ts";
import { otherThan } from "../../../src/cli/probe/other-body.ts";
import { isLoopbackAddress, placeIn } from "../../../src/cli/probe/places.ts";

const HEAD = "HTTP/1.1 200 OK\r\nA: b\r\n";
const WAYS: readonly (readonly [way: string, bytes: string])[] = [
  ["with a length", `${HEAD}Content-Length: 5\r\n\r\nhello`],
  ["in chunks", `${HEAD}Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nT: r\r\n\r\n`],
  ["up to the end of the connection", `${HEAD}\r\nhello`],
  [
    "behind an interim one",
    `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${HEAD}Content-Length: 5\r\n\r\nhello`,
  ],
];

test.each(WAYS)("an answer %s is the same however its bytes come in pieces", (_, text) => {
  const bytes = Buffer.from(text);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const reader = createAnswerReader();
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    const answer = reader.finish("closed");
    expect(answer?.body.toString(), `pieces of ${size}`).toBe("hello");
    expect(answer).toMatchObject({ status: 200, framing: [] });
    expect(answer?.headers).toContainEqual(["a", "b"]);
  }
});

test.each(WAYS)("an answer %s that is cut off anywhere says so, or has no head", (way, text) => {
  const bytes = Buffer.from(text);
  for (let end = 0; end < bytes.length; end += 1) {
    const reader = createAnswerReader();
    reader.push(bytes.subarray(0, end));
    const answer = reader.finish("timeout");
    if (answer !== null) expect(answer.framing, `${way}, ${end} bytes`).not.toEqual([]);
  }
});

test.each([
  ['{"amount":100,"to":"x"}', '{"amount":101,"to":"x"}'],
  ['{"to":"x", "amount" : "12.59"}', '{"to":"x", "amount" : "12.58"}'],
  ['["a\\"b"]', '["a\\"b1"]'],
  ['{"to":""}', '{"to":"1"}'],
  ["amount=100", "amount=1001"],
])("of %s the other body is %s", (body, other) => {
  expect(otherThan(Buffer.from(body))?.toString()).toBe(other);
});

test.each([
  ["", ""],
  ["{}", "{}"],
  ["\u0000", ""],
  [" ", ""],
])("of %j no other body is made up", (body) => {
  expect(otherThan(Buffer.from(body))).toBeNull();
});

test.each([
  ["7\n", "", 7],
  ['{"a":{"b/c":[1,2,3]}}', "/a/b~1c", 3],
  ['{"n":"12"}', "/n", 12],
  ['[{"n":4}]', "/0/n", 4],
  ['{"n":4}', "/m", null],
  ["<html>", "", null],
  ["1e400", "", null],
])("the count in %j at %j is %j", (text, pointer, count) => {
  expect(numberIn(text, pointer)).toBe(count);
});

test.each([
  ["http://127.0.0.1:1/", [], "place"],
  ["http://127.9.9.9/", [], "place"],
  ["https://[::1]/", [], "place"],
  ["http://localhost:3000/", [], "place"],
  ["http://2130706433/", [], "place"], // 127.0.0.1 in one number, which the URL itself makes plain
  ["http://127.0.0.1.example/", [], "bad"],
  ["http://0.0.0.0/", [], "bad"],
  ["http://shop.example:8080/", ["shop.example"], "place"],
  ["http://shop.example:8080/", ["shop.example:8080"], "place"],
  ["http://shop.example:8080/", ["shop.example:80", "example", "shop"], "bad"],
  ["file:///etc/passwd", ["", "etc"], "bad"],
])("%s with the hosts %j is a %s to send to", (url, confirmed, kind) => {
  expect(placeIn(url, confirmed).kind).toBe(kind);
});

test.each([
  ["127.0.0.1", true],
  ["::ffff:127.0.0.1", true],
  ["::1", true],
  ["127.evil", false],
  ["10.0.0.1", false],
])("%s is an address of this machine: %j", (address, is) => {
  expect(isLoopbackAddress(address)).toBe(is);
});
