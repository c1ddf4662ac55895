"use strict";

const byId = (id) => document.getElementById(id);
const createElement = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const OUTCOME_OF_KEY = { ArrowLeft: "first", ArrowRight: "second", ArrowUp: "tie" };
const MAX_ROWS = 20; // of the board, until all rows are requested
const REFRESH_MS = 5000;
const SVG = "http://www.w3.org/2000/svg";

let judge = "";
let openQuestion = null; // its number
let isBusy = false;
let focused = null; // before the buttons were disabled
let showsAllRows = false;

function storeName(name) {
  try {
    sessionStorage.setItem("judge", name);
  } catch {
    // a browser without storage asks for the name again
  }
}

function storedName() {
  try {
    return sessionStorage.getItem("judge") || "";
  } catch {
    return "";
  }
}

function showMessage(text, isError = false) {
  byId("message").textContent = text;
  byId("message").classList.toggle("is-error", isError);
}

// A disabled button loses the focus, which returns to it afterwards.
function setBusy(value) {
  isBusy = value;
  if (value) focused = document.activeElement;
  for (const button of document.querySelectorAll("#ask button")) button.disabled = value;
  const hasLostFocus = document.activeElement === document.body;
  if (!value && hasLostFocus && focused?.isConnected && !focused.hidden) focused.focus();
}

// One request at a time. If a request fails, the question stays open and can be answered again.
async function post(path, body, onSuccess) {
  if (isBusy) return;
  setBusy(true);
  try {
    const reply = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ judge, ...body }),
    });
    const isJson = (reply.headers.get("content-type") || "").startsWith("application/json");
    const content = isJson ? await reply.json() : { message: await reply.text() };
    if (content.question !== undefined) showQuestion(content);
    if (reply.ok) onSuccess(content.message);
    else showMessage(content.message, true);
  } catch {
    showMessage("The program does not answer. Start rankwise judge again, and repeat your answer.", true);
  } finally {
    setBusy(false);
    refreshBoard();
  }
}

function fillCell(node, cell) {
  // the server renders Markdown to HTML and escapes HTML in the text
  if (cell.html !== undefined) {
    node.innerHTML = cell.html;
  } else {
    node.classList.add("text");
    node.textContent = cell.text;
  }
  return node;
}

function createImage(item) {
  const image = createElement("img");
  image.src = `/image/${item.image}`;
  image.alt = item.name;
  return image;
}

// The name of an item is the heading of its card; the other cells are listed below it.
function createCells(item) {
  const { cells } = item;
  if (cells.length === 1) return [fillCell(createElement("div"), cells[0])];
  const nameCell = cells.find((cell) => cell.text === item.name);
  const list = createElement("dl");
  for (const cell of cells.filter((other) => other !== nameCell)) {
    list.append(createElement("dt", "", cell.column), fillCell(createElement("dd"), cell));
  }
  return nameCell ? [createElement("h2", "", item.name), list] : [list];
}

function showItem(side, item) {
  const card = byId(side);
  card.classList.remove("chosen");
  card.scrollTop = 0;
  const nodes = [];
  if (item.image !== null) nodes.push(createImage(item));
  if (item.cells.length) nodes.push(...createCells(item));
  card.querySelector(".content").replaceChildren(...nodes);
}

function showQuestion(content) {
  openQuestion = content.question;
  if (content.title) {
    byId("ask-title").textContent = content.title;
    document.title = content.title;
  }
  showItem("first", content.first);
  showItem("second", content.second);
  const { progress } = content;
  byId("progress").textContent = progress.text;
  byId("meter").style.setProperty("width", `${Math.round(100 * progress.confidence)}%`);
  byId("undo").hidden = progress.nByJudge === 0;
  byId("board").hidden = progress.isHidden;
  byId("ask").hidden = false;
}

function answer(outcome) {
  if (openQuestion === null || isBusy) return;
  if (outcome !== "tie") byId(outcome).classList.add("chosen");
  post("/api/answer", { question: openQuestion, outcome }, showMessage);
}

function undo() {
  post("/api/undo", {}, () => showMessage("Your last answer was undone. Answer again."));
}

// The ends of a scale for ratings: all intervals, except those several times as wide as the
// narrowest quarter. Intervals of items that won or lost all comparisons are almost unlimited.
function scaleOf(rows) {
  const rated = rows.filter((row) => row.rating !== null);
  const widths = rated.filter((row) => row.low !== null).map((row) => row.high - row.low);
  widths.sort((a, b) => a - b);
  const widest = 4 * (widths[Math.floor((widths.length - 1) / 4)] ?? 0);
  const typical = rated.filter((row) => row.low !== null && row.high - row.low <= widest);
  const framed = typical.length ? typical : rated;
  return [
    Math.min(...framed.map((row) => row.low ?? row.rating)),
    Math.max(...framed.map((row) => row.high ?? row.rating)),
  ];
}

// The rating as a dot and its interval as a line, on a scale from `low` to `high`. An interval
// beyond the scale ends in an arrow.
function drawInterval(row, low, high) {
  const range = high - low || 1;
  const clipped = (value) => Math.min(Math.max(value, low), high);
  const percent = (value) => `${4 + (92 * (clipped(value) - low)) / range}%`;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  const append = (tag, attributes) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    svg.append(node);
    return node;
  };
  if (row.low !== null && row.high !== null) {
    append("line", { x1: percent(row.low), x2: percent(row.high), y1: "50%", y2: "50%" });
    if (row.low < low) append("text", { x: "0%", y: "75%" }).textContent = "‹";
    if (row.high > high) append("text", { x: "100%", y: "75%", "text-anchor": "end" }).textContent = "›";
  }
  if (row.rating !== null && row.rating === clipped(row.rating)) append("circle", { cx: percent(row.rating), cy: "50%", r: 5 });
  return svg;
}

function createRow(row, low, high) {
  const line = createElement("tr");
  const interval = createElement("td", "wide");
  interval.append(drawInterval(row, low, high));
  const ranks = row.best === row.worst ? `${row.best ?? ""}` : `${row.best}–${row.worst}`;
  line.append(
    createElement("td", "number", row.rank ?? ""),
    createElement("td", "item", row.item),
    interval,
    createElement("td", "number", ranks),
    createElement("td", "number asked", row.n),
  );
  return line;
}

function showBoard(board) {
  byId("board-note").textContent = board.note;
  const [low, high] = scaleOf(board.rows);
  const rows = showsAllRows ? board.rows : board.rows.slice(0, MAX_ROWS);
  byId("rows").replaceChildren(...rows.map((row) => createRow(row, low, high)));
  byId("more").hidden = rows.length === board.rows.length;
  byId("more").textContent = `Show all ${board.rows.length}`;
}

async function refreshBoard() {
  if (!byId("board").open) return;
  try {
    const reply = await fetch("/api/board");
    if (reply.ok) showBoard(await reply.json());
  } catch {
    // the next answer reports the failure
  }
}

function enter(name) {
  judge = name;
  storeName(name);
  byId("enter").hidden = true;
  byId("who").hidden = false;
  byId("judge-name").textContent = name;
  post("/api/question", {}, () => showMessage(""));
}

function leave() {
  judge = "";
  openQuestion = null;
  storeName("");
  byId("ask").hidden = true;
  byId("who").hidden = true;
  byId("enter").hidden = false;
  byId("name").focus();
}

byId("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("name").value.trim();
  if (name) enter(name);
});
byId("leave").addEventListener("click", leave);
byId("undo").addEventListener("click", undo);
byId("board").addEventListener("toggle", refreshBoard);
byId("more").addEventListener("click", () => {
  showsAllRows = true;
  refreshBoard();
});
for (const side of ["first", "second"]) {
  byId(side).addEventListener("click", (event) => {
    const isReading = getSelection().toString() || event.target.closest("a");
    if (!isReading) answer(side);
  });
}
for (const button of document.querySelectorAll(".choice")) {
  button.addEventListener("click", () => answer(button.dataset.outcome));
}
// Whether an arrow key scrolls the long text, or the wide table, that has the focus.
function isScrolling({ key, target }) {
  const box = target.closest?.(".card, .scroll");
  if (!box) return false;
  if (key === "ArrowUp") return box.scrollHeight > box.clientHeight;
  return key.startsWith("Arrow") && box.scrollWidth > box.clientWidth;
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  const isShortcut = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (isTyping || isShortcut || event.repeat || byId("ask").hidden || isScrolling(event)) return;
  if (event.key === "Enter" && event.target.matches(".card")) answer(event.target.id);
  else if (OUTCOME_OF_KEY[event.key]) answer(OUTCOME_OF_KEY[event.key]);
  else if (event.key === "Backspace" && !byId("undo").hidden) undo();
  else return;
  event.preventDefault();
});
setInterval(refreshBoard, REFRESH_MS);

if (storedName()) enter(storedName());
else leave();
