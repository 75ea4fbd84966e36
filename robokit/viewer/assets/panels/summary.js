// The summary of a run: the usual questions answered, the events, tables by link and by joint, the books.
// Whatever is about an event goes there at a click.

// A name that breaks after its underscores where there is not enough room.
const breakable = (name) => name.split(/(?<=_)/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));

class Summary {
  constructor(host, { data, selection }, happenings) {
    this.happenings = happenings;
    this.selection = selection;
    const { answers, assumed, books } = data.events;
    const rows = answers.map((answer) => this.answer(answer.label, answer.value, answer.note, answer.event, answer.doubtful));
    const { sampled } = data.events;
    const rough = `from the recorded states, ${sampled}, and the step with the largest force between each two; trajectory.events uses every step`;
    if (sampled) rows.push(this.answer("events", "rough", rough, null, false));
    host.append(element("section", { class: "answers" }, ...rows));
    this.parts = {
      events: this.list(data.events.left_out),
      links: this.links(data),
      limits: this.limits(data),
      assumed: element("div", { class: "answers" }, ...assumed.map((answer) => this.answer(answer.label, answer.value, answer.note, answer.event, answer.doubtful))),
      books: element("div", { class: "answers" }, ...books.map((answer) => this.answer(answer.label, answer.value, answer.note, answer.event, answer.doubtful))),
    };
    const names = { events: "Events", links: "Links", limits: "Limits", assumed: "Assumed", books: "Balance" };
    const known = Object.keys(names).filter((key) => this.parts[key]);
    const { group, select } = choice(known.map((key) => [key, names[key]]), "events", (key) => this.open(key));
    this.select = select;
    group.setAttribute("aria-label", "Details of the run");
    // What makes one doubt the run is to be found without opening everything.
    Object.entries({ assumed, books }).forEach(([key, list]) => {
      const button = group.children[known.indexOf(key)];
      if (!button || !list.some((answer) => answer.doubtful)) return;
      button.classList.add("doubtful");
      button.title = "Contains values that cast doubt on this run";
    });
    this.body = element("div", { class: "details", tabindex: "0", role: "group", "aria-label": "Details" });
    host.append(element("header", { class: "parts" }, group), this.body);
    this.open("events");
    happenings.onCurrent(() => this.markCurrent());
    happenings.onShown(() => this.filterList());
  }

  open(key) {
    this.body.replaceChildren(this.parts[key]);
    if (key === "events") this.markCurrent();
  }

  // A button where there is an event to go to, else plain text.
  answer(label, value, note, number, doubtful) {
    const parts = [element("span", { class: "label" }, label), element("span", {}, element("b", {}, value), " ", element("span", { class: "note" }, note))];
    const kind = doubtful ? "answer doubtful" : "answer";
    return number === null ? element("div", { class: kind }, ...parts) : this.goes(element("button", { type: "button", class: kind }, ...parts), number);
  }

  // Make a button go to an event, and light its body while the pointer is on it.
  goes(button, number) {
    const { body } = this.happenings.entries[number];
    button.addEventListener("click", () => this.happenings.go(number));
    if (body !== null) {
      button.addEventListener("pointerenter", () => this.selection.hover(body));
      button.addEventListener("pointerleave", () => this.selection.hover(null));
    }
    return button;
  }

  list(leftOut) {
    const { happenings } = this;
    const chips = happenings.families.map((name) => {
      const chip = toggle(name, true, (on) => happenings.filter(name, on), { class: "kind" });
      chip.prepend(familyIcon(name, 10));
      return chip;
    });
    this.rows = happenings.entries.map((entry) => {
      const row = element("button", { type: "button", class: "happening" }, familyIcon(entry.family), element("span", { class: "time" }, entry.time.toFixed(4)), element("span", {}, element("b", {}, entry.subject), ` ${entry.text}`));
      return this.goes(row, entry.number);
    });
    if (!this.rows.length) return element("p", { class: "left-out" }, "No events: no contact, no joint limit, no failure.");
    const note = leftOut ? [element("p", { class: "left-out" }, `${leftOut.toLocaleString("en-US")} smaller events are not shown; trajectory.events has all.`)] : [];
    this.chips = element("div", { class: "kinds", role: "group", "aria-label": "Kinds of events" }, ...chips);
    return element("div", {}, this.chips, ...this.rows, ...note);
  }

  filterList() {
    this.rows.forEach((row, k) => { row.hidden = !this.happenings.shows(this.happenings.entries[k]); });
  }

  // The current event stays in view while time runs.
  markCurrent() {
    const { current } = this.happenings;
    if (this.marked) { this.marked.classList.remove("current"); this.marked.removeAttribute("aria-current"); }
    this.marked = current ? this.rows[current.number] : null;
    if (!this.marked) return;
    this.marked.classList.add("current");
    this.marked.setAttribute("aria-current", "true");
    if (!this.marked.isConnected || !this.body.clientHeight) return;
    const row = this.marked.getBoundingClientRect(), all = this.body.getBoundingClientRect();
    const top = all.top + this.chips.offsetHeight;
    if (row.top < top || row.bottom > all.bottom) this.body.scrollTop += row.top - (0.6 * top + 0.4 * all.bottom);
  }

  // A cell of a table that goes to an event.
  cell(number, text) {
    return element("td", {}, number === null ? "–" : this.goes(element("button", { type: "button" }, text), number));
  }

  table(titles, rows) {
    const head = element("tr", {}, ...titles.map((text) => element("th", { scope: "col" }, text)));
    return element("table", { class: "happened" }, element("thead", {}, head), element("tbody", {}, ...rows));
  }

  // A row for what a link or a joint did: the events of its first time and of its largest value, and two cells of text.
  row(name, first, largest, ...texts) {
    const { entries } = this.happenings;
    return element("tr", {}, element("th", { scope: "row" }, ...name), this.cell(first, `${entries[first].time.toFixed(4)} s`),
      this.cell(largest, largest === null ? "" : entries[largest].size), ...texts.map((text) => element("td", {}, String(text || "–"))));
  }

  links(data) {
    const rows = data.events.touched.map((touched) =>
      this.row(breakable(touched.link), touched.first, touched.peak, touched.impacts, touched.slid));
    return rows.length ? this.table(["link", "first contact", "largest force", "impacts", "slid"], rows) : null;
  }

  limits(data) {
    const rows = data.events.reached.map((reached) =>
      this.row([...breakable(reached.joint), " ", element("small", {}, reached.side)], reached.first, reached.past, reached.times, reached.force));
    return rows.length ? this.table(["joint", "reached", "past it by", "times", "its stop"], rows) : null;
  }
}
