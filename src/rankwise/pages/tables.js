// Tables that sort by a click on the head of a column.

// A table whose columns are {title, value(row), cell(row), isText, isAscending}; empty values stay last.
// With options.more, a button, it shows options.step rows and more of them by a click; with options.filter,
// an input, only rows whose first text has what is typed there; options.status says how many, of options.noun.
class SortableTable {
  constructor(table, columns, options = {}) {
    Object.assign(this, {
      table,
      columns,
      options,
      all: [],
      rows: [],
      column: 0,
      isAscending: true,
      limit: Infinity,
    });
    if (options.more) {
      this.limit = options.step;
      options.more.onclick = () => {
        this.limit = Math.max(8 * options.step, 4 * this.limit);
        this.draw();
      };
    }
    if (options.filter) options.filter.oninput = () => this.setRows(this.all);
    this.drawHead();
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
          class: column.isText ? "name" : isLong(column.title) ? "long" : null,
          title: column.title,
        },
        button,
      );
    });
    this.table.tHead.rows[0].replaceChildren(...heads);
  }

  toggle(column) {
    const first = this.columns[column].isAscending ?? this.columns[column].isText ?? false;
    this.sort(column, column === this.column ? !this.isAscending : first);
  }

  sort(column, isAscending) {
    Object.assign(this, { column, isAscending });
    const value = this.columns[column].value;
    const direction = isAscending ? 1 : -1;
    this.rows.sort((a, b) => compareValues(value(a), value(b), direction));
    this.draw();
  }

  setRows(rows) {
    const wanted = this.options.filter?.value.trim().toLowerCase();
    const name = this.columns.find((column) => column.isText)?.value;
    this.all = rows;
    this.rows = rows.filter((row) => !wanted || name(row).toLowerCase().includes(wanted));
    if (this.options.more) this.limit = this.options.step;
    this.sort(this.column, this.isAscending);
  }

  draw() {
    const words = this.isAscending ? "ascending" : "descending";
    [...this.table.tHead.rows[0].cells].forEach((cell, k) => {
      cell.setAttribute("aria-sort", k === this.column ? words : "none");
    });
    const lines = this.rows.slice(0, this.limit).map((row) => this.drawRow(row));
    this.table.tBodies[0].replaceChildren(...lines);
    if (this.options.more) this.drawMore();
    if (this.options.status) this.drawStatus();
  }

  drawMore() {
    const hidden = this.rows.length - this.limit;
    this.options.more.hidden = hidden <= 0;
    this.options.more.textContent = `Show more (${formatNumber(hidden)} of ${formatNumber(this.rows.length)} are hidden)`;
  }

  drawStatus() {
    const [found, all] = [this.rows.length, this.all.length];
    const visible = found < all ? found : Math.min(found, this.limit);
    const what = found < all ? "match" : "in the table";
    this.options.status.textContent = `${formatNumber(visible)} of ${formatNumber(all)} ${this.options.noun} ${what}`;
  }

  drawRow(row) {
    const cells = this.columns.map((column) => {
      const content = column.cell(row);
      const isElement = content instanceof Element && content.tagName === "TD";
      return isElement
        ? content
        : column.isText
          ? html("td", { class: nameClass(column.value(row)), dir: "auto" }, content)
          : html("td", {}, content);
    });
    return html("tr", this.options.attributes?.(row) ?? {}, ...cells);
  }
}

// A title whose long words may go on in the next line, where a phone has no room for them.
function breakable(title) {
  return title.split(/(?<=\w{8})(?=\w{4})|(?=@)/).flatMap((part, k) => (k ? [html("wbr"), part] : [part]));
}

// A long name has room to break its lines, a short one takes no more than it needs.
const isLong = (name) => name.length > 16;
const nameClass = (name) => (isLong(name) ? "name long" : "name");

const nameOrder = new Intl.Collator("en", { numeric: true });

function compareValues(a, b, direction) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "string") return direction * nameOrder.compare(a, b);
  return direction * (a - b);
}

// A number with a bar: from the left, or to both sides of a zero inside.
function barCell(text, value, from, to) {
  if (value === null) return html("td", {}, text);
  const place = (v) => (100 * (v - from)) / (to - from || 1);
  const zero = Math.min(Math.max(place(0), 0), 100);
  const [left, right] = [Math.min(zero, place(value)), Math.max(zero, place(value))];
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

// Blue for what is above zero, orange below; 1 and −1 are the strongest that text stands out from.
function heatStyles(value) {
  const strength = 42 * Math.min(Math.abs(value), 1);
  const side = value >= 0 ? "var(--low)" : "var(--high)";
  return {
    "background-color": `color-mix(in srgb, ${side} ${strength.toFixed(0)}%, transparent)`,
  };
}
