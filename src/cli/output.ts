import { OncekeyError } from "../errors.ts";

/** Text as it may be shown: what stands where a URL has its password is left out. */
export function withoutPasswords(text: string): string {
  return text.replace(PASSWORD, "$1").replace(PASSWORD_PARAMETER, "$1…");
}

/** Prints a result: for people, or as one JSON document for programs. */
export function print(result: { readonly text: string; readonly document: object }, { json }: Format): void {
  process.stdout.write(json ? `${JSON.stringify(result.document)}\n` : `${withoutPasswords(result.text)}\n`);
}

/** Prints why a command could not do its work: to people on standard error, to programs where they look for the result. */
export function report(error: unknown, { json }: Format): void {
  const message = withoutPasswords(error instanceof Error ? error.message : String(error));
  const code = error instanceof OncekeyError ? error.code : null;
  if (json) process.stdout.write(`${JSON.stringify({ error: { code, message } })}\n`);
  else process.stderr.write(`oncekey: ${message}\n`);
}

export interface Format {
  readonly json: boolean;
}

/** Greedy up to the last @, since a password that nobody escaped may hold one. */
const PASSWORD = /(\b[a-z][\w+.-]*:\/\/[^\s:/@]*):\S*(?=@)/gi;

const PASSWORD_PARAMETER = /([?&]password=)[^\s&]*/gi;
