import { type Command, InvalidArgumentError, Option } from "commander";
import type { AnswerInit } from "../../engine/answer.ts";
import type { PersonsVerdict } from "../../worker/resolve.ts";
import { decide, type Overriding, overriding } from "../deciding.ts";

/** `oncekey resolve`: a person says what became of an effect in doubt. */
export function addResolve(program: Command): void {
  overriding(program.command("resolve").description("Say what became of effects in doubt: one, or many."))
    .addOption(new Option("--as <verdict>", "what happened").choices(VERDICTS).makeOptionMandatory())
    .addOption(new Option("--status <status>", "completed, failed: the answer's status").argParser(statusIn))
    .addOption(new Option("--answer <json>", "completed, failed: the answer's body").argParser(jsonIn))
    .addOption(
      new Option("--result <json>", "found: what the provider says, as the operation knows it").argParser(
        jsonIn,
      ),
    )
    .action((url: string | undefined, options: Options, command: Command) =>
      decide(url, options, command, verdictIn(options, command)),
    );
}

const VERDICTS = ["completed", "failed", "found", "not-happened"] as const;

interface Options extends Overriding {
  readonly as: (typeof VERDICTS)[number];
  readonly status?: number;
  readonly answer?: Json;
  readonly result?: Json;
}

interface Json {
  readonly json: unknown;
}

function verdictIn({ as, status, answer, result }: Options, command: Command): PersonsVerdict {
  const unused =
    as === "found" ? (status ?? answer) : as === "not-happened" ? (status ?? answer ?? result) : result;
  if (unused !== undefined) return command.error(`error: --as ${as} does not take that`);
  switch (as) {
    case "not-happened":
      return { kind: "not_happened" };
    case "found":
      if (result === undefined) return command.error("error: --as found needs --result");
      return { kind: "found", result: result.json };
    case "completed":
      return { kind: "completed", answer: answerOf(status ?? 200, answer) };
    case "failed":
      if (status === undefined) return command.error("error: --as failed needs --status, 400 to 499");
      return { kind: "failed", answer: answerOf(status, answer) };
  }
}

function answerOf(status: number, answer: Json | undefined): AnswerInit {
  return answer === undefined ? { status } : { status, json: answer.json };
}

function jsonIn(text: string): Json {
  try {
    return { json: JSON.parse(text) };
  } catch (error) {
    throw new InvalidArgumentError(
      `It must be JSON: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
}

function statusIn(text: string): number {
  if (!/^[2-4]\d\d$/.test(text)) throw new InvalidArgumentError("It must be a status from 200 to 499.");
  return Number(text);
}
