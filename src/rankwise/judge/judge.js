"use strict";

const find = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const KEYS = { ArrowLeft: "first", ArrowRight: "second", ArrowUp: "tie" };
const SHOWN_ROWS = 20;

let judge = "";
let current = null; // number of the open question
let isBusy = false;
let showsAll = false;

const remember = (name) => {
  try {
    sessionStorage.setItem("judge", name);
  } catch {
    // a browser without storage asks for the name again
  }
};
const remembered = () => {
  try {
    return sessionStorage.getItem("judge") || "";
  } catch {
    return "";
  }
};

function say(text, isTrouble = false) {
  find("message").textContent = text;
  find("message").classList.toggle("is-trouble", isTrouble);
}

function setBusy(value) {
  isBusy = value;
  for (const button of document.querySelectorAll("#ask button")) button.disabled = value;
}

// One request at a time. An answer that did not arrive stays on the page, to be given again.
async function post(path, body, done) {
  if (isBusy) return;
  setBusy(true);
  try {
    const reply = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ judge, ...body }),
    });
    const isJson = (reply.headers.get("content-type") || "").startsWith("application/json");
    const found = isJson ? await reply.json() : { message: await reply.text() };
    if (found.question !== undefined) show(found);
    if (reply.ok) done(found.message);
    else say(found.message, true);
  } catch {
    say("The program does not answer. Start rankwise judge again, then answer once more.", true);
  } finally {
    setBusy(false);
    refreshBoard();
  }
}

function contentOf(item) {
  const nodes = [];
  if (item.image !== null) {
    const image = make("img");
    image.src = `/image/${item.image}`;
    image.alt = item.name;
    nodes.push(image);
  }
  const filled = (node, cell) => {
    // Markdown was made HTML by the server, which lets no HTML of the text through
    if (cell.html !== undefined) node.innerHTML = cell.html;
    else node.textContent = cell.text;
    return node;
  };
  if (item.cells.length === 1) {
    nodes.push(filled(make("div", item.cells[0].html === undefined ? "text" : ""), item.cells[0]));
  } else if (item.cells.length) {
    const list = make("dl");
    for (const cell of item.cells) {
      list.append(make("dt", "", cell.column));
      list.append(filled(make("dd", cell.html === undefined ? "text" : ""), cell));
    }
    nodes.push(list);
  }
  return nodes;
}

function show(found) {
  current = found.question;
  if (found.title) find("ask-title").textContent = found.title;
  for (const side of ["first", "second"]) {
    const card = find(side);
    card.classList.remove("chosen");
    card.scrollTop = 0;
    card.querySelector(".content").replaceChildren(...contentOf(found[side]));
  }
  const progress = found.progress;
  find("progress").textContent = progress.text;
  find("meter").style.setProperty("width", `${Math.round(100 * progress.settled)}%`);
  find("undo").hidden = progress.own === 0;
  find("board").hidden = progress.isHidden;
  find("ask").hidden = false;
}

function answer(outcome) {
  if (current === null || isBusy) return;
  if (outcome !== "tie") find(outcome).classList.add("chosen");
  post("/api/answer", { question: current, outcome }, say);
}

function undo() {
  post("/api/undo", {}, () => say("Your last answer is taken back. Answer again."));
}

function drawInterval(row, low, high) {
  const place = (value) => 2 + (96 * (value - low)) / (high - low || 1);
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("aria-hidden", "true");
  const put = (tag, values) => {
    const node = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
    svg.append(node);
  };
  if (row.low !== null && row.high !== null) {
    const left = `${place(row.low)}%`;
    const right = `${place(row.high)}%`;
    put("line", { x1: left, x2: right, y1: "50%", y2: "50%" });
  }
  if (row.rating !== null) put("circle", { cx: `${place(row.rating)}%`, cy: "50%", r: 5 });
  return svg;
}

async function refreshBoard() {
  if (!find("board").open) return;
  let board;
  try {
    const reply = await fetch("/api/board");
    if (!reply.ok) return;
    board = await reply.json();
  } catch {
    return; // the next answer reports the failure
  }
  find("board-note").textContent = board.note;
  const rated = board.rows.filter((row) => row.rating !== null);
  const low = Math.min(...rated.map((row) => row.low ?? row.rating));
  const high = Math.max(...rated.map((row) => row.high ?? row.rating));
  const shown = showsAll ? board.rows : board.rows.slice(0, SHOWN_ROWS);
  const rows = shown.map((row) => {
    const line = make("tr");
    const picture = make("td", "wide");
    picture.append(drawInterval(row, low, high));
    const ranks = row.best === row.worst ? `${row.best ?? ""}` : `${row.best} to ${row.worst}`;
    line.append(
      make("td", "number", row.rank ?? ""),
      make("td", "item", row.item),
      picture,
      make("td", "number", ranks),
      make("td", "number asked", row.n),
    );
    return line;
  });
  find("rows").replaceChildren(...rows);
  find("more").hidden = showsAll || board.rows.length <= SHOWN_ROWS;
  find("more").textContent = `Show all ${board.rows.length}`;
}

function enter(name) {
  judge = name;
  remember(name);
  find("enter").hidden = true;
  find("who").hidden = false;
  find("judge-name").textContent = name;
  post("/api/question", {}, () => say(""));
}

function leave() {
  judge = "";
  current = null;
  remember("");
  find("ask").hidden = true;
  find("who").hidden = true;
  find("enter").hidden = false;
  find("name").focus();
}

find("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = find("name").value.trim();
  if (name) enter(name);
});
find("leave").addEventListener("click", leave);
find("undo").addEventListener("click", undo);
find("board").addEventListener("toggle", refreshBoard);
find("more").addEventListener("click", () => {
  showsAll = true;
  refreshBoard();
});
for (const side of ["first", "second"]) {
  find(side).addEventListener("click", (event) => {
    const isReading = getSelection().toString() || event.target.closest("a");
    if (!isReading) answer(side);
  });
}
for (const button of document.querySelectorAll(".choice")) {
  button.addEventListener("click", () => answer(button.dataset.outcome));
}
document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  const isOther = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.repeat;
  if (isTyping || isOther || find("ask").hidden) return;
  if (KEYS[event.key]) answer(KEYS[event.key]);
  else if (event.key === "Backspace" && !find("undo").hidden) undo();
  else return;
  event.preventDefault();
});
setInterval(refreshBoard, 5000);

const before = remembered();
if (before) enter(before);
else leave();
