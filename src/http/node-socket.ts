import type { Socket } from "node:net";

/**
 * A socket that does not tell of its client's hanging up. Whoever sends a file or a stream stops when it hears of it, and
 * the answer is to be kept all the same.
 */
export function lasting(socket: Socket): Socket {
  const stand: Socket = new Proxy(socket, {
    get: (target, name) => {
      if (name === "writable") return true;
      if (name === "destroyed") return false;
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...given: readonly unknown[]) => {
        if (isListening(name) && ENDINGS.has(given[0])) return stand;
        const returned: unknown = Reflect.apply(member, target, given);
        return returned === target ? stand : returned;
      };
    },
  });
  return stand;
}

const ENDINGS: ReadonlySet<unknown> = new Set(["close", "error", "end"]);

function isListening(name: string | symbol): boolean {
  return /^(on|once|addListener|prependListener|prependOnceListener)$/.test(String(name));
}
