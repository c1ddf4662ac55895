// Ratings with intervals: one row per item, with a common scale.

const FIRST_ROWS = 50;
const PICTURE_ITEMS = 30;
const state = { board: 0, matrix: 0 };
const chosen = () => data.boards[state.board];
const isPhone = window.matchMedia("(max-width: 40rem)");

// One note as a paragraph, several as a list.
function noteBox(notes) {
  if (notes.length < 2) return notes.map((note) => html("p", { class: "note", dir: "auto" }, note));
  return [html("ul", { class: "note" }, ...notes.map((note) => html("li", { dir: "auto" }, note)))];
}

const percent = (confidence) => `${Number((100 * confidence).toPrecision(6))}%`;
const span = (low, high, format) => (low === null ? "–" : `${format(low)} … ${format(high)}`);

// The same number of decimals for all ratings, chosen by their range; by the intervals if all
// ratings are equal.
function ratingFormat(rows) {
  const rangeOf = (values) => extent(values)[1] - extent(values)[0];
  const width = rangeOf(rows.rating) || rangeOf([...(rows.low ?? []), ...(rows.high ?? [])]);
  if (!(width > 0) || width < 1e-6 || width >= 1e9) return (value) => formatNumber(value, 4);
  const decimals = Math.max(2 - Math.floor(Math.log10(width)), 0);
  return (value) => formatFixed(value, decimals);
}

// A column of text from users.
function textColumn(title, value, options = {}) {
  return { title, isText: true, value, cell: (k) => html("bdi", {}, value(k)), ...options };
}

// --- drawings of intervals and ranks ------------------------------------------------------------

// Range of the values without the outermost hundredth at each end.
function robustExtent(values) {
  const sorted = values.slice().sort((a, b) => a - b);
  const cut = Math.floor(sorted.length / 100);
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}

// The range of the drawing: intervals of items with enough comparisons, and ratings of the others
// up to half of that range beyond. Very wide intervals of new items are cut.
function ratingRange(rows) {
  const thin = new Set(rows.thin);
  const all = rows.rating.map((_, i) => i);
  const withEnough = all.filter((i) => !thin.has(i));
  const items = withEnough.length > 1 ? withEnough : all;
  const ratings = items.map((i) => rows.rating[i]);
  const low = rows.low ? items.map((i) => rows.low[i]) : ratings;
  const high = rows.low ? items.map((i) => rows.high[i]) : ratings;
  const [from, to] = extent([robustExtent(low)[0], robustExtent(high)[1], ...ratings]);
  const [least, most] = extent(rows.rating);
  const reach = (to - from) / 2;
  const pad = (to - from) * 0.02 || Math.abs(to) * 0.02 || 1;
  return [
    Math.min(from, Math.max(least, from - reach)) - pad,
    Math.max(to, Math.min(most, to + reach)) + pad,
  ];
}

const effectWidth = () => (isPhone.matches ? 112 : 160);

function ratingWidth() {
  if (isPhone.matches) return 80;
  return Math.round(byId("rating-table").parentNode.clientWidth / 3);
}

function frameOf([from, to], width = effectWidth()) {
  const x = linearScale(from, to, 6, width - 6);
  return { from, to, width, x, ticks: linearTicks(from, to, width < 150 ? 3 : 5) };
}

// An interval that extends beyond the frame ends in an arrow.
function intervalPicture(frame, value, low, high, words) {
  const left = frame.x(frame.from);
  const right = frame.x(frame.to);
  const middle = 11;
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
  const isTight = second - first < 40; // every other tick has a number
  const marks = frame.ticks.flatMap((tick, k) => [
    isTight && k % 2 ? null : label(formatTick(tick), frame.x(tick), 11, "middle"),
    verticalLine("axis", frame.x(tick), 14, 18),
  ]);
  const words = `Scale from ${formatTick(frame.ticks[0])} to ${formatTick(frame.ticks.at(-1))}`;
  return canvas(frame.width, 18, words, ...marks);
}

// A column of drawings; its head contains the scale.
function pictureColumn(title, frame, value, low, high, format) {
  const cell = (i) => {
    const text = `${format(value(i))}, ${span(low(i), high(i), format)}`;
    const drawing = intervalPicture(frame, value(i), low(i), high(i), text);
    return html("td", { class: "picture" }, drawing);
  };
  return { title, value, cell, axis: frame, isLeft: true };
}

// Possible ranks: a bar for each item separately, a line for all items simultaneously.
function rankPicture(rows, i, width) {
  const last = Math.max(...rows.worst_rank);
  const x = linearScale(0.5, last + 0.5, 1, width - 1);
  const bar = (className, best, worst, height) => {
    const left = x(best - 0.5);
    const width = x(worst + 0.5) - left;
    return svg("rect", { class: className, x: left, width, y: 7 - height / 2, height });
  };
  const parts = [verticalLine("grid", x(0.5), 0, 14), verticalLine("grid", x(last + 0.5), 0, 14)];
  if (rows.best_rank[i] !== null) {
    parts.push(bar("at-once", rows.best_of_all[i], rows.worst_of_all[i], 2));
    parts.push(bar("ranks", rows.best_rank[i], rows.worst_rank[i], 9));
  }
  return canvas(width, 14, `ranks ${rankRange(rows, i)} of ${last}`, ...parts);
}

// What the second line of the cells contains, below the title of the column.
function addSecondLines(table) {
  table.columns.forEach(({ secondLine }, k) => {
    if (secondLine) table.table.tHead.rows[0].cells[k].append(html("small", {}, secondLine));
  });
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

// Words for comparisons of items; a board of scores brings its own.
const COMPARISON_WORDS = {
  item: "Item",
  items: "items",
  comparisons: "Comparisons",
  record: "won/tied/lost",
  thin: "few data: fewer than 5 comparisons, or only one kind of outcome",
};
const wordsOf = (board) => board.words ?? COMPARISON_WORDS;

const unitTitle = (board) =>
  ({ margin: "Margin", score: "Rating", logit: "Log odds", elo: "Elo points" })[board.scale];

function ratingColumns(board) {
  const { rows } = board;
  const thin = new Set(rows.thin);
  const format = ratingFormat(rows);
  const at = (name) => (i) => (rows[name] ? rows[name][i] : null);
  const number = (title, name, format = formatNumber, options = {}) => ({
    title,
    value: at(name),
    cell: (i) => format(rows[name][i]),
    ...options,
  });
  const rising = { isAscending: true };
  const columns = [
    number("Rank", "rank", formatNumber, { ...rising, value: (i) => i }), // the order of the board
    {
      title: wordsOf(board).item,
      isText: true,
      value: at("item"),
      cell: (i) => itemName(board, thin, i),
    },
    pictureColumn(
      board.hasIntervals ? "Rating and interval" : "Rating",
      frameOf(ratingRange(rows), ratingWidth()),
      ...["rating", "low", "high"].map(at),
      format,
    ),
  ];
  if (board.hasIntervals) {
    columns.push(
      {
        title: "Ranks",
        value: at("best_rank"),
        cell: (i) => html("td", { class: "picture two-lines" }, ...rankCell(rows, i)),
        isLeft: true,
        ...rising,
      },
      {
        title: unitTitle(board),
        secondLine: `${percent(board.confidence)} interval`,
        value: at("rating"),
        cell: (i) => twoLines(format(rows.rating[i]), span(rows.low[i], rows.high[i], format)),
      },
    );
  } else columns.push(number(unitTitle(board), "rating", format));
  if (rows.holds) {
    columns.push({ title: "To flip", value: at("holds"), cell: (i) => rows.holdsText[i] ?? "–" });
  }
  const hasRecord = board.hasOutcomes !== false;
  const record = (i) => (hasRecord ? recordOf(rows, i) : "");
  columns.push({
    title: wordsOf(board).comparisons,
    secondLine: hasRecord ? wordsOf(board).record : null,
    value: at("n"),
    cell: (i) => twoLines(formatNumber(rows.n[i]), record(i)),
  });
  if (board.nComponents > 1) columns.push(number("Component", "component", formatNumber, rising));
  return columns;
}

function rankCell(rows, i) {
  const ranks = rankRange(rows, i);
  const text = isPhone.matches ? ranks : `${ranks}, at once ${rankRange(rows, i, "of_all")}`;
  return [rankPicture(rows, i, isPhone.matches ? 44 : 120), html("small", {}, text)];
}

const twoLines = (text, secondLine) =>
  html("td", { class: "two-lines" }, text, html("small", {}, secondLine));

// The name of an item; on a phone, which has no column of ranks, with the rank.
function itemName({ rows, words }, thin, i) {
  const parts = [html("bdi", {}, rows.item[i])];
  if (isPhone.matches && rows.rank[i] !== null) {
    parts.unshift(html("span", { class: "rank" }, `${formatNumber(rows.rank[i])}.\u00a0`));
  }
  if (thin.has(i)) {
    const title = (words ?? COMPARISON_WORDS).thin;
    parts.push(html("span", { class: "thin", title }, "\u00a0†"));
  }
  return html("span", {}, ...parts);
}

function rankRange(rows, i, kind = "rank") {
  if (rows.best_rank[i] === null) return "–";
  const [best, worst] = [rows[`best_${kind}`][i], rows[`worst_${kind}`][i]];
  return best === worst ? formatNumber(best) : `${formatNumber(best)}–${formatNumber(worst)}`;
}

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
    noun: wordsOf(board).items,
  });
  drawAxes(table);
  addSecondLines(table);
  byId("rating-legend").replaceChildren(...ratingLegend(board));
  table.setRows(board.rows.item.map((_, i) => i));
  byId("save-csv").onclick = () => saveTable(board);
  byId("save-png").onclick = () => savePicture(board);
}

// --- export ---------------------------------------------------------------------------------------

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

// An image of the first items with their intervals, in the colors of the page.
function savePicture(board) {
  const { rows } = board;
  const shown = rows.item.slice(0, PICTURE_ITEMS);
  const names = 260;
  const width = 900;
  const line = 24;
  const top = 56;
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
  const key = (className, text) => html("span", {}, html("i", { class: className }), text);
  const entries = [];
  if (board.hasIntervals) {
    entries.push(key("ranks", "possible ranks"), key("at-once", `for all ${wordsOf(board).items} at once`));
  }
  if (board.rows.tier?.some((tier) => tier > 1)) {
    entries.push(key("level", "every other tier is shaded"));
  }
  if (board.rows.thin.length) {
    entries.push(html("span", {}, html("b", { class: "thin" }, "†"), "few data"));
  }
  return entries;
}
