import type { Looked } from "../stores/store.ts";
import { type Asked, type Claimed, type Final, react } from "./claim.ts";
import type { Context } from "./context.ts";

/** How long a copy waits for a running request, and who asks for it. */
export interface StandingBy {
  readonly ms: number;
  /** Calls `listener` when the client is gone, at once where it is gone already; returns what stops the listening. */
  readonly onHungUp: (listener: () => void) => () => void;
}

/**
 * Claims, and where somebody else is at it waits for the end, as long as the route says. A copy is answered by what a look
 * finds; to run it needs a claim of its own, like any other.
 */
export async function claimedInTime<Tx>(
  context: Context<Tx>,
  { asked, standBy }: { readonly asked: Asked; readonly standBy: StandingBy | undefined },
  claim: () => Promise<Claimed>,
): Promise<Claimed> {
  let claimed = await claim();
  if (standBy === undefined || !isRunning(claimed)) return claimed;
  const post = context.lookout.enter(asked.claim.identity);
  const limit = limitOf(context, standBy);
  try {
    while (isRunning(claimed) && !limit.isOver()) {
      const looked = await Promise.race([post.look(), limit.over]);
      const { moved } = claimed;
      const found = looked === null ? null : answerIn(asked, looked);
      if (found !== null) claimed = { kind: "final", decision: found, moved };
      else if (looked !== null && !limit.isOver())
        claimed = later(moved, await post.inTurn(claim)) ?? claimed;
    }
    return claimed;
  } finally {
    limit.cancel();
    post.leave();
  }
}

function isRunning(claimed: Claimed): boolean {
  return claimed.kind === "final" && claimed.decision.kind === "in_progress";
}

/** What a look answers; `null` where to go on takes a claim. */
function answerIn(asked: Asked, { record, now }: Looked): Final | null {
  if (record === null) return null;
  const reaction = react(asked, { record, now });
  return reaction.kind === "final" ? reaction.decision : null;
}

/** A later claim, with what earlier ones had moved. */
function later(moved: Claimed["moved"], claimed: Claimed | null): Claimed | null {
  return claimed === null ? null : { ...claimed, moved: [...moved, ...claimed.moved] };
}

/** Over when the time is up, the client gone, or the process about to stop. */
function limitOf<Tx>({ runtime, lookout, draining }: Context<Tx>, { ms, onHungUp }: StandingBy) {
  let isOver = draining();
  let stops: readonly (() => void)[] = [];
  const over = new Promise<null>((resolve) => {
    const end = () => {
      isOver = true;
      resolve(null);
    };
    stops = [runtime.after(ms, end), onHungUp(end), lookout.onClose(end)];
  });
  const cancel = () => {
    for (const stop of stops) stop();
  };
  return { over, isOver: () => isOver, cancel };
}
