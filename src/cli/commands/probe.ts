import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { print, report } from "../output.ts";
import type { HeaderLine } from "../probe/answer-reader.ts";
import { otherThan } from "../probe/other-body.ts";
import { placeIn } from "../probe/places.ts";
import { type Probed, probe } from "../probe/probe.ts";
import { reportOf } from "../probe/report.ts";
import type { Counting, ProbeSettings, Target } from "../probe/settings.ts";

/** `oncekey probe URL`: tries on any server what an endpoint with a key owes; ends with 1 for faults, 2 if it could not. */
export function addProbe(program: Command): void {
  const command = program
    .command("probe")
    .description("Try on a running server, in any language, what an endpoint with a key owes to its clients.")
    .argument("<url>", "the endpoint; on this machine, unless --yes-this-host names its host");
  addRequestOptions(command);
  addPrincipalOptions(command);
  addCountOptions(command);
  addBoundOptions(command);
  command
    .option("--json", "print one JSON document", false)
    .action((url: string, options: Options, command: Command) => run(url, options, command));
}

function addRequestOptions(command: Command): void {
  command
    .addOption(
      new Option("--method <method>", "of the request").default("POST").argParser((text) => unsafe(text)),
    )
    .option("--body <text>", "of the request; @file for the bytes of a file", "")
    .option("--other-body <text>", "one that means something else (else made from --body); @file as well")
    .option("--content-type <type>", "of the bodies", "application/json")
    .option("--other-path <path>", "one that must not get the first one's answer (else a query is added)")
    .option(
      "--also <url>",
      "look at this one's retries too: no body, no text, a refusal; repeatable",
      more,
      [],
    )
    .addOption(
      new Option("--key-header <name>", "the header that the key is in")
        .default("Idempotency-Key")
        .argParser(nameIn),
    );
}

function addPrincipalOptions(command: Command): void {
  command
    .option("--header <line>", "'Name: value' of the first principal; repeatable", moreHeaders, [])
    .option("--other-header <line>", "'Name: value' of a second principal; repeatable", moreHeaders, []);
}

function addCountOptions(command: Command): void {
  command
    .option("--count-url <url>", "says how many effects there were; without it they cannot be seen")
    .option("--count-pointer <pointer>", "a JSON pointer to the number, or to an array to be counted", "")
    .option("--count-header <line>", "'Name: value' for --count-url; repeatable", moreHeaders, [])
    .addOption(number("--count-settle <ms>", "wait before each count", { from: 0, to: 60_000, by: 0 }));
}

function addBoundOptions(command: Command): void {
  command
    .addOption(number("--copies <n>", "sent at one moment", { from: 2, to: 100, by: 10 }))
    .addOption(number("--rounds <n>", "of copies", { from: 1, to: 20, by: 3 }))
    .addOption(number("--request-timeout <ms>", "for one answer", { from: 1, to: 600_000, by: 10_000 }))
    .addOption(number("--time-limit <ms>", "for the whole probe", { from: 1, to: 3_600_000, by: 60_000 }))
    .option("--yes-this-host <host>", "send to this host although it is another machine", more, []);
}

interface Options {
  readonly method: string;
  readonly body: string;
  readonly otherBody?: string;
  readonly contentType: string;
  readonly otherPath?: string;
  readonly also: readonly string[];
  readonly keyHeader: string;
  readonly header: readonly HeaderLine[];
  readonly otherHeader: readonly HeaderLine[];
  readonly countUrl?: string;
  readonly countPointer: string;
  readonly countHeader: readonly HeaderLine[];
  readonly countSettle: number;
  readonly copies: number;
  readonly rounds: number;
  readonly requestTimeout: number;
  readonly timeLimit: number;
  readonly yesThisHost: readonly string[];
  readonly json: boolean;
}

async function run(url: string, options: Options, command: Command): Promise<void> {
  const settings = settingsIn(url, options, command);
  const probed = await probe(settings);
  process.exitCode = exitCodeOf(probed);
  if (probed.kind === "cannot") report(new Error(`could not probe: ${probed.reason}`), options);
  else print(reportOf(settings.target.url.href, probed), options);
}

/** Faults were seen even where the probe did not get to its end. */
function exitCodeOf(probed: Probed): 0 | 1 | 2 {
  if (probed.kind === "cannot") return 2;
  if (probed.findings.some(({ verdict }) => verdict === "fault")) return 1;
  return probed.unfinished === null ? 0 : 2;
}

function settingsIn(url: string, options: Options, command: Command): ProbeSettings {
  const at = (text: string): Target => {
    const place = placeIn(text, options.yesThisHost);
    return place.kind === "bad" ? command.error(`error: ${place.reason}`) : place;
  };
  const target = at(url);
  const body = bytesIn(options.body, command);
  const { otherHeader, otherBody, otherPath, contentType } = options;
  const described: readonly HeaderLine[] = body.length === 0 ? [] : [["Content-Type", contentType]];
  return {
    target,
    method: options.method,
    keyHeader: options.keyHeader,
    body,
    otherBody: otherBody === undefined ? otherThan(body) : bytesIn(otherBody, command),
    headers: [...described, ...options.header],
    otherHeaders: otherHeader.length === 0 ? null : otherHeader,
    otherPath: otherPath === undefined ? withQuery(target) : at(new URL(otherPath, target.url).href),
    also: options.also.map(at),
    counting: countingIn(options, at),
    copies: options.copies,
    rounds: options.rounds,
    requestTimeoutMs: options.requestTimeout,
    timeLimitMs: options.timeLimit,
  };
}

function countingIn(options: Options, at: (text: string) => Target): Counting | null {
  const { countUrl, countHeader, countPointer, countSettle } = options;
  if (countUrl === undefined) return null;
  return { target: at(countUrl), headers: countHeader, pointer: countPointer, settleMs: countSettle };
}

function withQuery({ url, mayLeave }: Target): Target {
  const other = new URL(url);
  other.searchParams.append("oncekey-probe", "1");
  return { url: other, mayLeave };
}

function bytesIn(text: string, command: Command): Buffer {
  if (!text.startsWith("@")) return Buffer.from(text);
  try {
    return readFileSync(text.slice(1));
  } catch (error) {
    return command.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function number(
  flags: string,
  what: string,
  { from, to, by }: { readonly from: number; readonly to: number; readonly by: number },
): Option {
  return new Option(flags, what).default(by).argParser((text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= from && value <= to) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  });
}

function more(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

function moreHeaders(line: string, before: readonly HeaderLine[]): readonly HeaderLine[] {
  const at = line.indexOf(":");
  const [name, value] = [nameIn(line.slice(0, Math.max(at, 0))), line.slice(at + 1).trim()];
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
    throw new InvalidArgumentError("Its value holds what no header may.");
  if (/^(content-length|transfer-encoding|connection)$/i.test(name))
    throw new InvalidArgumentError(`${name} is the probe's own.`);
  return [...before, [name, value]];
}

function nameIn(text: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(text)) return text;
  throw new InvalidArgumentError("It must be a header: Name: value.");
}

function unsafe(text: string): string {
  const method = text.toUpperCase();
  if (/^[A-Z]+$/.test(method) && !/^(GET|HEAD|OPTIONS|TRACE|CONNECT)$/.test(method)) return method;
  throw new InvalidArgumentError("It must be a method that changes something, such as POST.");
}
