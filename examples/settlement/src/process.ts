import { ConfigurationError } from "oncekey";
import { type Configuration, readConfiguration } from "./configuration.ts";
import { inVariables } from "./durations.ts";

/** A process of the service that has started. */
export interface Running {
  /** For people: what runs, and where. */
  readonly greeting: string;
  /** Lets what runs end, then gives everything back. */
  readonly stop: () => Promise<void>;
}

/** Starts from the environment, says what runs, and ends when it is told to; says why where it cannot. */
export async function runProcess(
  name: string,
  start: (configuration: Configuration) => Promise<Running>,
): Promise<void> {
  const reading = readConfiguration(process.env);
  if (reading.kind === "invalid") return fail(name, "start", reading.problems.join("\n"));
  try {
    const { greeting, stop } = await start(reading.configuration);
    const leave = () => {
      stop().then(
        () => process.exit(0),
        (error) => fail(name, "stop", error),
      );
    };
    process.once("SIGTERM", leave);
    process.once("SIGINT", leave);
    console.log(greeting);
  } catch (error) {
    fail(name, "start", error);
  }
}

/** Proxies and orchestrators kill what has not ended by then. */
export const LONGEST_DRAIN_MS = 10_000;

/** Tells the operators. */
export function tell(...what: readonly unknown[]): void {
  console.error(...what);
}

function fail(name: string, what: "start" | "stop", error: unknown): void {
  const said = error instanceof Error ? error.message : String(error);
  const message = error instanceof ConfigurationError ? inVariables(said) : said;
  console.error(`${name} could not ${what}.\n${message}`);
  process.exit(1);
}
