// A board of scores over tasks: its texts, the tasks that decide, and a map of missing scores.

const TASK_ROWS = 15;
const LARGEST_NAME = 26; // characters at the left of the map

function drawWords(board) {
  byId("subtitle").textContent =
    `${count(board.rows.item.length, "model")} on ${count(board.nTasks, "task")}`;
  byId("headline").textContent = board.headline;
  byId("notes").replaceChildren(...noteBox(board.notes));
  byId("facts").replaceChildren(...board.facts.map((fact) => html("li", {}, fact)));
  byId("cards").replaceChildren(...cardsOf(board));
  byId("single-intervals").textContent =
    `Do not expect all intervals to be right: each is for one model, and about ${percent(1 - board.confidence)} of them are expected to miss the true value.`;
  byId("sample-advice").textContent = board.isFixed
    ? "Do not generalize to other tasks: the intervals are for these tasks only."
    : "Do not read the intervals as the variation between runs: they include the choice of the tasks.";
}

function card(title, value, hint) {
  return html(
    "li",
    { class: "card" },
    html("h3", {}, title),
    html("p", { class: "value" }, value),
    html("p", { class: "hint" }, hint),
  );
}

function effectiveText({ nEffective }) {
  return nEffective === null ? "" : `effective number: ${formatNumber(nEffective, 2)}`;
}

function cardsOf(board) {
  const { rows } = board;
  const isFirst = (rank, i) => rank === 1 && rows.component[i] === 1;
  const nTied = rows.best_rank.filter(isFirst).length;
  const nAtOnce = rows.best_of_all.filter(isFirst).length;
  const nRanked = rows.rank.filter((rank) => rank !== null).length;
  const cards = [
    card("Models", formatNumber(rows.item.length), `${formatNumber(nRanked)} ranked`),
    card("May be the best", formatNumber(nTied), `${formatNumber(nAtOnce)} with ${percent(board.confidence)} confidence for all models at once`),
    card(board.unit, formatNumber(board.nUnits), effectiveText(board)),
  ];
  if (board.missingShare > 0) {
    const nMissing = formatNumber(board.nMissing);
    cards.push(card("Missing", formatShare(board.missingShare, 1), `${nMissing} scores`));
  }
  return cards;
}

// --- tasks --------------------------------------------------------------------------------------

function drawTasks(board) {
  const { tasks } = board;
  const at = (name) => (k) => tasks[k][name];
  const [, largest] = extent([0, ...tasks.map(({ share }) => share)]);
  const format = formatLike(tasks.map(({ spread }) => spread));
  const columns = [
    textColumn(board.unit === "Tasks" ? "Task" : "Family", at("task")),
    {
      title: "Share",
      value: at("share"),
      cell: (k) => barCell(formatShare(tasks[k].share, 1), tasks[k].share, 0, largest),
    },
    {
      title: "Weight",
      value: at("weight"),
      cell: (k) => formatShare(tasks[k].weight, 1),
    },
    { title: "Spread", value: at("spread"), cell: (k) => format(tasks[k].spread) },
    {
      title: "Agreement",
      value: at("correlation"),
      cell: (k) => (tasks[k].correlation === null ? "–" : formatFixed(tasks[k].correlation, 2)),
    },
    { title: "Models", value: at("n_models"), cell: (k) => formatNumber(tasks[k].n_models) },
    {
      title: "Reversed pairs",
      value: at("n_reversed"),
      cell: (k) => formatNumber(tasks[k].n_reversed),
    },
    textColumn("First without it", at("first_without")),
  ];
  const table = new SortableTable(byId("task-table"), columns, {
    more: byId("more-tasks"),
    step: TASK_ROWS,
  });
  Object.assign(table, { column: 1, isAscending: false });
  table.setRows(tasks.map((_, k) => k));
  byId("task-lead").textContent = board.taskLead;
}

// --- missing scores -----------------------------------------------------------------------------

// One path a model: neighboring missing cells are one rectangle.
function missingPath(cells, width) {
  let path = "";
  let start = -1;
  for (let task = 0; task <= cells.length; task += 1) {
    const isMissing = cells[task] === "1";
    if (isMissing && start < 0) start = task;
    if (!isMissing && start >= 0) {
      path += `M${(start * width).toFixed(2)} 0h${((task - start) * width).toFixed(2)}v1H${(start * width).toFixed(2)}z`;
      start = -1;
    }
  }
  return path;
}

function drawMissing(board) {
  const hasMissing = board.missing.length > 0;
  byId("missing").hidden = !hasMissing;
  document.querySelector('nav a[href="#missing"]').hidden = !hasMissing;
  if (!hasMissing) return;
  byId("missing-lead").textContent = board.missingLead;
  drawInBox(byId("missing-map"), (width) => [missingMap(board, width)]);
  byId("cell-words").textContent = "Point at a row or a column to read its name.";
}

function missingMap(board, width) {
  const { missing, missingTasks: tasks } = board;
  const models = board.rows.item;
  const rowHeight = Math.max(3, Math.min(16, Math.floor(640 / missing.length)));
  const hasNames = rowHeight >= 11 && width > 500;
  const left = hasNames ? 190 : 2;
  const cell = (width - left - 2) / tasks.length;
  const height = rowHeight * missing.length;
  const parts = [svg("rect", { class: "cell-present", x: left, y: 0, width: cell * tasks.length, height })];
  missing.forEach((cells, i) => {
    const place = `translate(${left} ${i * rowHeight}) scale(1 ${rowHeight})`;
    parts.push(svg("path", { class: "cell-missing", d: missingPath(cells, cell), transform: place }));
    if (hasNames) {
      parts.push(label(shorten(models[i], LARGEST_NAME), left - 6, (i + 0.5) * rowHeight + 4, "end"));
    }
  });
  const words = `Missing scores of ${models.length} models on ${tasks.length} tasks`;
  const picture = canvas(width, height, words, ...parts);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top) / rowHeight);
    const task = Math.floor((event.clientX - box.left - left) / cell);
    if (missing[i]?.[task] === undefined) return;
    const state = missing[i][task] === "1" ? "missing" : "present";
    byId("cell-words").textContent = `${isolated(models[i])} on ${isolated(tasks[task])}: ${state}`;
  });
  return picture;
}

function drawScoreBoard() {
  const board = chosen();
  drawWords(board);
  drawRatings();
  drawTasks(board);
  drawMissing(board);
}

isPhone.addEventListener("change", drawScoreBoard);
drawScoreBoard();
