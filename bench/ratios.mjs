/**
 * One row for each measure: what it cost, how fast that is compared with others, and how much longer it took than what
 * it is laid `over`, round by round.
 */
export function rowsOf(flows, costs) {
  const ratioTo = (own) => (other) => ({
    of: other,
    ...spread(own.map((cost, round) => costs.get(other)[round] / cost)),
  });
  return flows.flatMap(({ measures, unit = "ms" }) =>
    measures.map(({ name, against, over }) => {
      const own = costs.get(name);
      const ratios = against.map(ratioTo(own));
      const overhead = over === undefined ? {} : { overhead: overheadOf(own, over, costs.get(over)) };
      return { name, unit, cost: spread(own), ratios, ...overhead, costs: own };
    }),
  );
}

/** Both costs are in milliseconds; a difference of times means nothing on another machine, unlike a ratio. */
function overheadOf(own, over, bare) {
  const differences = own.map((costMs, round) => (costMs - bare[round]) * 1_000);
  return { over, unit: "µs", machineDependent: true, ...spread(differences) };
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
