// The sections of the report: groups, features, margins and the search.

const PAGE_ROWS = 25;
const state = { metric: 0, group: 0 };

// --- groups ---------------------------------------------------------------------------------

let groupTable = null;

function groupColumns() {
  const groups = data.groups;
  const integers = (title, values) => ({
    title,
    value: (g) => values[g],
    cell: (g) => formatNumber(values[g]),
  });
  const metrics = data.metrics.map((metric, m) => ({
    title: metric.title,
    value: (g) => groups.values[m][g],
    isAscending: metric.greater,
    cell: (g) => metricCell(m, groups.values[m][g]),
  }));
  const name = { title: "Group", isText: true, value: (g) => groups.names[g], cell: groupName };
  return [name, ...metrics, integers("Items", groups.sizes), integers("Pairs", groups.pairs)];
}

function metricCell(m, value) {
  const text = formatFixed(value);
  const { start, end } = data.metrics[m];
  return m === state.metric ? barCell(text, value, start, end) : text;
}

function groupName(g) {
  const name = data.groups.names[g];
  if (g >= data.items.length) return name;
  return html(
    "button",
    { type: "button", class: "link", title: name, onclick: () => showGroup(g) },
    name,
  );
}

function showGroup(g) {
  chooseGroup(g);
  byId("items").scrollIntoView();
}

function setUpGroups() {
  if (data.groups.total === 1) {
    byId("groups").hidden = true;
    document.querySelector('nav a[href="#groups"]').hidden = true;
    return;
  }
  const attributes = (g) => ({ class: g === state.group ? "chosen" : null, "data-group": g });
  groupTable = new SortableTable(byId("group-table"), groupColumns(), {
    attributes,
    more: byId("more-groups"),
    step: PAGE_ROWS,
    filter: byId("filter"),
    status: byId("group-count"),
    noun: "groups",
  });
  byId("metric").replaceChildren(
    ...data.metrics.map((metric, m) => html("option", { value: m }, metric.title)),
  );
  byId("metric").addEventListener("change", (event) => chooseMetric(Number(event.target.value)));
  groupTable.setRows(data.groups.names.map((_, g) => g));
  chooseMetric(0);
}

function chooseMetric(m) {
  state.metric = m;
  groupTable.sort(m + 1, data.metrics[m].greater);
  drawGroupHistogram();
}

function drawGroupHistogram() {
  const metric = data.metrics[state.metric];
  const bins = metric.counts.length;
  const width = (metric.end - metric.start) / bins;
  histogram(byId("group-histogram"), {
    edges: Array.from({ length: bins + 1 }, (_, k) => metric.start + width * k),
    counts: metric.counts,
    unit: "group",
    classOf: () => "",
    height: 112,
    title: `${metric.title} of the groups`,
    label: `Histogram of ${metric.title} over ${metric.defined} groups`,
    mark: { x: metric.median, text: `median ${formatFixed(metric.median)}` },
  });
}

// --- features, margins, tuning --------------------------------------------------------------

function featureColumn(names) {
  const name = (j) => names[j];
  return { title: "Feature", isText: true, value: name, cell: name };
}

function setUpLosses(losses) {
  const [low, high] = extent([...losses.losses, 0]);
  const format = formatLike(losses.losses);
  const columns = [
    featureColumn(losses.names),
    {
      title: `Loss of ${losses.metric}`,
      value: (j) => losses.losses[j],
      cell: (j) => barCell(format(losses.losses[j]), losses.losses[j], low, high),
    },
    {
      title: `${Number((100 * losses.confidence).toPrecision(6))}% interval`,
      value: (j) => losses.low[j],
      cell: (j) => `${format(losses.low[j])} … ${format(losses.high[j])}`,
    },
  ];
  const table = new SortableTable(byId("feature-table"), columns, {
    more: byId("more-features"),
    step: ITEM_ROWS,
  });
  Object.assign(table, { column: 1, isAscending: false });
  table.setRows(losses.names.map((_, j) => j));
  byId("feature-count").textContent =
    `Decrease of the metric if a feature is permuted in each group, averaged over two permutations of ${formatNumber(losses.items)} items. A feature that is correlated with others may have a small loss, because they replace it.`;
}

function setUpFeatures() {
  const features = data.features;
  if (data.losses) return setUpLosses(data.losses);
  byId("feature-box").hidden = !features;
  if (!features) return;
  const bar = (title, values, format) => {
    const [low, high] = extent([...values, 0]);
    return {
      title,
      value: (j) => Math.abs(values[j]),
      cell: (j) => barCell(format(values[j]), values[j], low, high),
    };
  };
  const percent = (value) => `${formatFixed(100 * value, 1)}%`;
  const columns = [
    featureColumn(features.names),
    bar("Weight", features.weights, formatLike(features.weights)),
    ...(features.errors ? [bar("Standard error", features.errors, formatLike(features.weights))] : []),
    bar("Effect within groups", features.effects, formatLike(features.effects)),
    bar("Share of variance", features.shares, percent),
  ];
  const options = { more: byId("more-features"), step: ITEM_ROWS };
  const table = new SortableTable(byId("feature-table"), columns, options);
  Object.assign(table, { column: features.errors ? 3 : 2, isAscending: false });
  table.setRows(features.names.map((_, j) => j));
  byId("feature-count").textContent = featureCount(features);
}

function featureCount({ names, nonzero, total }) {
  if (names.length < nonzero) {
    return `The ${formatNumber(names.length)} features with the largest weights or effects, of ${formatNumber(nonzero)} features with a weight and ${formatNumber(total)} in total.`;
  }
  return `${formatNumber(nonzero)} of ${formatNumber(total)} features have a weight other than 0.`;
}

function setUpMargins() {
  const margins = data.margins;
  if (!margins.total) {
    byId("margin-legend").textContent = "No two items of a group differ in their true score.";
    return;
  }
  const key = (className, n, text) =>
    html("span", {}, html("i", { class: className }), `${formatShare(n, margins.total)} ${text}`);
  const nCorrect = margins.total - margins.wrong - margins.tied;
  byId("margin-legend").replaceChildren(
    key("bad", margins.wrong, "in the wrong order"),
    key("good", nCorrect, "in the right order"),
    ...(margins.tied ? [key("tied", margins.tied, "tied")] : []),
  );
  histogram(byId("margin-histogram"), {
    edges: margins.edges,
    counts: margins.counts,
    tied: margins.zero,
    unit: "pair",
    height: 220,
    classOf: (k) => (margins.edges[k + 1] <= 0 ? "bad" : "good"),
    title: "margin",
    label: `Histogram of the margins of ${margins.used} pairs, ${formatShare(margins.wrong, margins.total)} on the wrong side of zero`,
    mark: { x: margins.median, text: `median ${formatNumber(margins.median)}` },
  });
}

function setUpReliability() {
  const reliability = data.reliability;
  if (!reliability) return;
  byId("reliability-part").hidden = false;
  byId("reliability-hint").textContent =
    `Predicted probabilities that an item is above another, and observed shares, for ${formatNumber(reliability.pairs)} held-out pairs. Calibrated probabilities lie on the straight line. The log loss is ${formatFixed(reliability.loss)}; probabilities of 0.5 have 0.693.`;
  const { predicted, observed } = reliability;
  const pairs = predicted.map((p, k) => `${formatFixed(p, 2)} and ${formatFixed(observed[k], 2)}`);
  lineChart(byId("reliability"), {
    curves: [
      { label: "", x: predicted, mean: observed },
      { label: "", x: [0.5, 1], mean: [0.5, 1] },
    ],
    isLog: false,
    hasBest: true,
    title: "predicted probability",
    yTitle: "observed share",
    label: `predicted and observed: ${pairs.join(", ")}`,
  });
}

function setUpShapes() {
  const shapes = data.shapes;
  if (!shapes) return;
  byId("shape-part").hidden = false;
  const nShown = shapes.curves.length;
  const selection =
    nShown < shapes.total ? `, for the ${nShown} most important of ${shapes.total} features` : "";
  byId("shape-hint").textContent =
    `The contribution of a feature to the score as a function of its value, minus its mean over these items${selection}. The score is the sum of the curves.`;
  for (const curve of shapes.curves) {
    const figure = html("figure");
    byId("shapes").append(figure);
    lineChart(figure, {
      curves: [{ ...curve, label: "" }],
      isLog: false,
      hasBest: true,
      title: `${shapes.scale} of ${curve.label}`,
      yTitle: "contribution to the score",
      label: `Contribution of ${curve.label} to the score`,
    });
  }
}

function setUpSearch() {
  const search = data.curves;
  byId("search-lead").hidden = !search;
  if (!search) return;
  const isAlpha = search.variable === "alpha";
  const name = isAlpha ? "α" : "steps";
  const best = { ...search.best, text: `best: ${valueText(name, search.best.x)}` };
  byId("search-lead").textContent = searchText(search, name);
  lineChart(byId("curve"), {
    curves: search.curves,
    isLog: search.isLog,
    hasBest: true,
    title: isAlpha ? "α, the strength of the regularization" : "number of steps",
    best,
    yTitle: `${search.metric}, ${search.greater ? "higher" : "lower"} is better`,
    label: `${search.metric} for each ${name}, ${best.text}`,
  });
}

function valueText(name, value) {
  return name === "α" ? `α = ${formatNumber(value)}` : `${formatNumber(value)} steps`;
}

function searchText(search, name) {
  const sentences = [
    `Each candidate was evaluated on items that it was not trained on (${search.heldOut}).`,
    ...standardErrorText(search),
    `The best, ${valueText(name, search.best.x)}, has ${search.metric} ${formatNumber(search.best.y)}. The value of the best candidate is biased ${search.greater ? "upward" : "downward"}, because it was selected.`,
  ];
  if (search.isFlat) {
    sentences.push(
      `The choice of ${name} hardly matters: all candidates of its curve are within one standard error of the best.`,
    );
  } else if (isAtEdge(search)) {
    sentences.push("It is at the end of the grid, so better values may lie beyond.");
  }
  const nShown = search.curves.length;
  if (search.total > nShown) {
    sentences.push(`The ${nShown} best of ${search.total} curves are shown.`);
  }
  return sentences.join(" ");
}

function standardErrorText({ nUnits, unit }) {
  if (nUnits <= 1) return [];
  const caveat = unit === "folds" ? ", which is approximate because folds share training data" : "";
  return [`The band is one standard error over ${formatNumber(nUnits)} ${unit}${caveat}.`];
}

function isAtEdge({ best, curves, isLog }) {
  const { x } = curves[0];
  const [low, high] = extent(x);
  return x.length > 1 && (best.x === high || (isLog && best.x === low));
}

setUpGroups();
setUpItems();
setUpFeatures();
setUpShapes();
setUpMargins();
setUpReliability();
setUpSearch();
