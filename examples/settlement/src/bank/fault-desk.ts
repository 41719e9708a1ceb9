import type { Socket } from "node:net";
import type { Faults } from "./faults.ts";

/** Holds the faults in force, in memory only, and the connections that hang until they are healed. */
export interface FaultDesk {
  current(): Faults;
  /** Puts these in the place of all earlier ones; without `commitThenHang`, hung connections are cut. */
  replace(faults: Faults): void;
  /** Keeps a connection open and silent until its client leaves or the fault is healed, then cuts it. */
  hang(socket: Socket): Promise<void>;
}

/** A desk with no fault in force. */
export function createFaultDesk(): FaultDesk {
  const hung = new Set<Socket>();
  let current: Faults = {};
  return {
    current: () => current,
    replace(faults) {
      current = faults;
      if (faults.commitThenHang === true) return;
      for (const socket of hung) socket.destroy();
    },
    async hang(socket) {
      if (current.commitThenHang !== true) {
        socket.destroy();
        return;
      }
      hung.add(socket);
      await gone(socket);
      hung.delete(socket);
    },
  };
}

function gone(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    socket.once("close", () => resolve());
    // While a request runs, a server's socket stays half open when its client leaves.
    socket.once("end", () => socket.destroy());
  });
}
