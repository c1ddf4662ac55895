// The page: which board is shown, its words, effects and judges.

const JUDGE_ROWS = 25;

function drawWords(board) {
  const { rows } = board;
  const judges = board.judges.length ? `, ${count(board.judges.length, "judge")}` : "";
  byId("subtitle").textContent =
    `${count(board.nComparisons, "comparison")} of ${count(rows.item.length, "item")}${judges}`;
  byId("headline").textContent = board.headline;
  byId("notes").replaceChildren(
    ...board.notes.map((note) => html("p", { class: "note", dir: "auto" }, note)),
    ...(board.nComponents > 1 ? [partsNote(board)] : []),
  );
  byId("facts").replaceChildren(...board.facts.map((fact) => html("li", {}, fact)));
  byId("cards").replaceChildren(...cardsOf(board));
  byId("single-intervals").textContent =
    `Each interval is for one item: ${percent(1 - board.confidence)} of the items are expected to lie outside their interval.`;
}

function partsNote(board) {
  return html(
    "p",
    { class: "note" },
    `The items fall in ${formatNumber(board.nComponents)} parts that were never compared with each other. Ratings and ranks hold inside each part only.`,
  );
}

function cardsOf(board) {
  const { rows } = board;
  const card = (title, value, hint) =>
    html(
      "li",
      { class: "card" },
      html("h3", {}, title),
      html("p", { class: "value" }, typeof value === "number" ? formatNumber(value) : value),
      html("p", { class: "hint" }, hint),
    );
  const found = [card("Items", rows.item.length, `${formatNumber(rows.thin.length)} of them thin`)];
  if (board.hasIntervals) {
    const isFirst = (rank, i) => rank === 1 && rows.component[i] === 1;
    const atOnce = rows.best_of_all.filter(isFirst).length;
    found.push(
      card("May be first", rows.best_rank.filter(isFirst).length, `${formatNumber(atOnce)} with all items at once`),
    );
    const first = rows.rank.findIndex((rank, i) => rank === 1 && rows.holdsText?.[i]);
    if (first >= 0) {
      const hint = `of ${formatNumber(board.nComparisons)} comparisons: without them another item is level`;
      found.push(card("First place holds by", rows.holdsText[first], hint));
    }
  }
  const each = (2 * board.nComparisons) / rows.item.length;
  const hint = `${formatNumber(each, 2)} an item on average`;
  found.push(card("Comparisons", board.nComparisons, hint));
  return found;
}

// --- effects and judges -----------------------------------------------------------------------

function showPart(id, isThere) {
  byId(id).hidden = !isThere;
  document.querySelector(`nav a[href="#${id}"]`).hidden = !isThere;
}

function drawEffects(board) {
  const { effects } = board;
  showPart("effects", effects.length > 0);
  if (!effects.length) return;
  const hasErrors = effects[0].error !== null;
  const of = (name) => (k) => effects[k][name];
  const format = (value) => formatNumber(value, 3);
  const columns = [textColumn("Covariate", of("name"))];
  if (hasErrors) {
    const [from, to] = extent([0, ...effects.flatMap(({ low, high }) => [low, high])]);
    const frame = frameOf([from - (to - from) * 0.03, to + (to - from) * 0.03]);
    columns.push(pictureColumn("Effect", frame, ...["value", "low", "high"].map(of), format));
  }
  columns.push({ title: "Effect", value: of("value"), cell: (k) => format(effects[k].value) });
  if (hasErrors) {
    columns.push(
      {
        title: "Standard error",
        value: of("error"),
        cell: (k) => formatNumber(effects[k].error, 2),
      },
      {
        title: `${percent(board.confidence)} interval`,
        value: of("low"),
        cell: (k) => span(effects[k].low, effects[k].high, format),
      },
      textColumn("In words", (k) => effectWords(effects[k])),
    );
  }
  const table = new SortableTable(byId("effect-table"), columns);
  drawAxes(table);
  Object.assign(table, { rows: effects.map((_, k) => k), column: -1 }); // as they were given
  table.draw();
  byId("effect-lead").textContent = effectLead(board, hasErrors);
}

function effectLead(board, hasErrors) {
  const unit = { margin: "the margin", logit: "the log odds", elo: "the Elo points" }[board.scale];
  const errors = !hasErrors
    ? ""
    : board.nClusters
      ? ` Standard errors are clustered: they come from leaving out each of ${count(board.nClusters, "cluster")} whole.`
      : " Standard errors come from leaving out single comparisons.";
  return `What one more of each adds to ${unit} of the first item. The ratings above are those with these effects taken out.${errors}`;
}

function effectWords({ low, high }) {
  if (low > 0) return "helps the first item";
  return high < 0 ? "hurts the first item" : "could be none";
}

function drawJudges(board) {
  const { judges } = board;
  showPart("judges", judges.length > 0);
  if (!judges.length) return;
  const two = (value) => formatFixed(value, 2);
  const interval = percent(board.confidence);
  const range = (title, name, low, high) => [
    { title, value: (k) => judges[k][name], cell: (k) => two(judges[k][name]) },
    {
      title: interval,
      value: (k) => judges[k][low],
      cell: (k) => span(judges[k][low], judges[k][high], two),
    },
  ];
  const columns = [
    textColumn("Judge", (k) => String(judges[k].name)),
    { title: "Comparisons", value: (k) => judges[k].n, cell: (k) => formatNumber(judges[k].n) },
    ...range("Agrees", "agreement", "agreement_low", "agreement_high"),
    ...range("Side bias", "side_bias", "side_low", "side_high"),
    ...range("Weight", "weight", "weight_low", "weight_high"),
    textColumn("Remark", (k) => judges[k].remark, { isAscending: false }),
  ];
  const options = { more: byId("more-judges"), step: JUDGE_ROWS };
  const table = new SortableTable(byId("judge-table"), columns, options);
  byId("krippendorff").hidden = board.krippendorff === null;
  byId("krippendorff").textContent =
    `Krippendorff's α of all judges is ${two(board.krippendorff ?? 0)}: 1 is that they always agree about the same two items, 0 no more than by chance.`;
  const worst = ({ agreement_high: high }) => high ?? 1;
  const order = judges.map((_, k) => k);
  order.sort((a, b) => worst(judges[a]) - worst(judges[b]));
  Object.assign(table, { column: columns.length - 1, isAscending: false });
  table.setRows(order); // those with a remark, then those that agree least
}

// --- the choice of a board --------------------------------------------------------------------

function drawBoard() {
  const board = chosen();
  drawWords(board);
  drawRatings();
  drawPaths(board);
  drawMeetings();
  drawEffects(board);
  drawJudges(board);
}

function setUpBoards() {
  const select = byId("board");
  select.replaceChildren(...data.boards.map(({ label }, k) => html("option", { value: k }, label)));
  select.addEventListener("change", () => {
    state.board = Number(select.value);
    byId("filter").value = "";
    drawBoard();
  });
  byId("board-choice").hidden = data.boards.length === 1;
  isPhone.addEventListener("change", drawBoard);
  setUpMeetings();
  drawBoard();
}

setUpBoards();
