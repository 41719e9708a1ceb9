/** Asks for every flow of which it is told by how many microseconds it is slower than another. */
const OVERHEAD = "overhead";

/**
 * The flows whose name holds one of the texts, and those of the group that one of them names, in their order, with all
 * that they are compared with.
 */
export function chosen(flows, texts) {
  const asked = flows.filter(({ measures }) => measures.some((measure) => isAsked(measure, texts)));
  const needed = new Set(asked);
  // A set that grows while it is walked is walked to its end: what is compared with is compared with something in turn.
  for (const { measures } of needed) {
    for (const other of measures.flatMap(({ against }) => against)) needed.add(flowOf(flows, other));
  }
  return flows.filter((flow) => needed.has(flow));
}

function isAsked({ name, over }, texts) {
  return texts.some((text) => name.includes(text)) || (over !== undefined && texts.includes(OVERHEAD));
}

function flowOf(flows, measure) {
  const found = flows.find(({ measures }) => measures.some(({ name }) => name === measure));
  if (found === undefined) throw new Error(`A flow is compared with "${measure}", which there is not.`);
  return found;
}
