// Ratings over time of the first items: lines, and the numbers of the selected point.

const PATH_ITEMS = 8;

function drawPaths(board) {
  showSection("over-time", board.paths.length > 0);
  if (!board.paths.length) return;
  const isDate = board.paths[0].isDate;
  const shown = board.paths.slice(0, isPhone.matches ? 5 : PATH_ITEMS);
  const box = byId("paths");
  lineChart(box, {
    curves: shown.map(({ label, x, mean }) => ({ label, x, mean })),
    isLog: false,
    hasBest: false,
    tick: (value) => (isDate ? String(value) : formatTick(value)),
    title: isDate ? "year" : "time",
    yTitle: "rating",
    label: `Ratings over time of ${shown.map(({ label }) => label).join(", ")}`,
    points: (frame) => pathPoints(board, shown, frame, isDate),
  });
  byId("path-words").textContent = "Point at a line, or tap it, to read its numbers.";
}

// An invisible wide circle around each point of a line.
function pathPoints(board, shown, frame, isDate) {
  const format = ratingFormat(board.rows);
  const describe = (text) => () => (byId("path-words").textContent = text);
  return shown.flatMap((curve, k) =>
    curve.x.map((x, i) => {
      const when = isDate ? yearAndMonth(x) : formatNumber(x, 4);
      const range = curve.low ? ` (${format(curve.low[i])} … ${format(curve.high[i])})` : "";
      const text = `${isolated(curve.label)}, ${when}: ${format(curve.mean[i])}${range}`;
      const circle = { class: "touch", cx: frame.x(x), cy: frame.y(curve.mean[i]), r: 7 };
      const point = svg("circle", circle, svg("title", {}, text));
      point.addEventListener("pointerenter", describe(text));
      point.addEventListener("click", describe(text));
      return point;
    }),
  );
}

function yearAndMonth(x) {
  const year = Math.floor(x);
  const month = Math.min(Math.floor(12 * (x - year)) + 1, 12);
  return `${year}-${String(month).padStart(2, "0")}`;
}
