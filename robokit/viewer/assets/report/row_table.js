// The chosen rows as a table, the worst first: by any column, up or down.

const PAGE = 60;

class RowTable {
  constructor(host, rows, fall) {
    this.rows = rows;
    this.fall = fall;
    const { report } = rows;
    this.column = rows.columns[report.sorted_by] || null;
    this.falling = Boolean(this.column);
    this.from = 0;
    this.order = null;
    this.head = element("tr");
    this.body = element("tbody");
    const table = element("table", { class: "rows" }, element("thead", {}, this.head), this.body);
    this.box = element("div", { class: "table-box", tabindex: "0", role: "group", "aria-label": "Table of rows" }, table);
    this.said = element("span", { class: "pages" });
    const turn = (by, label) => element("button", { type: "button", class: "small", onclick: () => this.turn(by) }, label);
    this.back = turn(-1, "Back");
    this.on = turn(1, "More");
    const select = element("select", {}, ...rows.columns.map((column, k) => element("option", { value: String(k) }, column.title)));
    select.value = String(report.sorted_by);
    select.addEventListener("change", () => this.sort(rows.columns[Number(select.value)], true));
    this.select = select;
    const direction = choice([["falling", "largest first"], ["rising", "smallest first"]], "falling", (key) => this.sort(this.column, key === "falling"));
    direction.group.setAttribute("aria-label", "Order");
    this.direction = direction;
    host.append(element("header", { class: "order" }, element("label", {}, "by ", select), direction.group), this.box, element("footer", { class: "turn" }, this.said, this.back, this.on));
    rows.onFilter(() => this.refresh());
    fall.onRow(() => this.mark());
    this.refresh();
  }

  // Rows in the order of the table: what "next" means.
  get places() { return (this.order ??= this.rows.sorted(this.column, this.falling)); }

  refresh() {
    this.order = null;
    this.from = 0;
    if (this.box.offsetParent) this.draw();
  }

  turn(by) {
    this.from = Math.max(0, this.from + by * PAGE);
    this.box.scrollTop = 0;
    this.draw();
  }

  sort(column, falling) {
    if (column === this.column && falling === this.falling) return;
    this.column = column;
    this.falling = falling;
    if (column) this.select.value = String(column.place);
    this.direction.group.querySelectorAll("button").forEach((button, k) => button.setAttribute("aria-pressed", String((k === 0) === falling)));
    this.refresh();
  }

  heading(column, label) {
    const sorted = column === this.column;
    const arrow = sorted ? (this.falling ? " ↓" : " ↑") : "";
    const button = element("button", { type: "button", title: column?.about || label, onclick: () => this.sort(column, sorted ? !this.falling : Boolean(column)) }, `${label}${arrow}`);
    return element("th", { scope: "col", "aria-sort": sorted ? (this.falling ? "descending" : "ascending") : "none" }, button);
  }

  draw() {
    const { rows, places } = this;
    // What the rows are sorted by stands beside their numbers; columns of single links and joints would be too many.
    const columns = [...(this.column ? [this.column] : []), ...rows.columns.filter((column) => column !== this.column && !column.byPart)];
    this.head.replaceChildren(this.heading(null, "row"), ...columns.map((column) => this.heading(column, column.heading)));
    const shown = [...places.subarray(this.from, this.from + PAGE)];
    this.body.replaceChildren(...shown.map((place) => {
      const number = rows.numbers[place];
      const run = element("button", { type: "button", "aria-label": `Run row ${number}`, onclick: () => this.fall.show(place) }, grouped(number));
      const cells = columns.map((column) => element("td", column.labels ? { class: "text", title: column.text(column.values[place]) } : {}, column.text(column.values[place])));
      const row = element("tr", { "data-place": String(place) }, element("th", { scope: "row" }, run), ...cells);
      row.addEventListener("click", (event) => { if (!event.target.closest("button")) this.fall.show(place); });
      return row;
    }));
    const last = this.from + shown.length;
    this.said.textContent = places.length ? `${grouped(this.from + 1)} to ${grouped(last)} of ${grouped(places.length)}` : "no rows";
    this.back.disabled = this.from === 0;
    this.on.disabled = last >= places.length;
    this.mark();
  }

  mark() {
    for (const row of this.body.children) {
      const on = Number(row.dataset.place) === this.fall.place;
      row.classList.toggle("current", on);
      if (on) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  // The row after this one, or before, in the order of the table.
  next(place, by) {
    const at = this.places.indexOf(place);
    if (at < 0) return this.places[0] ?? -1;
    return this.places[at + by] ?? -1;
  }
}
