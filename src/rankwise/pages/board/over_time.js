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
    ...(isDate ? { ticks: monthTicks, tick: yearAndMonth } : {}),
    title: isDate ? "date" : "time",
    yTitle: { margin: "rating (margin)", logit: "rating (log odds)", elo: "rating (Elo points)" }[board.scale],
    label: `Ratings over time of ${shown.map(({ label }) => label).join(", ")}`,
    points: (frame) => pathPoints(board, shown, frame, isDate),
  });
  byId("path-words").textContent = "Point at a line, or move along it with the arrow keys, to read its numbers.";
}

// An invisible wide circle around each point of a line.
function pathPoints(board, shown, frame, isDate) {
  const format = ratingFormat(board.rows);
  const describe = (text) => () => (byId("path-words").textContent = text);
  return shown.flatMap((curve, k) =>
    curve.x.map((x, i) => {
      const when = isDate ? curve.dates[i] : formatNumber(x, 4);
      const range = curve.low ? ` (${format(curve.low[i])} … ${format(curve.high[i])})` : "";
      const text = `${isolated(curve.label)}, ${when}: ${format(curve.mean[i])}${range}`;
      const circle = { class: "touch", cx: frame.x(x), cy: frame.y(curve.mean[i]), r: 7 };
      const point = svg("circle", circle, svg("title", {}, text));
      for (const kind of ["pointerenter", "click", "focus"]) {
        point.addEventListener(kind, describe(text));
      }
      point.addEventListener("keydown", stepAlongPaths);
      point.setAttribute("data-curve", k);
      point.setAttribute("tabindex", k || i ? -1 : 0);
      return point;
    }),
  );
}

// Left and right arrows move along a line, up and down arrows to the start of another line.
function stepAlongPaths(event) {
  const point = event.target;
  const points = [...point.parentNode.querySelectorAll(".touch")];
  const startOf = (curve) => points.find((other) => Number(other.dataset.curve) === curve);
  const curve = Number(point.dataset.curve);
  const neighbor = (step) => {
    const other = points[points.indexOf(point) + step];
    return Number(other?.dataset.curve) === curve ? other : null;
  };
  const step = {
    ArrowLeft: () => neighbor(-1),
    ArrowRight: () => neighbor(1),
    ArrowUp: () => startOf(curve - 1),
    ArrowDown: () => startOf(curve + 1),
  }[event.key];
  if (!step) return;
  event.preventDefault();
  const next = step();
  if (!next) return;
  point.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}

// Whole months, about `count` of them, at equal distances that divide a year or are whole years.
function monthTicks(from, to, count) {
  const nMonths = 12 * (to - from);
  const yearSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((years) => 12 * years);
  const fits = (size) => nMonths / size < (size < 12 ? count : count + 1); // years are short texts
  const step = [1, 2, 3, 6, ...yearSteps].find(fits) ?? yearSteps.at(-1);
  const ticks = [];
  for (let k = Math.ceil((12 * from) / step - 0.02); k * step <= 12 * to; k += 1) {
    ticks.push((k * step) / 12);
  }
  return ticks;
}

// "2019" for the start of a year, "2019-07" for the start of another month.
function yearAndMonth(x) {
  const months = Math.round(12 * x);
  const year = Math.floor(months / 12);
  const month = months - 12 * year + 1;
  return month === 1 ? String(year) : `${year}-${String(month).padStart(2, "0")}`;
}
