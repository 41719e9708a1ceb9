import type { HeaderLine, WireAnswer } from "./answer-reader.ts";
import { printable, saidBy } from "./problem.ts";

/** The values of a header, one for each line. */
export function linesOf({ headers }: WireAnswer, name: string): readonly string[] {
  return headers.filter(([each]) => each === name).map(([, value]) => value);
}

/** True where an answer says of itself that it is a replay, in any of the spellings that are about. */
export function isMarked({ headers }: WireAnswer): boolean {
  return headers.some(isMark);
}

function isMark([name, value]: HeaderLine): boolean {
  if (/^(false|0|no|miss)?$/i.test(value)) return false;
  if (/replay/.test(name)) return true;
  return /idempoten|^x-cache/.test(name) && /^(true|1|yes|hit|cached|replay(ed)?|duplicate)\b/i.test(value);
}

/** A body that no text editor should open. */
export function isBinary(answer: WireAnswer): boolean {
  const type = linesOf(answer, "content-type")[0] ?? "";
  if (/^(text\/|application\/([\w.-]+\+)?(json|xml)\b|application\/x-www-form-urlencoded)/i.test(type)) {
    return false;
  }
  return type !== "" || !Buffer.from(answer.body.toString("utf8")).equals(answer.body);
}

/** An answer in one line, its body as far as it fits and with nothing in it that a terminal obeys. */
export function shown(answer: WireAnswer): string {
  const { status, body } = answer;
  const said = saidBy(answer);
  if (said.kind === "code") return `${status} ${said.code}`;
  if (body.length === 0) return `${status} without a body`;
  if (isBinary(answer)) return `${status} with ${body.length} bytes`;
  return `${status} ${printable(body.toString("utf8"))}`;
}

/** Headers that are made anew for each exchange, or describe it and not the answer. */
const OF_AN_EXCHANGE =
  /^(date|set-cookie|age|via|server|server-timing|connection|keep-alive|transfer-encoding|content-length|trailer|upgrade|alt-svc|(www|proxy)-authenticat.*|authentication-info|.*request-?id|.*correlation-?id|.*trace.*|.*rate-?limit.*|retry-after|access-control-.*|vary|.*idempoten.*|.*replay.*|.*cache.*|expires|x-(response-time|runtime|powered-by|served-by|timer)|cf-.*|content-encoding|strict-transport-security|content-security-policy|x-(frame-options|content-type-options|xss-protection)|cross-origin-.*|referrer-policy|permissions-policy|origin-agent-cluster|x-(dns-prefetch-control|download-options|permitted-cross-domain-policies))$/;

/** Headers whose value is a part of the answer by their definition. */
const OF_THE_ANSWER =
  /^(content-type|location|content-language|content-location|content-disposition|last-modified|link|etag)$/;

/** What of the first answer's headers a replay has lost or changed, in words. */
export function lostHeaders(first: WireAnswer, replay: WireAnswer): readonly string[] {
  const names = [...new Set(first.headers.map(([name]) => name))];
  return names.flatMap((name) => {
    const [before, after] = [linesOf(first, name), linesOf(replay, name)];
    const own = OF_THE_ANSWER.test(name);
    if (!own && OF_AN_EXCHANGE.test(name)) return [];
    if (after.length === 0) return [`${name} is gone`];
    if (own && before.join("\n") !== after.join("\n")) {
      return [`${name} was ${printable(before.join(", "))} and is ${printable(after.join(", "))}`];
    }
    return [];
  });
}
