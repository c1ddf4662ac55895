// Ratings with intervals: one row an item, one scale for all of them.

const FIRST_ROWS = 50;
const state = { board: 0, matrix: 0 };
const chosen = () => data.boards[state.board];
const isPhone = window.matchMedia("(max-width: 40rem)");

const percent = (confidence) => `${Number((100 * confidence).toPrecision(6))}%`;
const span = (low, high, format) => (low === null ? "–" : `${format(low)} … ${format(high)}`);

// As many decimals for all as their spread asks for.
function ratingFormat(rows) {
  const known = rows.rating.filter((value) => value !== null);
  const width = Math.max(...known) - Math.min(...known);
  if (!(width > 0) || width < 1e-6 || width >= 1e9) return (value) => formatNumber(value, 4);
  const decimals = Math.max(2 - Math.floor(Math.log10(width)), 0);
  return (value) => formatFixed(value, decimals);
}

// A column of words that others wrote.
function textColumn(title, value, more = {}) {
  return { title, isText: true, value, cell: (k) => html("bdi", {}, value(k)), ...more };
}

// --- the picture of an interval -----------------------------------------------------------------

// Without the outermost hundredth at each end.
function mostOf(values) {
  const sorted = values.slice().sort((a, b) => a - b);
  const cut = Math.floor(sorted.length / 100);
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}

// From the well-known items, and half as much beyond at most for the ratings of the others: a
// newcomer's endless interval is cut, else it would press all others flat.
function ratingRange(rows) {
  const thin = new Set(rows.thin);
  const all = rows.rating.map((_, i) => i);
  const known = all.filter((i) => !thin.has(i));
  const used = known.length > 1 ? known : all;
  const ratings = used.map((i) => rows.rating[i]);
  const low = rows.low ? used.map((i) => rows.low[i]) : ratings;
  const high = rows.low ? used.map((i) => rows.high[i]) : ratings;
  const [from, to] = extent([mostOf(low)[0], mostOf(high)[1], ...ratings]);
  const [least, most] = extent(rows.rating);
  const reach = (to - from) / 2;
  const pad = (to - from) * 0.02 || Math.abs(to) * 0.02 || 1;
  return [
    Math.min(from, Math.max(least, from - reach)) - pad,
    Math.max(to, Math.min(most, to + reach)) + pad,
  ];
}

const pictureWidth = () => (isPhone.matches ? 112 : 160);

function frameOf([from, to]) {
  const width = pictureWidth();
  const x = linearScale(from, to, 6, width - 6);
  return { from, to, width, x, ticks: linearTicks(from, to, isPhone.matches ? 3 : 5) };
}

// What is outside ends in an arrow at the edge.
function intervalPicture(frame, value, low, high, words) {
  const [left, right, middle] = [frame.x(frame.from), frame.x(frame.to), 11];
  const clip = (v) => Math.min(Math.max(frame.x(v), left), right);
  const parts = frame.ticks.map((tick) => verticalLine("grid", frame.x(tick), 0, 22));
  if (low !== null) {
    parts.push(
      svg("line", { class: "whisker", x1: clip(low), x2: clip(high), y1: middle, y2: middle }),
    );
    if (low < frame.from) parts.push(arrow(left, middle, -1));
    if (high > frame.to) parts.push(arrow(right, middle, 1));
  }
  if (value >= frame.from && value <= frame.to) {
    parts.push(svg("circle", { class: "dot", cx: frame.x(value), cy: middle, r: 4 }));
  }
  return canvas(frame.width, 22, words, ...parts);
}

function arrow(x, y, direction) {
  const tip = x + 5 * direction;
  return svg("polygon", { class: "dot", points: `${tip},${y} ${x},${y - 4} ${x},${y + 4}` });
}

function intervalAxis(frame) {
  const [first, second] = frame.ticks.map(frame.x);
  const isTight = second - first < 40; // then every other tick has its number
  const marks = frame.ticks.flatMap((tick, k) => [
    isTight && k % 2 ? null : label(formatTick(tick), frame.x(tick), 11, "middle"),
    verticalLine("axis", frame.x(tick), 14, 18),
  ]);
  const words = `Scale from ${formatTick(frame.ticks[0])} to ${formatTick(frame.ticks.at(-1))}`;
  return canvas(frame.width, 18, words, ...marks);
}

// A column with pictures; its head has the scale.
function pictureColumn(title, frame, value, low, high, format) {
  const cell = (i) => {
    const words = `${format(value(i))}, ${span(low(i), high(i), format)}`;
    const picture = intervalPicture(frame, value(i), low(i), high(i), words);
    return html("td", { class: "picture" }, picture);
  };
  return { title, value, cell, axis: frame };
}

function drawAxes(table) {
  table.columns.forEach((column, k) => {
    if (!column.axis) return;
    const head = table.table.tHead.rows[0].cells[k];
    head.classList.add("picture");
    head.append(intervalAxis(column.axis));
  });
}

// --- the table ----------------------------------------------------------------------------------

const unitTitle = (board) =>
  ({ margin: "Rating", logit: "Logits", elo: "Elo points" })[board.scale];

function ratingColumns(board) {
  const { rows } = board;
  const thin = new Set(rows.thin);
  const format = ratingFormat(rows);
  const at = (name) => (i) => (rows[name] ? rows[name][i] : null);
  const number = (title, name, show = formatNumber, more = {}) => ({
    title,
    value: at(name),
    cell: (i) => show(rows[name][i]),
    ...more,
  });
  const rising = { isAscending: true };
  const columns = [
    number("Rank", "rank", formatNumber, { ...rising, value: (i) => i }), // as on the board
    { title: "Item", isText: true, value: at("item"), cell: (i) => itemName(rows, thin, i) },
    pictureColumn(
      board.hasIntervals ? "Rating and interval" : "Rating drawn",
      frameOf(ratingRange(rows)),
      ...["rating", "low", "high"].map(at),
      format,
    ),
    number(unitTitle(board), "rating", format),
  ];
  if (board.hasIntervals) {
    columns.push(
      {
        title: `${percent(board.confidence)} interval`,
        value: at("low"),
        cell: (i) => span(rows.low[i], rows.high[i], format),
      },
      {
        title: "Rank range",
        value: at("best_rank"),
        cell: (i) => rankRange(rows, i),
        ...rising,
      },
      number("Tier", "tier", formatNumber, rising),
    );
  }
  columns.push(number("Comparisons", "n"), recordColumn(rows));
  if (board.nComponents > 1) columns.push(number("Part", "component", formatNumber, rising));
  return columns;
}

function itemName(rows, thin, i) {
  const name = html("bdi", {}, rows.item[i]);
  if (!thin.has(i)) return name;
  const words = "thin: fewer than 5 comparisons, or all of them ended alike";
  return html("span", {}, name, html("span", { class: "thin", title: words }, "\u00a0†"));
}

const rankRange = (rows, i) =>
  rows.best_rank[i] === null
    ? "–"
    : `${formatNumber(rows.best_rank[i])}–${formatNumber(rows.worst_rank[i])}`;

function recordColumn(rows) {
  const parts = ["wins", "ties", "losses"].map((name) => rows[name]);
  return {
    title: "Won, tied, lost",
    value: (i) => (rows.n[i] ? (rows.wins[i] + rows.ties[i] / 2) / rows.n[i] : null),
    cell: (i) => parts.map((values) => formatNumber(values[i])).join("/"),
  };
}

function drawRatings() {
  const board = chosen();
  const tiers = board.rows.tier;
  const attributes = (i) => ({ class: tiers?.[i] && tiers[i] % 2 === 0 ? "shaded" : null });
  const columns = ratingColumns(board);
  const table = new SortableTable(byId("rating-table"), columns, {
    attributes,
    more: byId("more-ratings"),
    step: FIRST_ROWS,
    filter: byId("filter"),
    status: byId("rating-count"),
    noun: "items",
  });
  drawAxes(table);
  byId("rating-legend").replaceChildren(...ratingLegend(board));
  table.setRows(board.rows.item.map((_, i) => i));
}

function ratingLegend(board) {
  const key = (className, words) => html("span", {}, html("i", { class: className }), words);
  const found = [];
  if (board.rows.tier?.some((tier) => tier > 1)) found.push(key("level", "every other tier is shaded"));
  if (board.rows.thin.length) {
    found.push(html("span", {}, html("b", { class: "thin" }, "†"), "thin: little is known"));
  }
  return found;
}
