/** The flows whose name holds one of the texts, in their order, with all that they are compared with. */
export function chosen(flows, texts) {
  const asked = flows.filter(({ measures }) =>
    measures.some(({ name }) => texts.some((text) => name.includes(text))),
  );
  const needed = new Set(asked);
  // A set that grows while it is walked is walked to its end: what is compared with is compared with something in turn.
  for (const { measures } of needed) {
    for (const other of measures.flatMap(({ against }) => against)) needed.add(flowOf(flows, other));
  }
  return flows.filter((flow) => needed.has(flow));
}

function flowOf(flows, measure) {
  const found = flows.find(({ measures }) => measures.some(({ name }) => name === measure));
  if (found === undefined) throw new Error(`A flow is compared with "${measure}", which there is not.`);
  return found;
}
