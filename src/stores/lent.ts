import { NotPerformed, OncekeyError } from "../errors.ts";

/**
 * Stands in for the handle that a unit is lent, and is it in everything but its calls: these throw what `refusal` gives.
 * So do those of the statements that it prepared, and those of queries that are sent only once they are waited for. It
 * cannot be released: the connection is not the unit's to give back.
 */
export function lent<Handle>(handle: Handle, refusal: () => Error | undefined): Handle {
  if (!isObject(handle)) return handle;
  const refuse = () => {
    const reason = refusal();
    if (reason !== undefined) throw reason;
  };
  return standIn(handle, (name, carryOut) => {
    if (name === "release") return undefined;
    refuse();
    const made = carryOut();
    if (name === "prepare") return isObject(made) ? statement(made, refuse) : made;
    return isLazy(name, made) ? query(made, refuse) : made;
  });
}

/** Says that something came after the transaction it was meant for. */
export function unitIsOver(): OncekeyError {
  return new OncekeyError(
    "attempt_ended",
    "This was not sent: the transaction has ended that the handle belongs to. Await every statement inside the " +
      "function that was given the handle.",
  );
}

/** Says that a unit's transaction was not there any more when its record was to be written. */
export function endedInside(): NotPerformed {
  return new NotPerformed(
    "The unit's transaction was ended inside it, so its record was not written. Do not send COMMIT or ROLLBACK on the " +
      "handle: use a savepoint, or throw to undo everything. What was sent after a ROLLBACK or before a COMMIT of " +
      "your own may stand.",
  );
}

function statement(prepared: object, refuse: () => void): object {
  return standIn(prepared, (_, carryOut) => {
    refuse();
    return carryOut();
  });
}

/** Once it is sent its answer may be waited for at any time. */
function query(lazy: object, refuse: () => void): object {
  let isSent = false;
  return standIn(lazy, (name, carryOut) => {
    if (!isSent) refuse();
    isSent ||= SENDING.has(name);
    return carryOut();
  });
}

/** The methods by which postgres.js sends a query. */
const SENDING: ReadonlySet<string | symbol> = new Set([
  ...["then", "catch", "finally", "execute", "describe", "forEach", "cursor", "readable", "writable"],
]);

/** What postgres.js makes of a template, a text or a file; other things that it makes so are parts of a query. */
function isLazy(name: string | symbol, made: unknown): made is object {
  return (name === ITSELF || name === "unsafe" || name === "file") && isObject(made) && "then" in made;
}

/** A call of one of a target's methods, or of the target ITSELF. */
type Called = (name: string | symbol, carryOut: () => unknown) => unknown;

const ITSELF: unique symbol = Symbol("oncekey.itself");

function standIn<Target extends object>(target: Target, called: Called): Target {
  const methods = new WeakMap<object, object>();
  const calling = (name: string | symbol, callable: unknown, self: unknown, given: unknown[]): unknown => {
    const carryOut = () =>
      isFunction(callable) ? Reflect.apply(callable, self === own ? target : self, given) : undefined;
    const result = called(name, carryOut);
    return result === target ? own : result;
  };
  const methodOf = (name: string | symbol, method: Callable): object => {
    const known = methods.get(method);
    const made =
      known ?? new Proxy(method, { apply: (_, self, given) => calling(name, method, self, given) });
    methods.set(method, made);
    return made;
  };
  const own: Target = new Proxy(target, {
    get: (_, name) => {
      const member: unknown = Reflect.get(target, name); // not of the stand-in: private fields are the target's own
      const isMethod = isFunction(member) && name !== "constructor" && !isFixed(target, name);
      return isMethod ? methodOf(name, member) : member;
    },
    set: (_, name, value) => Reflect.set(target, name, value),
    apply: (_, self, given) => calling(ITSELF, target, self, given),
  });
  return own;
}

/** Such a property a proxy must show as it is. */
function isFixed(target: object, name: string | symbol): boolean {
  const property = Reflect.getOwnPropertyDescriptor(target, name);
  return property?.configurable === false && property.writable === false;
}

type Callable = (...given: readonly unknown[]) => unknown;

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isFunction(value: unknown): value is Callable {
  return typeof value === "function";
}
