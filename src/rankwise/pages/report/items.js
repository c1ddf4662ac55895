// The items of the selected group: a table, and the contributions of features.

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
    number("Rank", "predicted", { isAscending: true }),
    ...(data.items.some((items) => items.rankLow)
      ? [number("Possible ranks", "rankLow", { isAscending: true, cell: possibleRanks })]
      : []),
    name,
    number("Score", "scores", { cell: (i) => scoreFormat(chosenItems())(chosenItems().scores[i]) }),
    number("True rank", "true", { isAscending: true }),
    number("True score", "y"),
    number("Better below", "betterBelow"),
    number("Worse above", "worseAbove"),
  ];
}

// The same number of decimals for all scores of a group, chosen by their range.
function scoreFormat(items) {
  if (!items.scoreFormat) {
    const [low, high] = extent(items.scores);
    const decimals = Math.max(2 - Math.floor(Math.log10(high - low)), 0);
    const isUsual = high > low && decimals < 9 && Math.max(Math.abs(low), Math.abs(high)) < 1e9;
    items.scoreFormat = (value) => (isUsual ? formatFixed(value, decimals) : formatNumber(value, 4));
  }
  return items.scoreFormat;
}

// The rank interval of an item.
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
  const attributes = (i) => ({ "data-item": i, ...hoverAttributes(i) });
  itemTable = new SortableTable(byId("item-table"), itemColumns(), {
    attributes,
    more: byId("more-items"),
    step: ITEM_ROWS,
  });
  byId("slope-legend").replaceChildren(
    html("span", {}, html("i", { class: "high" }), "ranked too high"),
    html("span", {}, html("i", { class: "low" }), "ranked too low"),
    html("span", {}, html("i"), "neither"),
    html("span", { id: "tie-legend" }, html("i", { class: "level" }), "equal predicted scores"),
  );
  if (data.groups.total === 1) hideGroupChoice();
  setUpContributions();
  window.addEventListener("hashchange", () => chooseGroup(groupOfAddress(), false));
  chooseGroup(groupOfAddress(), false);
}

function hideGroupChoice() {
  byId("items-title").textContent = "Predicted against true order";
  document.querySelector('nav a[href="#items"]').textContent = "Items";
  const controls = document.querySelectorAll("#items .controls label, #items .controls button");
  for (const node of controls) node.hidden = true;
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

// Select the next group, in the current order of the table.
function stepGroup(step) {
  const order = groupTable.rows.filter((g) => g < data.items.length);
  if (!order.length) return;
  const at = order.indexOf(state.group);
  chooseGroup(order[(at + step + order.length) % order.length]);
}

function pushAddress(address) {
  if (window.location.hash === address) return;
  try {
    window.history.pushState(null, "", address);
  } catch {
    // the inline frame of a notebook has no address
  }
}

// Show a group. Each group has an address, so that the browser's back button works.
function chooseGroup(g, isNew = true) {
  if (isNew) pushAddress(`#group=${encodeURIComponent(data.groups.names[g])}`);
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
  const shown = items.names.length < items.total ? `, ${items.names.length} of them shown` : "";
  const values = data.metrics.map(
    (metric, m) => `${metric.title} ${formatFixed(data.groups.values[m][state.group])}`,
  );
  const pairs = count(data.groups.pairs[state.group], "pair");
  byId("item-count").textContent =
    `${count(items.total, "item")}${shown}, ${pairs} · ${values.join(" · ")}`;
}

const POINT_AT_ITEM = "Point at a line or a row to read about its item.";

// Highlight an item in the drawing and in the tables; null for none.
function highlight(item) {
  for (const node of document.querySelectorAll("#items .hot")) node.classList.remove("hot");
  const caption = document.querySelector("#slope figcaption");
  if (caption) caption.textContent = item === null ? POINT_AT_ITEM : describeItem(item);
  if (item === null) return;
  for (const node of document.querySelectorAll(`#items [data-item="${item}"]`)) {
    node.classList.add("hot");
  }
}

const hoverAttributes = (i) => ({
  onmouseenter: () => highlight(i),
  onmouseleave: () => highlight(null),
});

function describeItem(i) {
  const items = chosenItems();
  const ranks = `predicted rank ${items.predicted[i]}, true rank ${items.true[i]}, true score ${formatNumber(items.y[i], 4)}`;
  const better = count(items.betterBelow[i], "better item");
  const worse = count(items.worseAbove[i], "worse item");
  return `${isolated(items.names[i])}: ${ranks}; ${better} below it, ${worse} above it`;
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
  const attributes = (i) => ({ "data-item": i, ...hoverAttributes(i) });
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
