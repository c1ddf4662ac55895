// Head-to-head results: a matrix of the first items, and the most surprising results.

const FEW_MEETINGS = 5;
const matrixStep = () => (isPhone.matches ? 15 : 40);
let meetingOf = null;

// Wins, ties and losses as shares, where a tie is half a win; other outcomes as numbers.
function outcomeFormat(board) {
  if (board.areVerdicts) {
    const points = (value) => `${Math.round(50 * (1 + value)) + 0}`.replace("-", "−");
    const sign = (value) => (Math.round(50 * value) > 0 ? "+" : "");
    return {
      cell: (value, isDifference) =>
        isDifference
          ? `${sign(value)}${Math.round(50 * value) + 0}`.replace("-", "−")
          : points(value),
      text: (value) => `${points(value)}%`,
      difference: (value) => `${sign(value)}${points(value - 1)}`,
      largest: 1,
    };
  }
  const largest = Math.max(...board.meetings.observed.map((value) => Math.abs(value ?? 0)), 0) || 1;
  const format = formatLike([largest]);
  return { cell: format, text: format, difference: format, largest };
}

// The results of item i against item j; null if they were never compared.
function meeting(i, j) {
  if (!meetingOf) {
    const { first, second } = chosen().meetings;
    meetingOf = new Map(first.map((a, k) => [`${a} ${second[k]}`, k]));
  }
  const isReversed = !meetingOf.has(`${i} ${j}`);
  const k = meetingOf.get(isReversed ? `${j} ${i}` : `${i} ${j}`);
  const { n, observed, expected } = chosen().meetings;
  if (k === undefined || observed[k] === null) return null;
  const sign = isReversed ? -1 : 1;
  return {
    n: n[k],
    observed: sign * observed[k],
    expected: sign * expected[k],
    difference: sign * (observed[k] - expected[k]),
  };
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
  table.style.setProperty("--n-items", shown);
  byId("matrix-count").textContent = matrixCount(board, shown);
  byId("pair-words").textContent = "Point at a cell, or move there with the arrow keys, to read it.";
}

function matrixCount(board, shown) {
  const total = board.rows.item.length;
  if (shown === total) return total === 2 ? "Both items" : `All ${formatNumber(total)} items`;
  const limit = board.nMatrix < total ? `; this page has results of the first ${board.nMatrix}` : "";
  return `The first ${formatNumber(shown)} of ${formatNumber(total)} items${limit}`;
}

function matrixCell(format, kind, i, j) {
  if (i === j) return html("td", { class: "self", "aria-label": "itself" });
  const results = meeting(i, j);
  const attributes = { tabindex: -1, "data-i": i, "data-j": j };
  if (!results) return html("td", { ...attributes, "aria-label": "never compared" });
  const isDifference = kind === "difference";
  const strength = results[kind] / (isDifference ? 0.6 * format.largest : format.largest);
  const reliability = results.n / (results.n + FEW_MEETINGS); // few comparisons are pale
  return html(
    "td",
    {
      ...attributes,
      class: results.n < FEW_MEETINGS ? "few" : null,
      styles: heatStyles(strength * reliability),
    },
    format.cell(results[kind], isDifference),
  );
}

// Describe the results of a cell above the matrix.
function describePair(cell) {
  if (cell?.dataset.i === undefined) return;
  const i = Number(cell.dataset.i);
  const j = Number(cell.dataset.j);
  const board = chosen();
  const results = meeting(i, j);
  const names = [i, j].map((k) => html("bdi", {}, board.rows.item[k]));
  const line = byId("pair-words");
  if (!results) {
    line.replaceChildren(names[0], " and ", names[1], " were never compared.");
    return;
  }
  const format = outcomeFormat(board);
  const comparisons = count(results.n, "comparison");
  const observed = format.text(results.observed);
  const expected = format.text(results.expected);
  const text = board.areVerdicts
    ? `: ${observed} in ${comparisons}, ${expected} expected.`
    : `: mean outcome ${observed} in ${comparisons}, ${expected} expected.`;
  line.replaceChildren(names[0], " against ", names[1], text);
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// Arrow keys move from cell to cell and skip the diagonal.
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
    matrix.addEventListener(kind, (event) => describePair(event.target.closest("tbody td")));
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
    html("span", {}, html("em", {}, "italic"), `fewer than ${FEW_MEETINGS} comparisons`),
    html("span", {}, "empty: never compared"),
  );
}

function drawMeetings() {
  const board = chosen();
  meetingOf = null;
  state.matrix = Math.min(matrixStep(), board.nMatrix);
  byId("meeting-lead").textContent = meetingLead(board);
  drawMatrix();
  drawSurprises(board);
}

function meetingLead(board) {
  const expected =
    "Expected results are predicted by the ratings and effects for the same comparisons.";
  if (!board.areVerdicts) {
    return `Each cell contains the mean outcome of the item of the row against the item of the column. ${expected}`;
  }
  const lead = `Each cell contains the percentage of comparisons that the item of the row won against the item of the column; a tie counts as half a win. ${expected}`;
  if (board.model !== "least-squares") return lead;
  return `${lead} Least squares predicts a linear function, so it may expect less than 0% or more than 100% for items with very different ratings.`;
}

// The results that differ most from what was expected, as seen by the item that did better.
function drawSurprises(board) {
  const { first, second, n, observed, expected, surprise } = board.surprises;
  byId("surprise-hint").textContent = surpriseText(board);
  byId("surprise-box").hidden = first.length === 0;
  if (!first.length) return;
  const format = outcomeFormat(board);
  const sign = surprise.map((value) => (value < 0 ? -1 : 1));
  const better = first.map((item, k) => (sign[k] > 0 ? item : second[k]));
  const worse = first.map((item, k) => (sign[k] > 0 ? second[k] : item));
  const name = (title, items) => textColumn(title, (k) => board.rows.item[items[k]]);
  const number = (title, value, format) => ({ title, value, cell: (k) => format(value(k)) });
  const unit = board.areVerdicts ? " (points)" : "";
  const columns = [
    name("Item", better),
    name("Against", worse),
    number("Comparisons", (k) => n[k], formatNumber),
    number("Observed", (k) => sign[k] * observed[k], format.text),
    number("Expected", (k) => sign[k] * expected[k], format.text),
    number(`Difference${unit}`, (k) => sign[k] * (observed[k] - expected[k]), format.difference),
    number("Surprise", (k) => Math.abs(surprise[k]), (size) => formatFixed(size, 1)),
  ];
  const table = new SortableTable(byId("surprise-table"), columns);
  table.column = columns.length - 1;
  table.isAscending = false;
  table.setRows(first.map((_, k) => k));
}

function surpriseText({ surprises, nPairs, minSurprise }) {
  const unit = `A surprise of 1 is the typical (root mean square) deviation from the expected result, adjusted for the number of comparisons.`;
  const nShown = surprises.first.length;
  if (!nShown) {
    return `None of ${count(nPairs, "pair")} has a surprise of ${minSurprise} or more. ${unit}`;
  }
  return `${formatNumber(nShown)} of ${count(nPairs, "pair")} ${nShown === 1 ? "has" : "have"} a surprise of ${minSurprise} or more. ${unit} Among many pairs, a few such surprises occur by chance.`;
}
