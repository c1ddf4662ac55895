// Head-to-head results: a matrix of the first items, and the results that surprise.

const FEW_MEETINGS = 5;
const matrixStep = () => (isPhone.matches ? 15 : 40);
let meetingOf = null;

// Wins, ties and losses are told as shares, a tie as half a win; other outcomes as they are.
function outcomeFormat(board) {
  if (board.areVerdicts) {
    const points = (value) => `${Math.round(50 * (1 + value)) + 0}`.replace("-", "−");
    const sign = (value) => (Math.round(50 * value) > 0 ? "+" : "");
    return {
      cell: (value, isDifference) =>
        isDifference
          ? `${sign(value)}${Math.round(50 * value) + 0}`.replace("-", "−")
          : points(value),
      words: (value) => `${points(value)}%`,
      difference: (value) => `${value > 0 ? "+" : ""}${formatFixed(50 * value, 1)}`,
      largest: 1,
    };
  }
  const largest = Math.max(...board.meetings.observed.map((value) => Math.abs(value ?? 0)), 0) || 1;
  const format = formatLike([largest]);
  return { cell: format, words: format, difference: format, largest };
}

// The meeting of two items as the first of them saw it.
function meeting(i, j) {
  if (!meetingOf) {
    const { first, second } = chosen().meetings;
    meetingOf = new Map(first.map((a, k) => [`${a} ${second[k]}`, k]));
  }
  const turned = !meetingOf.has(`${i} ${j}`);
  const k = meetingOf.get(turned ? `${j} ${i}` : `${i} ${j}`);
  if (k === undefined) return null;
  const { n, observed, expected } = chosen().meetings;
  if (observed[k] === null) return null;
  const sign = turned ? -1 : 1;
  const [seen, wanted] = [sign * observed[k], sign * expected[k]];
  return { n: n[k], observed: seen, expected: wanted, difference: seen - wanted };
}

function drawMatrix() {
  const board = chosen();
  const shown = Math.min(state.matrix, board.nMatrix);
  const items = board.rows.item.slice(0, shown);
  const heads = items.map((name) =>
    html("th", { scope: "col", title: name }, html("span", {}, html("bdi", {}, name))),
  );
  const table = byId("matrix");
  table.tHead.rows[0].replaceChildren(html("td"), ...heads);
  const format = outcomeFormat(board);
  const kind = byId("shown").value;
  const lines = items.map((name, i) => {
    const head = html("th", { scope: "row", title: name }, html("bdi", {}, name));
    return html("tr", {}, head, ...items.map((_, j) => matrixCell(format, kind, i, j)));
  });
  table.tBodies[0].replaceChildren(...lines);
  const first = table.querySelector("tbody td:not(.self)");
  if (first) first.tabIndex = 0;
  byId("more-matrix").hidden = shown >= board.nMatrix;
  byId("matrix-count").textContent = matrixWords(board, shown);
  byId("pair-words").textContent = "Point at a cell, or go there with the arrow keys, to read it.";
}

function matrixWords(board, shown) {
  const all = board.rows.item.length;
  if (shown === all) return `All ${formatNumber(all)} items`;
  const rest = board.nMatrix < all ? `; this page has those of the first ${board.nMatrix}` : "";
  return `The first ${formatNumber(shown)} of ${formatNumber(all)} items${rest}`;
}

function matrixCell(format, kind, i, j) {
  if (i === j) return html("td", { class: "self", "aria-label": "itself" });
  const found = meeting(i, j);
  const attributes = { tabindex: -1, "data-i": i, "data-j": j };
  if (!found) return html("td", { ...attributes, "aria-label": "never met" });
  const strength = found[kind] / (kind === "difference" ? 0.6 * format.largest : format.largest);
  return html(
    "td",
    {
      ...attributes,
      class: found.n < FEW_MEETINGS ? "few" : null,
      styles: heatStyles((strength * found.n) / (found.n + FEW_MEETINGS)), // few are pale
    },
    format.cell(found[kind], kind === "difference"),
  );
}

function tellPair(cell) {
  if (cell?.dataset.i === undefined) return;
  const [i, j] = [Number(cell.dataset.i), Number(cell.dataset.j)];
  const board = chosen();
  const found = meeting(i, j);
  const names = [i, j].map((k) => html("bdi", {}, board.rows.item[k]));
  const words = byId("pair-words");
  if (!found) {
    words.replaceChildren(names[0], " and ", names[1], " never met.");
    return;
  }
  const format = outcomeFormat(board);
  const times = `${formatNumber(found.n)} comparison${found.n === 1 ? "" : "s"}`;
  const [seen, expected] = [found.observed, found.expected].map(format.words);
  const told = board.areVerdicts
    ? `: won ${seen} of ${times}, ${expected} expected.`
    : `: mean outcome ${seen} in ${times}, ${expected} expected.`;
  words.replaceChildren(names[0], " against ", names[1], told);
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// Arrow keys go from cell to cell, past those of an item against itself.
function stepInMatrix(event) {
  const step = STEPS[event.key];
  const cell = event.target.closest("td");
  if (!step || !cell) return;
  event.preventDefault();
  const lines = byId("matrix").tBodies[0].rows;
  let [row, column] = [cell.parentNode.sectionRowIndex, cell.cellIndex];
  let next = null;
  do {
    [row, column] = [row + step[0], column + step[1]];
    next = column > 0 ? lines[row]?.cells[column] : null;
  } while (next?.classList.contains("self"));
  if (!next) return;
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function setUpMeetings() {
  const matrix = byId("matrix");
  for (const kind of ["mouseover", "focusin", "click"]) {
    matrix.addEventListener(kind, (event) => tellPair(event.target.closest("tbody td")));
  }
  matrix.addEventListener("keydown", stepInMatrix);
  byId("shown").addEventListener("change", drawMatrix);
  byId("more-matrix").addEventListener("click", () => {
    state.matrix += matrixStep();
    drawMatrix();
  });
  byId("matrix-legend").replaceChildren(
    html("span", {}, html("i", { class: "heat-high" }), "good for the row"),
    html("span", {}, html("i", { class: "heat-low" }), "bad for the row"),
    html("span", {}, html("em", {}, "slanted"), `fewer than ${FEW_MEETINGS} comparisons; the fewer, the paler`),
    html("span", {}, "empty: never met"),
  );
}

function drawMeetings() {
  const board = chosen();
  meetingOf = null;
  state.matrix = Math.min(matrixStep(), board.nMatrix);
  const line =
    board.model === "least-squares" && board.areVerdicts
      ? " Least squares draws a straight line, so for items far apart it may expect less than 0% or more than 100%."
      : "";
  byId("meeting-lead").textContent = board.areVerdicts
    ? `Each cell has the share of the comparisons that the item of the row won against the item of the column, in percent; a tie is half a win. Expected is what ratings and effects say of the same comparisons.${line}`
    : "Each cell has the mean outcome of the item of the row against the item of the column. Expected is what ratings and effects say of the same comparisons.";
  drawMatrix();
  drawSurprises(board);
}

function drawSurprises(board) {
  const { first, second, n, observed, expected, surprise } = board.surprises;
  const format = outcomeFormat(board);
  const sign = surprise.map((value) => (value < 0 ? -1 : 1)); // told by the one that did better
  const ahead = first.map((item, k) => (sign[k] > 0 ? item : second[k]));
  const behind = first.map((item, k) => (sign[k] > 0 ? second[k] : item));
  const name = (title, items) => textColumn(title, (k) => board.rows.item[items[k]]);
  const value = (title, of, show) => ({ title, value: of, cell: (k) => show(of(k)) });
  const unit = board.areVerdicts ? " (points)" : "";
  const columns = [
    name("Item", ahead),
    name("Against", behind),
    value("Comparisons", (k) => n[k], formatNumber),
    value("Seen", (k) => sign[k] * observed[k], format.words),
    value("Expected", (k) => sign[k] * expected[k], format.words),
    value(`Difference${unit}`, (k) => sign[k] * (observed[k] - expected[k]), format.difference),
    value("Surprise", (k) => Math.abs(surprise[k]), (size) => formatFixed(size, 1)),
  ];
  const table = new SortableTable(byId("surprise-table"), columns);
  Object.assign(table, { column: 6, isAscending: false });
  table.setRows(first.map((_, k) => k));
  byId("surprise-hint").textContent =
    `The ${formatNumber(first.length)} of ${formatNumber(board.nPairs)} pairs that differ most from what was expected, with allowance for the number of comparisons: a surprise of 1 is typical, and among many pairs a few of 3 are chance.`;
}
