// The page: tables that sort, the choice of a group, and what is drawn for it.

const PAGE_ROWS = 25;
const state = { metric: 0, group: 0 };

// --- groups ---------------------------------------------------------------------------------

let groupTable = null;

function groupColumns() {
  const groups = data.groups;
  const whole = (title, values) => ({
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
  return [name, ...metrics, whole("Items", groups.sizes), whole("Pairs", groups.pairs)];
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
    `What is lost if a feature is shuffled among the items of each group, ${formatNumber(losses.items)} items, twice. Features that say the same stand in for each other.`;
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
    bar("Effect inside groups", features.effects, formatLike(features.effects)),
    bar("Share of variance", features.shares, percent),
  ];
  const options = { more: byId("more-features"), step: ITEM_ROWS };
  const table = new SortableTable(byId("feature-table"), columns, options);
  Object.assign(table, { column: features.errors ? 3 : 2, isAscending: false });
  table.setRows(features.names.map((_, j) => j));
  const [listed, nonzero, total] = [features.names.length, features.nonzero, features.total].map(
    (n) => formatNumber(n),
  );
  byId("feature-count").textContent =
    features.names.length < features.nonzero
      ? `The ${listed} features with the largest weight or effect, of ${nonzero} with a weight and ${total} in all.`
      : `${nonzero} of ${total} features have a weight other than 0.`;
}

function setUpMargins() {
  const margins = data.margins;
  if (!margins.total) {
    byId("margin-legend").textContent = "There is no pair of items with different true scores.";
    return;
  }
  const key = (className, n, words) =>
    html("span", {}, html("i", { class: className }), `${formatShare(n, margins.total)} ${words}`);
  const right = margins.total - margins.wrong - margins.tied;
  byId("margin-legend").replaceChildren(
    key("bad", margins.wrong, "in the wrong order"),
    key("good", right, "in the right order"),
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
  const found = data.reliability;
  if (!found) return;
  byId("reliability-part").hidden = false;
  byId("reliability-hint").textContent =
    `How often the item that was said to be above was above, in ${formatNumber(found.pairs)} pairs that were held out from training. On the straight line the probabilities are right. Log loss ${formatFixed(found.loss)}; that of a coin is 0.693.`;
  lineChart(byId("reliability"), {
    curves: [
      { label: "", x: found.said, mean: found.was },
      { label: "", x: [0.5, 1], mean: [0.5, 1] },
    ],
    isLog: false,
    hasBest: true,
    title: "probability that was said",
    yTitle: "share of right answers",
    label: `said and was: ${found.said.map((p, k) => `${formatFixed(p, 2)} and ${formatFixed(found.was[k], 2)}`).join(", ")}`,
  });
}

function setUpShapes() {
  const shapes = data.shapes;
  if (!shapes) return;
  byId("shape-part").hidden = false;
  const some = shapes.curves.length < shapes.total ? `, for the ${shapes.curves.length} of ${shapes.total} features that add most` : "";
  byId("shape-hint").textContent =
    `What each value of a feature adds to the score, less the mean over these items${some}. The sum of the curves is the score.`;
  for (const curve of shapes.curves) {
    const figure = html("figure");
    byId("shapes").append(figure);
    lineChart(figure, {
      curves: [{ ...curve, label: "" }],
      isLog: false,
      hasBest: true,
      title: `${shapes.scale} of ${curve.label}`,
      yTitle: "added to the score",
      label: `What ${curve.label} adds to the score`,
      });
  }
}

function setUpTuning() {
  const curves = data.curves;
  byId("tuning-lead").hidden = !curves;
  if (!curves) return;
  const isAlpha = curves.variable === "alpha";
  const name = isAlpha ? "α" : "steps";
  const title = isAlpha ? "α, the weight of the regularizer" : "number of steps";
  byId("tuning-lead").textContent = tuningWords(curves, name);
  const best = { ...curves.best, text: `best: ${valueWords(name, curves.best.x)}` };
  lineChart(byId("curve"), {
    curves: curves.curves,
    isLog: curves.isLog,
    hasBest: true,
    title,
    best,
    yTitle: `${curves.metric}, ${curves.greater ? "higher" : "lower"} is better`,
    label: `${curves.metric} for each ${name}, ${best.text}`,
  });
}

function valueWords(name, value) {
  return name === "α" ? `α = ${formatNumber(value)}` : `${formatNumber(value)} steps`;
}

function tuningWords(curves, name) {
  const rough = curves.part === "folds" ? ", a rough one because folds share training data" : "";
  const error =
    curves.nParts > 1
      ? `; the band is one standard error over ${formatNumber(curves.nParts)} ${curves.part}${rough}`
      : "";
  const best = ` The best, ${valueWords(name, curves.best.x)}, has ${formatNumber(curves.best.y, 4)}, a little flattering as the best of many is${edgeWords(curves)}.`;
  const cut =
    curves.total > curves.curves.length
      ? ` The ${curves.curves.length} best of ${curves.total} curves are shown.`
      : "";
  return `Each candidate was judged by items that it was not trained on (${curves.way})${error}.${best}${cut}`;
}

function edgeWords({ best, curves, isLog }) {
  const [low, high] = extent(curves[0].x);
  const isEdge = curves[0].x.length > 1 && (best.x === high || (isLog && best.x === low));
  return isEdge ? "; it is the last that was tried, so there may be better ones beyond" : "";
}

setUpGroups();
setUpItems();
setUpFeatures();
setUpShapes();
setUpMargins();
setUpReliability();
setUpTuning();
