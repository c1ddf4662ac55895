// The sections of the page: texts, effects, judges, and the choice of a board.

const JUDGE_ROWS = 25;

function drawTexts(board) {
  const { rows } = board;
  const judges = board.judges.length ? `, ${count(board.judges.length, "judge")}` : "";
  byId("subtitle").textContent =
    `${count(board.nComparisons, "comparison")} of ${count(rows.item.length, "item")}${judges}`;
  byId("headline").textContent = board.headline;
  const componentNotes = board.nComponents > 1 ? [componentsText(board)] : [];
  byId("notes").replaceChildren(...noteBox([...board.notes, ...componentNotes]));
  byId("facts").replaceChildren(...board.facts.map((fact) => html("li", {}, fact)));
  byId("cards").replaceChildren(...makeCards(board));
  byId("single-intervals").textContent =
    `Each interval is for one item: about ${percent(1 - board.confidence)} of the intervals are expected to miss the true rating.`;
  for (const item of document.querySelectorAll("#reading [data-about]")) {
    item.hidden = !isAbout(board, item.dataset.about);
  }
}

// Whether the board has what an explanation is about.
function isAbout({ rows, hasIntervals }, subject) {
  if (subject === "flip") return Boolean(rows.holds);
  if (subject === "thin") return rows.thin.length > 0;
  return hasIntervals === (subject === "intervals");
}

const componentsText = ({ nComponents }) =>
  `The items form ${formatNumber(nComponents)} components that were never compared with each other. Ratings and ranks are comparable within a component only.`;

function makeCard(title, value, hint) {
  const text = typeof value === "number" ? formatNumber(value) : value;
  return html(
    "li",
    { class: "card" },
    html("h3", {}, title),
    html("p", { class: "value" }, text),
    html("p", { class: "hint" }, hint),
  );
}

function makeCards(board) {
  const { rows } = board;
  const nItems = rows.item.length;
  const perItem = formatNumber((2 * board.nComparisons) / nItems, 2);
  return [
    makeCard("Items", nItems, thinText(rows)),
    ...(board.hasIntervals ? firstPlaceCards(board) : []),
    makeCard("Comparisons", board.nComparisons, `${perItem} per item on average`),
  ];
}

function thinText({ thin }) {
  return thin.length ? `${formatNumber(thin.length)} with few data (†)` : "none with few data";
}

// The number of items that may be first, and the comparisons that decide the first place.
function firstPlaceCards(board) {
  const { rows } = board;
  const isFirst = (rank, i) => rank === 1 && rows.component[i] === 1;
  const nAtOnce = formatNumber(rows.best_of_all.filter(isFirst).length);
  const nPossible = rows.best_rank.filter(isFirst).length;
  const cards = [makeCard("May be the best", nPossible, `${nAtOnce} with ${percent(board.confidence)} confidence for all items at once`)];
  const winner = rows.rank.findIndex((rank, i) => rank === 1 && rows.holds?.[i] > 0);
  if (winner >= 0) {
    const hint = `of ${formatNumber(board.nComparisons)} comparisons: if they are dropped, another item ties`;
    cards.push(makeCard("First place depends on", rows.holdsText[winner], hint));
  }
  return cards;
}

// --- effects and judges -----------------------------------------------------------------------

function showSection(id, isShown) {
  byId(id).hidden = !isShown;
  document.querySelector(`nav a[href="#${id}"]`).hidden = !isShown;
}

function drawEffects(board) {
  const { effects } = board;
  showSection("effects", effects.length > 0);
  if (!effects.length) return;
  const hasErrors = effects[0].error !== null;
  const columns = hasErrors ? effectColumns(board) : [effectColumn(board)];
  const table = new SortableTable(byId("effect-table"), [
    textColumn("Covariate", (k) => effects[k].name),
    ...columns,
  ]);
  drawAxes(table);
  table.rows = effects.map((_, k) => k); // in the order of the board
  table.column = -1;
  table.draw();
  byId("effect-lead").textContent = effectLead(board, hasErrors);
}

const formatEffect = (value) => formatNumber(value, 3);

function effectColumn({ effects, scale }) {
  const title = { margin: "Margin", logit: "Log odds", elo: "Elo points" }[scale];
  const value = (k) => effects[k].value;
  return { title, value, cell: (k) => formatEffect(value(k)) };
}

function effectColumns(board) {
  const { effects } = board;
  const [value, low, high, error] = ["value", "low", "high", "error"].map(
    (name) => (k) => effects[k][name],
  );
  const [least, most] = extent([0, ...effects.flatMap((effect) => [effect.low, effect.high])]);
  const pad = (most - least) * 0.03;
  const frame = frameOf([least - pad, most + pad]);
  return [
    pictureColumn("Effect and interval", frame, value, low, high, formatEffect),
    effectColumn(board),
    { title: "Standard error", value: error, cell: (k) => formatNumber(error(k), 2) },
    {
      title: `${percent(board.confidence)} interval`,
      value: low,
      cell: (k) => span(low(k), high(k), formatEffect),
    },
    textColumn("Meaning", (k) => effectMeaning(effects[k])),
  ];
}

function effectLead(board, hasErrors) {
  const unit = { margin: "the margin", logit: "the log odds", elo: "the Elo points" }[board.scale];
  const lead = `Change of ${unit} of the first item if a covariate increases by 1. The ratings above do not include these effects.`;
  if (!hasErrors) return lead;
  if (board.nClusters) {
    return `${lead} Standard errors are clustered: each of ${count(board.nClusters, "cluster")} is left out as a whole.`;
  }
  return `${lead} Standard errors come from leaving out single comparisons.`;
}

function effectMeaning({ low, high }) {
  if (low > 0) return "helps the first item";
  return high < 0 ? "hurts the first item" : "may be zero";
}

function drawJudges(board) {
  const { judges } = board;
  showSection("judges", judges.length > 0);
  if (!judges.length) return;
  const columns = judgeColumns(board);
  const options = { more: byId("more-judges"), step: JUDGE_ROWS };
  const table = new SortableTable(byId("judge-table"), columns, options);
  byId("krippendorff").hidden = board.krippendorff === null;
  byId("krippendorff").textContent =
    `Krippendorff's α of all judges is ${formatFixed(board.krippendorff ?? 0, 2)}. It is 1 if all judges of the same two items agree, and 0 if they agree as often as by chance.`;
  byId("side-text").textContent = board.hasSides
    ? "Side bias is the excess of votes for the first side."
    : "A table of winners and losers has no sides, so side bias is not shown.";
  byId("weight-text").textContent = haveEqualWeights(judges)
    ? "The weights of the judges do not differ measurably, so all are 1 and not shown."
    : "Weight is the share of an expected margin that is found in the votes of a judge: 1 is an average judge, 0 a random one. Weights of judges with few votes are shrunk toward 1.";
  const highestAgreement = ({ agreement_high: high }) => high ?? 1;
  const order = judges.map((_, k) => k);
  order.sort((a, b) => highestAgreement(judges[a]) - highestAgreement(judges[b]));
  table.column = columns.length - 1; // judges with a remark first, then those with low agreement
  table.isAscending = false;
  table.setRows(order);
}

const haveEqualWeights = (judges) => judges.every(({ weight }) => Math.abs(weight - 1) < 0.005);

function judgeColumns({ judges, confidence, hasSides }) {
  const format = (value) => formatFixed(value, 2);
  const withInterval = (title, name, low, high) => [
    { title, value: (k) => judges[k][name], cell: (k) => format(judges[k][name]) },
    {
      title: `${percent(confidence)} interval`,
      value: (k) => judges[k][low],
      cell: (k) => span(judges[k][low], judges[k][high], format),
    },
  ];
  const weight = withInterval("Weight", "weight", "weight_low", "weight_high");
  const sideBias = withInterval("Side bias", "side_bias", "side_low", "side_high");
  return [
    textColumn("Judge", (k) => String(judges[k].name)),
    { title: "Comparisons", value: (k) => judges[k].n, cell: (k) => formatNumber(judges[k].n) },
    ...withInterval("Agreement", "agreement", "agreement_low", "agreement_high"),
    ...(hasSides ? sideBias : []),
    ...(haveEqualWeights(judges) ? [] : weight),
    textColumn("Remark", (k) => judges[k].remark, { isAscending: false }),
  ];
}

// --- the choice of a board --------------------------------------------------------------------

function drawBoard() {
  const board = chosen();
  drawTexts(board);
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
