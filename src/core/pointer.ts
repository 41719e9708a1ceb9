/** A place in a JSON document, or many: `text` is the spelling it was parsed from, `steps` lead from the root. */
export type Pointer = { readonly text: string; readonly steps: readonly PointerStep[] };

/** One level down: to the member (or the array index) of exactly this name, or to every one there is. */
export type PointerStep = { readonly kind: "named"; readonly name: string } | { readonly kind: "every" };

/** What `parsePointer` says: the pointer, or what is wrong with the text in words for whoever configured it. */
export type ParsedPointer =
  | { readonly kind: "pointer"; readonly pointer: Pointer }
  | { readonly kind: "invalid"; readonly reason: string };

/**
 * Parses a JSON pointer (RFC 6901: `~1` is a slash and `~0` a tilde inside a name) in which a step of just `*`
 * stands for every member or element of that one level.
 *
 * Two things differ from the RFC. A member whose name is `*` cannot be pointed at alone, because the RFC has no
 * escape for it. The empty pointer, which is the whole document, is refused: without its document a request would
 * equal any other.
 */
export function parsePointer(text: string): ParsedPointer {
  if (text === "") return invalid('it points at the whole document; name a member, such as "/client_ts"');
  if (!text.startsWith("/")) return invalid('it must begin with "/", such as "/client_ts" or "/trace/*"');
  if (/~(?![01])/.test(text)) {
    return invalid('a "~" must be followed by 0 or 1; in a name write "~0" for a tilde and "~1" for a slash');
  }
  return { kind: "pointer", pointer: { text, steps: text.slice(1).split("/").map(parseStep) } };
}

/** Those of the pointers that also lead to `name`, which lies `depth` levels below the root. */
export function pointersTo(pointers: readonly Pointer[], depth: number, name: string): readonly Pointer[] {
  return pointers.filter(({ steps }) => {
    const step = steps[depth];
    return step !== undefined && (step.kind === "every" || step.name === name);
  });
}

function invalid(reason: string): ParsedPointer {
  return { kind: "invalid", reason };
}

function parseStep(step: string): PointerStep {
  if (step === "*") return { kind: "every" };
  // In this order, so that "~01" becomes "~1" and not a slash.
  return { kind: "named", name: step.replaceAll("~1", "/").replaceAll("~0", "~") };
}
