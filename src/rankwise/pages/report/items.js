// The items of the chosen group: lines from predicted to true order, a table, contributions.

const ITEM_ROWS = 12;
let itemTable = null;
let contributionTable = null;

function itemColumns() {
  const number = (title, key, options = {}) => ({
    title,
    value: (i) => chosenItems()[key][i],
    cell: (i) => formatNumber(chosenItems()[key][i], 4),
    ...options,
  });
  const name = {
    title: "Item",
    isText: true,
    value: (i) => chosenItems().names[i],
    cell: (i) => chosenItems().names[i],
  };
  return [
    number("Predicted", "predicted", { isAscending: true }),
    ...(data.items.some((items) => items.rankLow)
      ? [number("May be", "rankLow", { isAscending: true, cell: possibleRanks })]
      : []),
    name,
    number("Score", "scores"),
    number("True rank", "true", { isAscending: true }),
    number("True score", "y"),
    number("Better below", "tooHigh"),
    number("Worse above", "tooLow"),
  ];
}

// Ranks that an item may have by chance.
const possibleRanks = (i) => {
  const [low, high] = [chosenItems().rankLow[i], chosenItems().rankHigh[i]];
  return low === high ? `${low}` : `${low}–${high}`;
};

const chosenItems = () => data.items[state.group];

function setUpItems() {
  const options = data.items.map((_, g) => g);
  const names = data.groups.names;
  options.sort((a, b) => compareValues(names[a], names[b], 1));
  byId("group").replaceChildren(...options.map((g) => html("option", { value: g }, names[g])));
  byId("group").addEventListener("change", (event) => chooseGroup(Number(event.target.value)));
  byId("previous-group").addEventListener("click", () => stepGroup(-1));
  byId("next-group").addEventListener("click", () => stepGroup(1));
  const attributes = (i) => ({
    "data-item": i,
    onmouseenter: () => highlight(i),
    onmouseleave: () => highlight(null),
  });
  itemTable = new SortableTable(byId("item-table"), itemColumns(), {
    attributes,
    more: byId("more-items"),
    step: ITEM_ROWS,
  });
  byId("slope-legend").replaceChildren(
    html("span", {}, html("i", { class: "high" }), "ranked too high"),
    html("span", {}, html("i", { class: "low" }), "ranked too low"),
    html("span", {}, html("i"), "in place"),
    html("span", { id: "tie-legend" }, html("i", { class: "level" }), "equally predicted"),
  );
  if (data.groups.total === 1) hideGroupChoice();
  setUpContributions();
  window.addEventListener("hashchange", () => chooseGroup(groupOfAddress(), false));
  chooseGroup(groupOfAddress(), false);
}

function hideGroupChoice() {
  byId("items-title").textContent = "Predicted against true order";
  document.querySelector('nav a[href="#items"]').textContent = "Items";
  for (const node of document.querySelectorAll("#items .controls label, #items .controls button"))
    node.hidden = true;
}

function groupOfAddress() {
  const match = /^#group=(.*)$/.exec(window.location.hash);
  if (!match) return window.location.hash ? state.group : 0;
  try {
    const g = data.groups.names.indexOf(decodeURIComponent(match[1]));
    return g >= 0 && g < data.items.length ? g : state.group;
  } catch {
    return state.group; // not an encoded name
  }
}

// The next group in the order of the table, as it is sorted and filtered now.
function stepGroup(step) {
  const order = groupTable.rows.filter((g) => g < data.items.length);
  if (!order.length) return;
  const at = order.indexOf(state.group);
  chooseGroup(order[(at + step + order.length) % order.length]);
}

function keepAddress(address) {
  if (window.location.hash === address) return;
  try {
    window.history.pushState(null, "", address);
  } catch {
    // the frame of a notebook has no address
  }
}

// A new choice has an address of its own, so that the browser's way back leads to the one before.
function chooseGroup(g, isNew = true) {
  if (isNew) keepAddress(`#group=${encodeURIComponent(data.groups.names[g])}`);
  state.group = g;
  byId("group").value = String(g);
  for (const row of byId("group-table").tBodies[0].rows) {
    row.classList.toggle("chosen", Number(row.dataset.group) === g);
  }
  byId("tie-legend").hidden = !tiedRuns(chosenItems().predicted).length;
  drawItemCount();
  drawSlope(byId("slope"), chosenItems());
  itemTable.setRows(chosenItems().names.map((_, i) => i));
  drawContributions();
}

function drawItemCount() {
  const items = chosenItems();
  const cut = items.names.length < items.total ? `, ${items.names.length} of them shown` : "";
  const values = data.metrics.map(
    (metric, m) => `${metric.title} ${formatFixed(data.groups.values[m][state.group])}`,
  );
  const pairs = count(data.groups.pairs[state.group], "pair");
  byId("item-count").textContent =
    `${count(items.total, "item")}${cut}, ${pairs} · ${values.join(" · ")}`;
}

function highlight(item) {
  for (const node of document.querySelectorAll("#items .hot")) node.classList.remove("hot");
  const readout = document.querySelector("#slope figcaption");
  if (readout)
    readout.textContent =
      item === null ? "Point at a line or a row to see its item." : describeItem(item);
  if (item === null) return;
  for (const node of document.querySelectorAll(`#items [data-item="${item}"]`))
    node.classList.add("hot");
}

function describeItem(i) {
  const items = chosenItems();
  const place = `predicted rank ${items.predicted[i]}, true rank ${items.true[i]}, true score ${formatNumber(items.y[i], 4)}`;
  return `${isolated(items.names[i])}: ${place}; ${count(items.tooHigh[i], "better item")} below it, ${count(items.tooLow[i], "worse one")} above`;
}

function drawSlope(box, items) {
  drawInBox(box, (width) => {
    const frame = slopeFrame(items, width);
    const wrong = (i) => items.tooHigh[i] + items.tooLow[i];
    const order = items.names.map((_, i) => i).sort((a, b) => wrong(a) - wrong(b));
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
      html("figcaption", { class: "hint" }, "Point at a line or a row to see its item."),
    ];
  });
}

// Heights of the items on both sides. Items of equal true score share a level, where they keep
// their predicted order: so two lines cross if and only if the pair is wrong.
function slopeFrame(items, width) {
  const n = items.names.length;
  const step = n <= 30 ? 20 : n <= 60 ? 14 : Math.max(4, Math.round(840 / n));
  const order = items.names.map((_, i) => i).sort((a, b) => items.true[a] - items.true[b] || a - b);
  const nLevels = new Set(items.y).size;
  const hasLevels = nLevels > 1 && nLevels <= 12 && nLevels < n;
  const gap = hasLevels ? 10 : 0;
  const [trueY, levels] = [[], []];
  let at = 26;
  order.forEach((i, k) => {
    if (k && items.y[i] !== items.y[order[k - 1]]) at += gap;
    if (!levels.length || levels[levels.length - 1].y !== items.y[i])
      levels.push({ y: items.y[i], top: at, n: 0 });
    levels[levels.length - 1].n += 1;
    trueY[i] = at + step / 2;
    at += step;
    levels[levels.length - 1].bottom = at;
  });
  const hasNames = step >= 13;
  const room = Math.min(250, width * 0.3);
  const left = hasNames ? room : 40;
  const stretch = n > 1 ? (at - 26 - step) / (n - 1) : 0;
  const predictedY = items.names.map((_, i) => 26 + step / 2 + i * stretch);
  return {
    width,
    step,
    room,
    trueY,
    predictedY,
    hasLevels,
    levels,
    left,
    right: width - room,
    height: at + 8,
    hasNames,
  };
}

function slopeLevels(frame) {
  if (!frame.hasLevels) return [];
  return frame.levels.flatMap((level) => {
    const band = {
      class: "level",
      x: frame.right,
      y: level.top,
      width: frame.room,
      height: level.bottom - level.top,
      rx: 3,
    };
    const text = `true score ${formatNumber(level.y)}`;
    const place = frame.hasNames ? frame.width - 6 : frame.right + 12;
    const shown = frame.hasNames
      ? `y = ${formatNumber(level.y)}`
      : frame.room > 150
        ? `${text}, ${count(level.n, "item")}`
        : `y = ${formatNumber(level.y)}`;
    return [
      svg("rect", band),
      label(
        shown,
        place,
        (level.top + level.bottom) / 2 + 4,
        frame.hasNames ? "end" : "start",
        "strong",
      ),
    ];
  });
}

// Shades over items of equal predicted score, whose order among themselves means nothing.
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

// Where items are too close for names: the rank of every so many of them, on both sides.
function slopeRanks(items, frame) {
  if (frame.hasNames) return [];
  const every = Math.ceil(items.names.length / 20 / 5) * 5;
  const isMarked = (k) => k === 0 || (k + 1) % every === 0;
  const left = items.predicted.filter((_, i) => isMarked(i));
  const heights = frame.predictedY.filter((_, i) => isMarked(i));
  const right = items.true
    .map((rank, i) => [rank, frame.trueY[i], items.y[i]])
    .sort((a, b) => a[1] - b[1]);
  return [
    ...left.map((rank, k) => label(formatNumber(rank), frame.left, heights[k] + 4, "end")),
    ...(frame.hasLevels
      ? []
      : right
          .filter((_, k) => isMarked(k))
          .map(([rank, at, y]) =>
            label(
              `${frame.room > 150 ? `${formatNumber(rank)} · ` : ""}y = ${formatNumber(y, 4)}`,
              frame.right + 4,
              at + 4,
            ),
          )),
  ];
}

function slopeColor(items, i) {
  const wrong = items.tooHigh[i] + items.tooLow[i];
  if (items.tooHigh[i] === items.tooLow[i]) return "var(--rail)";
  const side = items.tooHigh[i] > items.tooLow[i] ? "var(--high)" : "var(--low)";
  const strength = Math.min(100, 30 + (140 * wrong) / Math.max(1, items.total - 1));
  return `color-mix(in srgb, ${side} ${strength.toFixed(0)}%, var(--rail))`;
}

function slopeItem(items, frame, i) {
  const [from, to, middle] = [frame.predictedY[i], frame.trueY[i], (frame.left + frame.right) / 2];
  const d = `M${frame.left + 6},${from} C${middle},${from} ${middle},${to} ${frame.right - 6},${to}`;
  const line = svg("path", { class: "seen", d, styles: { stroke: slopeColor(items, i) } });
  const parts = [line, svg("path", { class: "reach", d })];
  if (frame.hasNames) {
    const length = Math.floor((frame.room - 12) / 6.6);
    const rightLength = frame.hasLevels ? length - 7 : length;
    const hasTruth = !frame.hasLevels && frame.width > 500;
    const rightText = hasTruth ? `${formatNumber(items.y[i])}\u2003${isolated(items.names[i])}` : items.names[i];
    parts.push(
      label(
        `${isolated(shorten(items.names[i], length - 4))}\u2003${items.predicted[i]}`,
        frame.left,
        from + 4,
        "end",
      ),
    );
    if (rightLength > 3)
      parts.push(label(shorten(rightText, rightLength), frame.right + 4, to + 4));
  }
  return svg(
    "g",
    {
      class: "item",
      "data-item": i,
      onmouseenter: () => highlight(i),
      onmouseleave: () => highlight(null),
    },
    ...parts,
  );
}

function setUpContributions() {
  if (!data.features) return;
  byId("contribution-part").hidden = false;
  const cell = (k) => (i) => heatCell(chosenItems().contributions[i][k]);
  const added = (title, k) => ({
    title,
    value: (i) => chosenItems().contributions[i][k],
    cell: cell(k),
  });
  const shown = data.features.shown;
  const columns = [
    {
      title: "Item",
      isText: true,
      value: (i) => chosenItems().names[i],
      cell: (i) => chosenItems().names[i],
    },
    {
      title: "Sum",
      value: centeredScore,
      cell: (i) =>
        html("td", { class: "total" }, chosenItems().format(centeredScore(i))),
    },
    ...shown.map(added),
    ...(data.features.others ? [added(`${data.features.others} others`, shown.length)] : []),
  ];
  const attributes = (i) => ({
    "data-item": i,
    onmouseenter: () => highlight(i),
    onmouseleave: () => highlight(null),
  });
  contributionTable = new SortableTable(byId("contribution-table"), columns, {
    attributes,
    more: byId("more-contributions"),
    step: ITEM_ROWS,
  });
  Object.assign(contributionTable, { column: 1, isAscending: false });
}

const centeredScore = (i) => chosenItems().contributions[i].reduce((sum, value) => sum + value, 0);

function largestContribution(items) {
  return Math.max(...items.contributions.flat().map(Math.abs)) || 1;
}

function heatCell(value) {
  const styles = heatStyles(value / chosenItems().largest);
  return html("td", { styles }, chosenItems().format(value));
}

function drawContributions() {
  if (!contributionTable) return;
  const items = chosenItems();
  items.largest ??= largestContribution(items);
  items.format ??= formatLike([items.largest]);
  contributionTable.setRows(items.names.map((_, i) => i));
}
