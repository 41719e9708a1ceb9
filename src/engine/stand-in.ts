import { isPromise } from "./command.ts";

/** What is told of the statements that go through a handle's stand-in. */
export interface Observer {
  /** A statement is about to be carried out on `handle`. */
  readonly stated: (handle: object, text: string) => void;
  /** A transaction may be opened on `handle` by its driver, without a statement to be seen. */
  readonly begun: (handle: object) => void;
  /** Asked when `from` is asked for a handle: what to hand over in the place of the one that comes. */
  readonly lending: (from: object) => (handle: object) => object;
  /** The same function; what it does belongs to where it was handed over, and not to where it is called. */
  readonly resumed: (callback: Callable) => Callable;
}

export type Callable = (...given: readonly unknown[]) => unknown;

/**
 * Stands in for a database handle of whatever driver, known by the names of its methods alone: `pg`, postgres.js, the
 * drivers of SQLite. The handle itself carries everything out, as it was asked for.
 */
export function standInForHandle<Handle extends object>(handle: Handle, observer: Observer): Handle {
  const { stated, begun } = observer;
  const lazily = lazyQueries(handle, observer);
  return standIn(handle, (call) => {
    const { name, given, carryOut } = call;
    const [first, ...values] = given;
    switch (name) {
      case "query":
      case "execute":
      case "exec":
        stated(handle, textOf(first));
        return carryOut(given.map(resuming(observer)));
      case "prepare":
        return standInForStatement(carryOut(given), observer, () => stated(handle, textOf(first)));
      case ITSELF:
        return isTemplate(first) ? lazily.template(call, first, values) : carryOut(given);
      case "unsafe":
        return lazily.text(call, textOf(first));
      case "file":
        return lazily.text(call, `file ${String(first)}`);
      case "begin":
      case "savepoint":
      case "connect":
      case "reserve":
      case "getConnection":
        return lend(handle, call, observer);
      case "transaction":
        begun(handle);
        return carryOut(given);
    }
    return carryOut(given);
  });
}

/** Queries that are sent once they are waited for: as a part of another one such a query is not sent at all. */
function lazyQueries(handle: object, observer: Observer) {
  const texts = new WeakMap<object, string>();
  const text = ({ given, carryOut }: Call, stated: string): unknown => {
    let sent = false;
    const query = standInForStatement(carryOut(given), observer, () => {
      if (!sent) observer.stated(handle, stated);
      sent = true;
    });
    if (isObject(query)) texts.set(query, stated);
    return query;
  };
  return {
    text,
    template: (call: Call, strings: readonly unknown[], values: readonly unknown[]): unknown =>
      text(call, templateText(strings, values, texts)),
  };
}

/** Lets a driver hand over, to a callback or by a promise, stand-ins in the place of its handles. */
function lend(handle: object, { name, given, carryOut }: Call, observer: Observer): unknown {
  const lent = observer.lending(handle);
  const swapped = (value: unknown) => (isHandle(value) ? lent(value) : value);
  const swapping = (value: unknown) =>
    isFunction(value) ? (...handed: readonly unknown[]) => value(...handed.map(swapped)) : value;
  const result = carryOut(given.map(swapping).map(resuming(observer)));
  if (name === "begin" || name === "savepoint") return result; // of the callback's own making
  return isObject(result) && isPromise(result) ? result.then(swapped) : result;
}

/** A prepared statement, or a query that is sent later: `sent` is told each time that one of its methods sends it. */
function standInForStatement(statement: unknown, observer: Observer, sent: () => void): unknown {
  if (!isObject(statement)) return statement;
  return standIn(statement, ({ name, given, carryOut }) => {
    if (typeof name !== "string" || !SENDING.has(name)) return carryOut(given);
    sent();
    return carryOut(given.map(resuming(observer)));
  });
}

/** Methods that send a statement: those of SQLite's prepared ones, and those of postgres.js. */
const SENDING: ReadonlySet<string> = new Set([
  ...["run", "get", "all", "iterate"],
  ...["then", "catch", "finally", "execute", "forEach", "cursor", "readable", "writable"],
]);

function resuming({ resumed }: Observer): (value: unknown) => unknown {
  return (value) => (isFunction(value) ? resumed(value) : value);
}

/** A call of one of a target's methods, or of the target ITSELF. */
interface Call {
  readonly name: string | symbol;
  readonly given: readonly unknown[];
  readonly carryOut: (given: readonly unknown[]) => unknown;
}

const ITSELF: unique symbol = Symbol("oncekey.itself");

/** Is the target in everything, but for its calls: they go to `called`, which carries them out. */
function standIn<Target extends object>(target: Target, called: (call: Call) => unknown): Target {
  const methods = new WeakMap<object, object>();
  const calling = (
    name: Call["name"],
    callable: unknown,
    self: unknown,
    given: readonly unknown[],
  ): unknown => {
    const carryOut = (actual: readonly unknown[]): unknown =>
      isFunction(callable) ? Reflect.apply(callable, self === own ? target : self, actual) : undefined;
    const result = called({ name, given, carryOut });
    return result === target ? own : result;
  };
  const methodOf = (name: Call["name"], method: Callable): object => {
    const known = methods.get(method);
    const made =
      known ?? new Proxy(method, { apply: (_, self, given) => calling(name, method, self, given) });
    methods.set(method, made);
    return made;
  };
  const own: Target = new Proxy(target, {
    get: (_, name) => {
      const member: unknown = Reflect.get(target, name); // not of the stand-in: private fields are the target's own
      return isFunction(member) && !isFixed(target, name) ? methodOf(name, member) : member;
    },
    apply: (_, self, given) => calling(ITSELF, target, self, given),
  });
  return own;
}

/** Such a property a proxy must show as it is. */
function isFixed(target: object, name: string | symbol): boolean {
  const property = Reflect.getOwnPropertyDescriptor(target, name);
  return property?.configurable === false && property.writable === false;
}

/** The text of a statement as drivers are given one: plain, in an object, or as a template. */
function textOf(given: unknown): string {
  if (typeof given === "string") return given;
  if (isTemplate(given)) return templateText(given, [], new WeakMap());
  if (isObject(given) && "text" in given && typeof given.text === "string") return given.text;
  if (isObject(given) && "sql" in given && typeof given.sql === "string") return given.sql;
  return "(a statement whose text cannot be read)";
}

/** A template's text, with the texts of those parts that are queries themselves, and never a value. */
function templateText(
  strings: readonly unknown[],
  values: readonly unknown[],
  texts: WeakMap<object, string>,
): string {
  const placed = (value: unknown, position: number): string => {
    if (Array.isArray(value) && value.some((part) => isObject(part) && texts.has(part)))
      return value.map((part) => placed(part, position)).join(" ");
    return (isObject(value) ? texts.get(value) : undefined) ?? `$${position}`;
  };
  return strings.map((part, at) => (at === 0 ? part : `${placed(values[at - 1], at)}${part}`)).join("");
}

function isTemplate(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && "raw" in value;
}

function isHandle(value: unknown): value is object {
  return (
    isObject(value) && ["query", "execute", "unsafe"].some((name) => isFunction(Reflect.get(value, name)))
  );
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isFunction(value: unknown): value is Callable {
  return typeof value === "function";
}
