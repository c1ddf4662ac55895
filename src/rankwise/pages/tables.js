// Tables that are sorted by a click on the head of a column.

// A table whose columns are {title, value(row), cell(row), isText, isLeft, isAscending}; missing
// values are last. Options:
//   more, step: a button that shows more rows, and the number of rows before its first click
//   filter: an input; only rows whose first text contains its value are shown
//   status, noun: an element that contains the number of rows, and what the rows are
//   attributes(row): attributes of the row's element
class SortableTable {
  constructor(table, columns, options = {}) {
    this.table = table;
    this.columns = columns;
    this.options = options;
    this.all = [];
    this.rows = [];
    this.column = 0;
    this.isAscending = true;
    this.limit = options.more ? options.step : Infinity;
    if (options.more) options.more.onclick = () => this.showMore();
    if (options.filter) options.filter.oninput = () => this.setRows(this.all);
    this.drawHead();
  }

  showMore() {
    this.limit = Math.max(8 * this.options.step, 4 * this.limit);
    this.draw();
  }

  // Rows that are shown: a single hidden row is shown instead of a button.
  get nVisible() {
    const hidden = this.rows.length - this.limit;
    return hidden <= 1 ? this.rows.length : this.limit;
  }

  drawHead() {
    const heads = this.columns.map((column, k) => {
      const button = html(
        "button",
        { type: "button", onclick: () => this.toggle(k) },
        ...breakable(column.title),
      );
      return html(
        "th",
        {
          scope: "col",
          "aria-sort": "none",
          class: headClass(column),
          title: column.title,
        },
        button,
      );
    });
    this.table.tHead.rows[0].replaceChildren(...heads);
  }

  toggle(column) {
    const { isAscending, isText } = this.columns[column];
    const firstDirection = isAscending ?? isText ?? false;
    this.sort(column, column === this.column ? !this.isAscending : firstDirection);
  }

  sort(column, isAscending) {
    this.column = column;
    this.isAscending = isAscending;
    const value = this.columns[column].value;
    const direction = isAscending ? 1 : -1;
    this.rows.sort((a, b) => compareValues(value(a), value(b), direction));
    this.draw();
  }

  setRows(rows) {
    const query = this.options.filter?.value.trim().toLowerCase();
    const name = this.columns.find((column) => column.isText)?.value;
    this.all = rows;
    this.rows = rows.filter((row) => !query || name(row).toLowerCase().includes(query));
    if (this.options.more) this.limit = this.options.step;
    this.sort(this.column, this.isAscending);
  }

  draw() {
    const direction = this.isAscending ? "ascending" : "descending";
    [...this.table.tHead.rows[0].cells].forEach((cell, k) => {
      cell.setAttribute("aria-sort", k === this.column ? direction : "none");
    });
    const lines = this.rows.slice(0, this.nVisible).map((row) => this.drawRow(row));
    this.table.tBodies[0].replaceChildren(...lines);
    if (this.options.more) this.drawMore();
    if (this.options.status) this.drawStatus();
  }

  drawMore() {
    const nHidden = this.rows.length - this.nVisible;
    this.options.more.hidden = nHidden === 0;
    this.options.more.textContent = `Show more (${formatNumber(nHidden)} of ${formatNumber(this.rows.length)} are hidden)`;
  }

  drawStatus() {
    const total = formatNumber(this.all.length);
    const { status, noun } = this.options;
    status.textContent =
      this.rows.length < this.all.length
        ? `${formatNumber(this.rows.length)} of ${total} ${noun} match`
        : `${formatNumber(this.nVisible)} of ${total} ${noun} in the table`;
  }

  drawRow(row) {
    const cells = this.columns.map((column) => drawCell(column, row));
    return html("tr", this.options.attributes?.(row) ?? {}, ...cells);
  }
}

function headClass({ isText, isLeft, title }) {
  if (isText) return "name";
  if (isLeft) return "left";
  return isLong(title) ? "long" : null;
}

function drawCell(column, row) {
  const content = column.cell(row);
  if (content instanceof Element && content.tagName === "TD") return content;
  if (!column.isText) return html("td", {}, content);
  return html("td", { class: nameClass(column.value(row)), dir: "auto" }, content);
}

// The title with possible line breaks in long words, for narrow screens.
function breakable(title) {
  return title.split(/(?<=\w{8})(?=\w{4})|(?=@)/).flatMap((part, k) => (k ? [html("wbr"), part] : [part]));
}

// Long names may have several lines; short names take the width that they need.
const isLong = (name) => name.length > 16;
const nameClass = (name) => (isLong(name) ? "name long" : "name");

const nameOrder = new Intl.Collator("en", { numeric: true });

function compareValues(a, b, direction) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "string") return direction * nameOrder.compare(a, b);
  return direction * (a - b);
}

// A number with a bar that starts at 0.
function barCell(text, value, from, to) {
  if (value === null) return html("td", {}, text);
  const position = (v) => (100 * (v - from)) / (to - from || 1);
  const zero = Math.min(Math.max(position(0), 0), 100);
  const left = Math.min(zero, position(value));
  const right = Math.max(zero, position(value));
  const bar = html("i", {
    class: value < 0 ? "negative" : null,
    styles: { left: `${left}%`, width: `${right - left}%` },
  });
  return html(
    "td",
    {},
    text,
    html("span", { class: "track", "aria-hidden": "true", styles: { "--zero": `${zero}%` } }, bar),
  );
}

// Background color: blue above zero, orange below; 1 and −1 are the strongest with readable text.
function heatStyles(value) {
  const strength = 42 * Math.min(Math.abs(value), 1);
  const color = value >= 0 ? "var(--low)" : "var(--high)";
  return {
    "background-color": `color-mix(in srgb, ${color} ${strength.toFixed(0)}%, transparent)`,
  };
}
