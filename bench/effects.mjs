/** Gives every call of this process a number of its own, from 1 on. */
export function callNumbers() {
  let last = 0;
  return {
    take: (count) => {
      const first = last + 1;
      last += count;
      return Array.from({ length: count }, (_, place) => first + place);
    },
  };
}

/** Throws unless every flow wrote as many rows as it had to, each of a call of its own: a lost effect is no speed. */
export function checkWritten(written, made) {
  const strangers = new Set(written);
  if (strangers.size < written.length)
    throw new Error(`${written.length - strangers.size} rows are the second of their call.`);
  for (const { flow, ids } of made) {
    const rows = ids.filter((id) => strangers.delete(id)).length;
    const due = flow.effects(ids.length);
    if (rows !== due)
      throw new Error(`${ids.length} calls of "${nameOf(flow)}" wrote ${rows} rows instead of ${due}.`);
  }
  if (strangers.size > 0) throw new Error(`${strangers.size} rows were written by no call of this round.`);
}

function nameOf({ measures: [first] }) {
  return first.name;
}
