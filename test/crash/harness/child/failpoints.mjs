// Places in a process where it can be told to die or to stop. Only these scripts have them; the library has none.
import { tell } from "./telling.mjs";

let armed = { points: new Set(), signal: "SIGKILL" };

/** The next time that one of the points is reached, the process ends itself with the signal. */
export function arm({ points, signal }) {
  armed = { points: new Set(points), signal };
}

export function isArmed(point) {
  return armed.points.has(point);
}

export function reached(point) {
  if (!armed.points.has(point)) return;
  const { signal } = armed;
  armed = { points: new Set(), signal };
  tell({ kind: "reached", point, signal });
  process.kill(process.pid, signal);
  if (signal === "SIGKILL") for (;;); // it is on its way
}
