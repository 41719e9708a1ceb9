/** One row for each measure: what it cost, and how fast that is compared with others, round by round. */
export function rowsOf(flows, costs) {
  const ratioTo = (own) => (other) => ({
    of: other,
    ...spread(own.map((cost, round) => costs.get(other)[round] / cost)),
  });
  return flows.flatMap(({ measures, unit = "ms" }) =>
    measures.map(({ name, against }) => {
      const own = costs.get(name);
      return { name, unit, cost: spread(own), ratios: against.map(ratioTo(own)), costs: own };
    }),
  );
}

/** The middle of some numbers, with the two ends. */
export function spread(numbers) {
  return { median: median(numbers), min: Math.min(...numbers), max: Math.max(...numbers) };
}

/** The one in the middle, or the mean of the two there. */
export function median(numbers) {
  const sorted = numbers.toSorted((left, right) => left - right);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle)]) / 2;
}
