"use strict";
// Elements, numbers, scales and charts. Data become text nodes and attributes only, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fillElement(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "styles") {
      for (const [property, style] of Object.entries(value)) node.style.setProperty(property, style);
    } else if (name.startsWith("on")) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function html(name, attributes = {}, ...children) {
  return fillElement(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fillElement(document.createElementNS(SVG, name), attributes, children);
}

function formatNumber(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e12) {
    return value.toLocaleString("en").replace("-", "−");
  }
  const size = Math.abs(value);
  const isExtreme = size >= 1e6 || size < 1e-4;
  const text = isExtreme
    ? value.toExponential(digits - 1)
    : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 12 });
  return text.replace("-", "−").replace("e+", "e");
}

// A number on an axis; large and small powers of ten are written as powers.
function formatTick(value) {
  const power = Math.round(Math.log10(Math.abs(value)));
  if (!value || (power > -4 && power < 6)) return formatNumber(value);
  const isPower = Math.abs(value / 10 ** power - 1) < 1e-9;
  if (!isPower) return formatNumber(value);
  const toSuperscript = (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)];
  return `10${String(power).replace(/./g, toSuperscript)}`;
}

const fixedFormats = new Map();

function formatFixed(value, decimals = 3) {
  if (value === null) return "–";
  if (!fixedFormats.has(decimals)) {
    const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    fixedFormats.set(decimals, new Intl.NumberFormat("en", { ...digits, signDisplay: "negative" }));
  }
  return fixedFormats.get(decimals).format(value).replace("-", "−");
}

// The same number of decimals for all values, chosen by the largest; more for values that would be 0.
function formatLike(values) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  if (largest >= 1e9 || largest < 1e-4) return (value) => formatNumber(value);
  const decimals = Math.max(2 - Math.floor(Math.log10(largest)), 0);
  return (value) =>
    value && Math.abs(value) < 0.5 * 10 ** -decimals
      ? formatNumber(value, 1)
      : formatFixed(value, decimals);
}

// A share in percent; 0% and 100% only if it is exactly 0 or 1.
function formatShare(part, whole) {
  const share = part / whole;
  if (share > 0 && share < 0.0005) return "less than 0.1%";
  return share >= 0.9995 && share < 1 ? "more than 99.9%" : `${(100 * share).toFixed(1)}%`;
}

// "1 item", "2 items".
const count = (n, noun) => `${formatNumber(n)} ${noun}${n === 1 ? "" : "s"}`;

// A name in Unicode isolates: its writing direction does not change the text around it.
const isolated = (name) => `\u2068${name.replaceAll("\u2069", "")}\u2069`;

// Shorten in the middle, because long names often differ at their end only.
function shorten(text, length) {
  const characters = Array.from(text);
  if (characters.length <= length) return text;
  const head = Math.ceil((length - 1) / 2);
  const tail = characters.length - Math.max(length - 1 - head, 0);
  return `${characters.slice(0, head).join("")}…${characters.slice(tail).join("")}`;
}

// --- scales ---------------------------------------------------------------------------------

function linearScale(from, to, start, end) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

function logScale(from, to, start, end) {
  const scale = linearScale(Math.log10(from), Math.log10(to), start, end);
  return (value) => scale(Math.log10(value));
}

function linearTicks(from, to, count) {
  const rough = (to - from) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k += 1) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(from, to, count) {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  const last = Math.floor(Math.log10(to) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  return ticks.length ? ticks : [from];
}

function extent(values) {
  const present = values.filter((value) => value !== null && value !== undefined);
  return [Math.min(...present), Math.max(...present)];
}

// Heights of labels near the given heights, moved apart so that no two overlap.
function spreadLabels(heights, gap, top, bottom) {
  const order = heights.map((_, k) => k).sort((a, b) => heights[a] - heights[b]);
  const placed = heights.slice();
  let free = top;
  for (const k of order) {
    placed[k] = Math.max(placed[k], free);
    free = placed[k] + gap;
  }
  let limit = bottom;
  for (const k of order.reverse()) {
    placed[k] = Math.min(placed[k], limit);
    limit = placed[k] - gap;
  }
  return placed;
}

// --- drawing --------------------------------------------------------------------------------

// Draw now, and again when the width of the box changes; sizes are in pixels to keep text readable.
function drawInBox(box, draw) {
  box.redraw = () => {
    const width = Math.floor(box.clientWidth);
    if (width > 0) box.replaceChildren(...draw(width));
    box.drawnWidth = width;
  };
  box.redraw();
  if (box.isWatched) return;
  box.isWatched = true;
  new ResizeObserver(() => {
    if (Math.floor(box.clientWidth) !== box.drawnWidth) requestAnimationFrame(() => box.redraw());
  }).observe(box);
}

function canvas(width, height, label, ...children) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return svg("svg", { ...size, role: "img", "aria-label": label }, ...children);
}

function verticalLine(className, x, top, bottom) {
  return svg("line", { class: className, x1: x, x2: x, y1: top, y2: bottom });
}

function horizontalLine(className, left, right, y) {
  return svg("line", { class: className, x1: left, x2: right, y1: y, y2: y });
}

function label(text, x, y, anchor = "start", className = null) {
  return svg("text", { x, y, "text-anchor": anchor, class: className }, text);
}

function bottomAxis(ticks, scale, left, right, y, title, format = formatTick) {
  const marks = ticks.map((tick) => label(format(tick), scale(tick), y + 16, "middle"));
  const name = label(title, (left + right) / 2, y + 34, "middle");
  return [horizontalLine("axis", left, right, y), ...marks, name];
}

// Bars between edges. spec: edges, counts, classOf(k), title, label, mark {x, text}, tied.
function histogram(box, spec) {
  drawInBox(box, (width) => {
    const left = 4;
    const right = width - 4;
    const top = 22;
    const bottom = spec.height ?? 150;
    const x = linearScale(spec.edges[0], spec.edges[spec.edges.length - 1], left, right);
    const most = Math.max(...spec.counts, spec.tied ?? 0, 1);
    const y = linearScale(0, most, bottom, top);
    const bars = spec.counts.map((n, k) => {
      const barLeft = x(spec.edges[k]);
      const bar = {
        class: `bar ${spec.classOf(k)}`,
        x: barLeft + 0.5,
        width: Math.max(0.5, x(spec.edges[k + 1]) - barLeft - 1),
        y: y(n),
        height: bottom - y(n),
      };
      const range = `${formatNumber(spec.edges[k])} to ${formatNumber(spec.edges[k + 1])}`;
      return svg("rect", bar, svg("title", {}, `${range}: ${count(n, spec.unit)}`));
    });
    if (spec.tied) {
      const bar = {
        class: "bar tied",
        x: x(0) - 2,
        width: 4,
        y: y(spec.tied),
        height: bottom - y(spec.tied),
      };
      bars.push(
        svg("rect", bar, svg("title", {}, `exactly 0: ${count(spec.tied, spec.unit)}`)),
      );
    }
    const ticks = linearTicks(
      spec.edges[0],
      spec.edges[spec.edges.length - 1],
      width < 500 ? 4 : 8,
    );
    const title = `${spec.title} (highest bar: ${count(most, spec.unit)})`;
    const axis = bottomAxis(ticks, x, left, right, bottom, title);
    return [
      canvas(
        width,
        bottom + 42,
        spec.label,
        ...bars,
        ...axis,
        ...histogramMark(spec, x, top, bottom),
      ),
    ];
  });
}

function histogramMark(spec, x, top, bottom) {
  if (!spec.mark) return [];
  const at = x(spec.mark.x);
  const isRight = at > x(spec.edges[spec.edges.length - 1]) * 0.7;
  const text = label(
    spec.mark.text,
    at + (isRight ? -6 : 6),
    top - 8,
    isRight ? "end" : "start",
    "strong",
  );
  return [verticalLine("mark", at, top - 18, bottom), text];
}

// Lines over a common axis. spec: curves [{label, x, mean, low, high}], isLog, title, yTitle, label,
// hasBest (the first curve is emphasized); optional: best {x, y, text} (a mark on that curve),
// ticks(from, to, count), tick(x) (positions and texts on the axis), points(frame) (elements on top of the lines).
function lineChart(box, spec) {
  drawInBox(box, (width) => {
    const frame = lineFrame(spec, width);
    const parts = [
      ...lineGrid(spec, frame),
      ...spec.curves
        .map((_, k) => k)
        .reverse()
        .flatMap((k) => oneLine(spec, frame, k)),
    ];
    return [
      canvas(
        width,
        frame.bottom + 42,
        spec.label,
        ...parts,
        ...lineLabels(spec, frame),
        ...(spec.best ? bestMark(spec.best, frame) : []),
        ...(spec.points ? spec.points(frame) : []),
      ),
    ];
  });
}

function lineFrame(spec, width) {
  const longest = Math.max(...spec.curves.map((curve) => Array.from(curve.label).length));
  const room = longest ? Math.min(40 + 6.6 * longest, width * 0.27) : 12;
  const frame = { width, left: 52, right: width - room, top: 30, bottom: 300, room };
  const [low, high] = extent(
    spec.curves.flatMap((curve) => [...curve.mean, ...(curve.low ?? []), ...(curve.high ?? [])]),
  );
  const pad = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  frame.ends = extent(spec.curves.flatMap((curve) => curve.x));
  frame.x = (spec.isLog ? logScale : linearScale)(...frame.ends, frame.left, frame.right);
  frame.y = linearScale(low - pad, high + pad, frame.bottom, frame.top);
  frame.yTicks = linearTicks(low - pad, high + pad, 5);
  return frame;
}

function lineGrid(spec, frame) {
  const count = frame.width < 500 ? 4 : 9;
  const ticksOf = spec.ticks ?? (spec.isLog ? logTicks : linearTicks);
  const ticks = ticksOf(...frame.ends, count);
  const rows = frame.yTicks.flatMap((tick) => [
    horizontalLine("grid", frame.left, frame.right, frame.y(tick)),
    label(formatTick(tick), frame.left - 8, frame.y(tick) + 4, "end"),
  ]);
  const ends = [frame.left, frame.right, frame.bottom];
  const axis = bottomAxis(ticks, frame.x, ...ends, spec.title, spec.tick);
  return [...rows, ...axis, label(spec.yTitle, 0, 12)];
}

function curveColor(spec, k) {
  return spec.hasBest ? "var(--chart-1)" : `var(--chart-${(k % 6) + 1})`;
}

function oneLine(spec, frame, k) {
  const curve = spec.curves[k];
  const defined = curve.x
    .map((_, i) => i)
    .filter((i) => curve.mean[i] !== null)
    .sort((a, b) => curve.x[a] - curve.x[b]);
  const points = (values, order) =>
    order.map((i) => `${frame.x(curve.x[i]).toFixed(1)},${frame.y(values[i]).toFixed(1)}`);
  const isFaint = spec.hasBest && k > 0;
  const style = isFaint ? {} : { stroke: curveColor(spec, k) };
  const dash = !spec.hasBest && k >= 6 ? "6 3" : null;
  const line = svg("polyline", {
    class: `curve${isFaint ? " faint" : ""}`,
    styles: style,
    "stroke-dasharray": dash,
    points: points(curve.mean, defined).join(" "),
  });
  if (isFaint || !curve.low || defined.some((i) => curve.low[i] === null)) return [line];
  const outline = [
    ...points(curve.low, defined),
    ...points(curve.high, defined.slice().reverse()),
  ].join(" ");
  const band = { class: "band", styles: { fill: curveColor(spec, k) }, points: outline };
  return [svg("polygon", band), line];
}

// Labels at the right ends of the lines; without an emphasized curve, a list from the top.
function lineLabels(spec, frame) {
  const labeled = spec.curves.map((_, k) => k).filter((k) => spec.curves[k].label);
  const height = (k) => frame.y(spec.curves[k].mean.findLast((value) => value !== null) ?? 0) + 4;
  const heights = spec.hasBest
    ? spreadLabels(labeled.map(height), 14, frame.top, frame.bottom)
    : labeled.map((_, i) => frame.top + 14 + 18 * i);
  const length = Math.floor((frame.room - 26) / 6.6);
  return labeled.flatMap((k, i) => {
    const isBest = spec.hasBest && k === 0;
    const stroke = spec.hasBest && !isBest ? "var(--rail)" : curveColor(spec, k);
    const key = horizontalLine("curve", frame.right + 6, frame.right + 20, heights[i] - 4);
    key.style.setProperty("stroke", stroke);
    if (!spec.hasBest && k >= 6) key.setAttribute("stroke-dasharray", "4 2");
    const text = label(
      shorten(spec.curves[k].label, length),
      frame.right + 25,
      heights[i],
      "start",
      isBest ? "strong" : null,
    );
    text.append(svg("title", {}, spec.curves[k].label));
    return [key, text];
  });
}

function bestMark({ x, y, text }, frame) {
  const at = frame.x(x);
  const isRight = at > (frame.left + frame.right) / 2;
  const anchor = isRight ? "end" : "start";
  return [
    verticalLine("mark", at, frame.top - 6, frame.bottom),
    svg("circle", { class: "dot", cx: at, cy: frame.y(y), r: 5 }),
    label(text, at + (isRight ? -8 : 8), frame.top + 4, anchor, "strong"),
  ];
}
