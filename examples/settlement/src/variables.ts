/** The environment that a process was given. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a variable's text means, or what would be right. */
export type Parsed<Value> =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "bad"; readonly reason: string };

/** Reads variables one after the other and remembers everything that is wrong with any of them. */
export interface Variables {
  /** The value of a variable, or the default where it is not set, empty, or wrong. */
  readonly read: <Value, Default>(
    name: string,
    parse: (text: string) => Parsed<Value>,
    byDefault: Default,
  ) => Value | Default;
  /** Notes what no single variable shows. */
  readonly refuse: (problem: string) => void;
  readonly problems: () => readonly string[];
}

export function variablesOf(environment: Environment): Variables {
  const problems: string[] = [];
  return {
    read: (name, parse, byDefault) => {
      const text = environment[name]?.trim() ?? "";
      if (text === "") return byDefault;
      const parsed = parse(text);
      if (parsed.kind === "value") return parsed.value;
      problems.push(`${name} ${parsed.reason}.`);
      return byDefault;
    },
    refuse: (problem) => void problems.push(problem),
    problems: () => problems,
  };
}

export function value<Value>(parsed: Value): Parsed<Value> {
  return { kind: "value", value: parsed };
}

export function bad(reason: string): Extract<Parsed<never>, { kind: "bad" }> {
  return { kind: "bad", reason };
}
