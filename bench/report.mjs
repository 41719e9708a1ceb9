/** The whole report for people, as Markdown. */
export function tableOf({ sections, ...about }) {
  const { node, oncekey, platform, cpus, cpuModel, loadAverage, takenAt } = about;
  return [
    `Node ${node}, oncekey ${oncekey}, ${platform}, ${cpus} × ${cpuModel}`,
    `Load average ${loadAverage.before} before and ${loadAverage.after} after; taken at ${takenAt}`,
    "",
    READING,
    ...sections.flatMap(sectionOf),
  ].join("\n");
}

const READING = `A ratio is the time of the other flow divided by this one's, in the same round: 1 is as fast, 0.5 half as fast.
All figures are medians over the rounds, with the least and the greatest. Only ratios mean anything on another machine.
An overhead is the time of this flow less the other's, in the same round: it says what a key costs whatever the effect is,
and it is of this machine only. With one call in flight a call waits so much longer; with many it is what the machine as a
whole spends on each.
A call is in flight from when it is made until it is answered, the wait for a connection included; as one is answered
the next is made. In a burst all calls are made at once, and the next burst when the last one is answered.`;

function sectionOf({ store, database, driver, notes, inFlight, calls, rounds, rows }) {
  const lines = rows.flatMap(linesOf);
  return [
    "",
    `### ${store}, ${inFlight} in flight`,
    "",
    `${database}, driver ${driver}; ${notes}; ${rounds} rounds of ${calls} calls of each flow`,
    "",
    ...aligned([["flow", "cost of a call", "ratio", "to"], ...lines]),
    ...overheadOf(rows),
  ];
}

/** A table of its own, so that nobody takes one of these figures along without what is said of all of them. */
function overheadOf(rows) {
  const lines = rows.flatMap(({ name, ratios, overhead }) => {
    if (overhead === undefined) return [];
    const { over, unit, ...longer } = overhead;
    const ratio = ratios.find(({ of }) => of === over);
    return [[name, `${shown(longer)} ${unit}`, shown(ratio), over]];
  });
  if (lines.length === 0) return [];
  return ["", ...aligned([["overhead", "longer by, ON THIS MACHINE ONLY", "ratio", "than"], ...lines])];
}

function linesOf({ name, unit, cost, ratios }) {
  const own = [name, `${shown(cost)} ${unit}`];
  if (ratios.length === 0) return [[...own, "", ""]];
  return ratios.map(({ of, ...ratio }, place) => [...(place === 0 ? own : ["", ""]), shown(ratio), of]);
}

/** A median with both ends. */
export function shown({ median, min, max }) {
  return `${rounded(median)} (${rounded(min)} – ${rounded(max)})`;
}

/** Three digits that count. */
function rounded(number) {
  return Math.abs(number) >= 100 ? number.toFixed(0) : number.toPrecision(3);
}

/** Rows of cells as a table of Markdown. */
export function aligned([head, ...body]) {
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((cells) => cells[column].length)));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...body.map(line)];
}
