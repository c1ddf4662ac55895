// The items of the selected group as lines from the predicted to the true order.

function drawSlope(box, items) {
  drawInBox(box, (width) => {
    const frame = slopeFrame(items, width);
    const nSwaps = (i) => items.betterBelow[i] + items.worseAbove[i];
    const order = items.names.map((_, i) => i).sort((a, b) => nSwaps(a) - nSwaps(b));
    const heads = [
      label("predicted", frame.left, 12, frame.hasNames ? "end" : "middle", "strong"),
      label("true", frame.right, 12, "start", "strong"),
    ];
    const parts = [
      ...slopeTies(items, frame),
      ...slopeLevels(frame),
      ...slopeRanks(items, frame),
      ...heads,
      ...order.map((i) => slopeItem(items, frame, i)),
    ];
    const text = `${count(items.names.length, "item")} in predicted order on the left and in true order on the right`;
    return [
      canvas(width, frame.height, text, ...parts),
      html("figcaption", { class: "hint" }, POINT_AT_ITEM),
    ];
  });
}

const SLOPE_TOP = 26;
const MAX_LEVELS = 12;
const MIN_NAME_HEIGHT = 13;
const CHARACTER_WIDTH = 6.6;

function lineHeight(nItems) {
  if (nItems <= 30) return 20;
  if (nItems <= 60) return 14;
  return Math.max(4, Math.round(840 / nItems));
}

// Heights of the items on both sides. Items with equal true scores share a level, in which they
// keep their predicted order, so two lines cross if and only if the pair is in the wrong order.
function slopeFrame(items, width) {
  const n = items.names.length;
  const step = lineHeight(n);
  const hasNames = step >= MIN_NAME_HEIGHT;
  const nLevels = new Set(items.y).size;
  const hasLevels = nLevels > 1 && nLevels <= MAX_LEVELS && nLevels < n;
  const { trueY, levels, bottom } = trueHeights(items, step, hasLevels, hasNames);
  const room = Math.min(250, width * 0.3);
  const stretch = n > 1 ? (bottom - SLOPE_TOP - step) / (n - 1) : 0;
  return {
    width,
    room,
    hasNames,
    hasLevels,
    levels,
    trueY,
    predictedY: items.names.map((_, i) => SLOPE_TOP + step / 2 + i * stretch),
    left: hasNames ? room : 40,
    right: width - room,
    height: bottom + 8,
  };
}

// Heights in the true order. A level with names has a line of its own for its true score.
function trueHeights(items, step, hasLevels, hasNames) {
  const order = items.names.map((_, i) => i).sort((a, b) => items.true[a] - items.true[b] || a - b);
  const headHeight = hasLevels && hasNames ? 16 : 0;
  const gap = hasLevels ? 10 : 0;
  const trueY = [];
  const levels = [];
  let bottom = SLOPE_TOP;
  for (const i of order) {
    let level = levels.at(-1);
    if (level?.y !== items.y[i]) {
      if (level) bottom += gap;
      level = { y: items.y[i], top: bottom, n: 0 };
      levels.push(level);
      bottom += headHeight;
    }
    trueY[i] = bottom + step / 2;
    bottom += step;
    level.n += 1;
    level.bottom = bottom;
  }
  return { trueY, levels, bottom };
}

// Shades behind the items of each true score, with its number.
function slopeLevels(frame) {
  if (!frame.hasLevels) return [];
  return frame.levels.flatMap((level) => {
    const height = level.bottom - level.top;
    const band = { class: "level", x: frame.right, y: level.top, width: frame.room, height, rx: 3 };
    const y = frame.hasNames ? level.top + 12 : level.top + height / 2 + 4;
    return [svg("rect", band), label(levelText(frame, level), frame.right + 4, y, "start", "strong")];
  });
}

function levelText(frame, level) {
  if (frame.room <= 150) return `y = ${formatNumber(level.y)}`;
  return `true score ${formatNumber(level.y)}, ${count(level.n, "item")}`;
}

// Shades behind items with equal predicted scores, whose order is arbitrary.
function slopeTies(items, frame) {
  const half = (frame.predictedY[1] - frame.predictedY[0]) / 2;
  return tiedRuns(items.predicted).map(([first, last]) => {
    const top = frame.predictedY[first] - half + 1;
    const height = frame.predictedY[last] + half - 1 - top;
    return svg("rect", { class: "level", x: 0, y: top, width: frame.left + 4, height, rx: 3 });
  });
}

// Where runs of equal ranks start and end.
function tiedRuns(ranks) {
  const runs = [];
  for (let first = 0, last = 0; first < ranks.length; first = last + 1) {
    last = first;
    while (ranks[last + 1] === ranks[first]) last += 1;
    if (last > first) runs.push([first, last]);
  }
  return runs;
}

// Ranks at both sides, where items are too close for names: every fifth, tenth, … rank.
function slopeRanks(items, frame) {
  if (frame.hasNames) return [];
  const interval = Math.ceil(items.names.length / 20 / 5) * 5;
  const isMarked = (k) => k === 0 || (k + 1) % interval === 0;
  const indices = items.names.map((_, i) => i);
  const left = indices
    .filter(isMarked)
    .map((i) => label(formatNumber(items.predicted[i]), frame.left, frame.predictedY[i] + 4, "end"));
  if (frame.hasLevels) return left;
  const right = indices
    .sort((a, b) => frame.trueY[a] - frame.trueY[b])
    .filter((_, k) => isMarked(k))
    .map((i) => label(trueRankText(items, frame, i), frame.right + 4, frame.trueY[i] + 4));
  return [...left, ...right];
}

function trueRankText(items, frame, i) {
  const truth = `y = ${formatNumber(items.y[i], 4)}`;
  return frame.room > 150 ? `${formatNumber(items.true[i])} · ${truth}` : truth;
}

// The more swaps, the stronger the color; gray if both sides are equal.
function slopeColor(items, i) {
  const nBetter = items.betterBelow[i];
  const nWorse = items.worseAbove[i];
  if (nBetter === nWorse) return "var(--rail)";
  const color = nBetter > nWorse ? "var(--high)" : "var(--low)";
  const share = (nBetter + nWorse) / Math.max(1, items.total - 1);
  const strength = Math.min(100, 30 + 140 * share);
  return `color-mix(in srgb, ${color} ${strength.toFixed(0)}%, var(--rail))`;
}

function slopeItem(items, frame, i) {
  const from = frame.predictedY[i];
  const to = frame.trueY[i];
  const middle = (frame.left + frame.right) / 2;
  const d = `M${frame.left + 6},${from} C${middle},${from} ${middle},${to} ${frame.right - 6},${to}`;
  const attributes = { class: "item", "data-item": i, ...hoverAttributes(i) };
  return svg(
    "g",
    attributes,
    svg("path", { class: "seen", d, styles: { stroke: slopeColor(items, i) } }),
    svg("path", { class: "reach", d }),
    ...(frame.hasNames ? slopeNames(items, frame, i) : []),
  );
}

// The name of an item on both sides, with its predicted rank and, without levels, its true score.
function slopeNames(items, frame, i) {
  const length = Math.floor((frame.room - 12) / CHARACTER_WIDTH);
  const name = items.names[i];
  const leftText = `${isolated(shorten(name, length - 4))}\u2003${items.predicted[i]}`;
  const hasTruth = !frame.hasLevels && frame.width > 500;
  const rightText = hasTruth ? `${formatNumber(items.y[i])}\u2003${isolated(name)}` : name;
  return [
    label(leftText, frame.left, frame.predictedY[i] + 4, "end"),
    label(shorten(rightText, length), frame.right + 4, frame.trueY[i] + 4),
  ];
}
