// Ratings with intervals: one row an item, one scale for all of them.

const FIRST_ROWS = 50;
const PICTURE_ITEMS = 30;
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

const smallWidth = () => (isPhone.matches ? 112 : 160);
const aThird = () =>
  isPhone.matches ? 104 : Math.round(byId("rating-table").parentNode.clientWidth / 3);

function frameOf([from, to], width = smallWidth()) {
  const x = linearScale(from, to, 6, width - 6);
  return { from, to, width, x, ticks: linearTicks(from, to, width < 150 ? 3 : 5) };
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

// The ranks that are possible: a bar for this item, a line for all items at once.
function rankPicture(rows, i, width) {
  const last = Math.max(...rows.worst_rank);
  const x = linearScale(0.5, last + 0.5, 1, width - 1);
  const bar = (className, best, worst, height) => {
    const [left, right] = [x(best - 0.5), x(worst + 0.5)];
    return svg("rect", { class: className, x: left, width: right - left, y: 7 - height / 2, height });
  };
  const parts = [verticalLine("grid", x(0.5), 0, 14), verticalLine("grid", x(last + 0.5), 0, 14)];
  if (rows.best_rank[i] !== null) {
    parts.push(bar("at-once", rows.best_of_all[i], rows.worst_of_all[i], 2));
    parts.push(bar("ranks", rows.best_rank[i], rows.worst_rank[i], 9));
  }
  return canvas(width, 14, `ranks ${rankRange(rows, i)} of ${last}`, ...parts);
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
      frameOf(ratingRange(rows), aThird()),
      ...["rating", "low", "high"].map(at),
      format,
    ),
  ];
  if (board.hasIntervals) {
    columns.push(
      {
        title: "Ranks",
        value: at("best_rank"),
        cell: (i) => html("td", { class: "picture two-lines" }, ...rankWords(rows, i)),
        ...rising,
      },
      {
        title: unitTitle(board),
        value: at("rating"),
        cell: (i) => twoLines(format(rows.rating[i]), span(rows.low[i], rows.high[i], format)),
      },
    );
  } else columns.push(number(unitTitle(board), "rating", format));
  if (rows.holds) {
    columns.push({ title: "Holds by", value: at("holds"), cell: (i) => rows.holdsText[i] ?? "–" });
  }
  columns.push({
    title: "Comparisons",
    value: at("n"),
    cell: (i) => twoLines(formatNumber(rows.n[i]), recordOf(rows, i)),
  });
  if (board.nComponents > 1) columns.push(number("Part", "component", formatNumber, rising));
  return columns;
}

function rankWords(rows, i) {
  const ranks = rankRange(rows, i);
  const words = isPhone.matches ? ranks : `${ranks}, at once ${rankRange(rows, i, "of_all")}`;
  return [rankPicture(rows, i, isPhone.matches ? 52 : 120), html("small", {}, words)];
}

const twoLines = (text, more) =>
  html("td", { class: "two-lines" }, text, html("small", {}, more));

function itemName(rows, thin, i) {
  const name = html("bdi", {}, rows.item[i]);
  if (!thin.has(i)) return name;
  const words = "thin: fewer than 5 comparisons, or all of them ended alike";
  return html("span", {}, name, html("span", { class: "thin", title: words }, "\u00a0†"));
}

const rankRange = (rows, i, kind = "rank") =>
  rows.best_rank[i] === null
    ? "–"
    : `${formatNumber(rows[`best_${kind}`][i])}–${formatNumber(rows[`worst_${kind}`][i])}`;

const recordOf = (rows, i) =>
  ["wins", "ties", "losses"].map((name) => formatNumber(rows[name][i])).join("/");

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
  byId("save-csv").onclick = () => saveTable(board);
  byId("save-png").onclick = () => savePicture(board);
}

// --- to take away -------------------------------------------------------------------------------

function save(name, address) {
  const link = html("a", { href: address, download: name });
  link.click();
}

function saveTable({ rows, label }) {
  const columns = Object.keys(rows).filter((name) => rows[name] && !name.startsWith("holdsT"));
  const thin = new Set(rows.thin);
  const cell = (name, i) => (name === "thin" ? thin.has(i) : (rows[name][i] ?? ""));
  const quoted = (value) => `"${String(value).replaceAll('"', '""')}"`;
  const line = (values) => values.map(quoted).join(",");
  const lines = rows.item.map((_, i) => line(columns.map((name) => cell(name, i))));
  const text = `\ufeff${[line(columns), ...lines].join("\r\n")}\r\n`;
  save(`${label || "board"}.csv`, `data:text/csv;charset=utf-8,${encodeURIComponent(text)}`);
}

// The first items with their intervals, drawn on a canvas in the colors of the page.
function savePicture(board) {
  const { rows } = board;
  const shown = rows.item.slice(0, PICTURE_ITEMS);
  const [names, width, line, top] = [260, 900, 24, 56];
  const paper = html("canvas", { width: 2 * width, height: 2 * (top + line * shown.length + 16) });
  const pen = paper.getContext("2d");
  const ink = getComputedStyle(document.body).color;
  const [from, to] = ratingRange(rows);
  const x = linearScale(from, to, names, width - 24);
  const clip = (value) => Math.min(Math.max(x(value), names), width - 24);
  const bar = (left, right, y, height) => pen.fillRect(left, y - height / 2, right - left, height);
  pen.scale(2, 2);
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, paper.width, paper.height);
  pen.fillStyle = ink;
  pen.font = "600 16px system-ui, sans-serif";
  pen.fillText(document.querySelector("h1").textContent.slice(0, 80), 16, 24, width - 32);
  pen.font = "13px system-ui, sans-serif";
  pen.textAlign = "center";
  for (const tick of linearTicks(from, to, 5)) pen.fillText(formatTick(tick), x(tick), top - 10);
  shown.forEach((name, i) => {
    const y = top + line * (i + 0.5);
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.fillText(`${rows.rank[i] ?? "–"}  ${name.slice(0, 60)}`, 16, y + 4, names - 32);
    pen.fillStyle = getComputedStyle(document.querySelector("header .brand")).color;
    if (rows.low && rows.low[i] !== null) bar(clip(rows.low[i]), clip(rows.high[i]), y, 2);
    pen.beginPath();
    pen.arc(clip(rows.rating[i]), y, 4, 0, 2 * Math.PI);
    pen.fill();
  });
  save(`${board.label || "board"}.png`, paper.toDataURL("image/png"));
}

function ratingLegend(board) {
  const key = (className, words) => html("span", {}, html("i", { class: className }), words);
  const found = [];
  if (board.hasIntervals) {
    found.push(key("ranks", "ranks it may have"), key("at-once", "with all items at once"));
  }
  if (board.rows.tier?.some((tier) => tier > 1)) found.push(key("level", "every other tier is shaded"));
  if (board.rows.thin.length) {
    found.push(html("span", {}, html("b", { class: "thin" }, "†"), "thin: little is known"));
  }
  return found;
}
