// The distribution of a column: all rows of the sweep behind, the chosen ones in front. A drag chooses a range; two
// sliders do the same with the keyboard. A column of texts has a button for each.

const STEPS = 200; // of a slider

class Histogram {
  constructor(rows, column) {
    this.rows = rows;
    this.column = column;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.said = [element("span"), element("span")];
    this.area = element("div", { class: "bars" }, this.canvas);
    this.sliders = ["from", "to"].map((end, k) => this.slider(end, k));
    const title = element("h3", { title: column.about || column.title }, column.title, element("span", { class: "unit" }, column.unit ? ` ${column.unit}` : ""));
    this.card = element("article", { class: "histogram" }, element("header", {}, title), this.area, ...this.sliders, element("p", { class: "range-text" }, ...this.said));
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    rows.onFilter(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  slider(end, k) {
    const input = element("input", { type: "range", min: "0", max: String(STEPS), step: "1", value: String(k * STEPS), "aria-label": `${this.column.title}: ${end}` });
    input.addEventListener("input", () => {
      const at = this.sliders.map((slider) => Number(slider.value));
      if (at[0] > at[1]) at[1 - k] = at[k];
      this.choose(...at.map((x) => this.valueAt(x / STEPS)));
    });
    return input;
  }

  valueAt(share) { return this.column.low + share * (this.column.high - this.column.low); }

  shareOf(value) { return this.column.high > this.column.low ? (value - this.column.low) / (this.column.high - this.column.low) : 0; }

  choose(low, high) {
    const all = low <= this.column.low && high >= this.column.high;
    this.rows.filter(this.column, all ? null : { low, high });
  }

  // The range under the pointer, or none where it only clicked.
  drag(event) {
    if (event.button !== 0) return;
    const edge = this.canvas.getBoundingClientRect();
    const share = ({ clientX }) => Math.min(Math.max((clientX - edge.left) / edge.width, 0), 1);
    const first = share(event);
    hearDrag(this.canvas, event, (now) => {
      const ends = [first, share(now)].sort((a, b) => a - b);
      if ((ends[1] - ends[0]) * edge.width > 3) this.choose(this.valueAt(ends[0]), this.valueAt(ends[1]));
    }, (now) => {
      if (Math.abs(share(now) - first) * edge.width <= 3) this.rows.filter(this.column, null);
    });
  }

  draw() {
    const width = this.area.clientWidth, height = this.area.clientHeight;
    if (!width || !height) return;
    const { column, rows } = this, ratio = devicePixelRatio || 1, bins = column.counts.length;
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const here = rows.counts(column, bins), most = Math.max(1, ...column.counts);
    // Rows that the page does not hold are chosen as those that it holds.
    const share = rows.report.rows / Math.max(1, rows.count), step = width / bins;
    const bars = (heights, scale, tint) => {
      pen.fillStyle = tint;
      heights.forEach((count, k) => {
        if (!count) return;
        const tall = Math.max(1, Math.min(1, (count * scale) / most) * (height - 1));
        pen.fillRect(k * step + 0.5, height - tall, Math.max(1, step - 1), tall);
      });
    };
    const filtered = rows.filters.size > 0;
    bars(column.counts, 1, colour(filtered ? "profile" : "accent"));
    if (filtered) bars([...here], share, colour("accent"));
    const wanted = rows.filters.get(column);
    const ends = wanted ? [this.shareOf(wanted.low), this.shareOf(wanted.high)].map((x) => Math.min(Math.max(x, 0), 1)) : [0, 1];
    if (wanted) {
      pen.fillStyle = colour("accent");
      for (const end of ends) pen.fillRect(Math.min(Math.max(end * width - 1, 0), width - 2), 0, 2, height);
    }
    this.sliders.forEach((slider, k) => {
      slider.value = String(Math.round(ends[k] * STEPS));
      slider.setAttribute("aria-valuetext", column.text(this.valueAt(ends[k]), true));
    });
    this.said.forEach((label, k) => { label.textContent = column.text(wanted ? [wanted.low, wanted.high][k] : [column.low, column.high][k]); });
  }
}

// A column that is the same in all rows.
class SameEverywhere {
  constructor(rows, column) {
    const title = element("h3", { title: column.about || column.title }, column.title);
    this.card = element("article", { class: "histogram" }, element("header", {}, title), element("p", { class: "same" }, `${column.text(column.low, true)} in all rows`));
  }
}

// A column of texts: a bar for each.
class LabelBars {
  constructor(rows, column) {
    this.rows = rows;
    this.column = column;
    this.most = Math.max(1, ...column.counts);
    this.buttons = column.labels.map((label, k) => element("button", { type: "button", "aria-pressed": "false", title: label, onclick: () => this.toggle(k) },
      element("span", { class: "label" }, label), element("span", { class: "bar" }, element("i"), element("b")), element("span", { class: "count" }, grouped(column.counts[k]))));
    const title = element("h3", { title: column.about || column.title }, column.title);
    this.card = element("article", { class: "histogram labels" }, element("header", {}, title), element("div", { class: "label-bars", role: "group", "aria-label": column.title }, ...this.buttons));
    rows.onFilter(() => this.draw());
    this.draw();
  }

  toggle(k) {
    const labels = new Set(this.rows.filters.get(this.column)?.labels || []);
    if (labels.has(k)) labels.delete(k);
    else labels.add(k);
    this.rows.filter(this.column, labels.size ? { labels } : null);
  }

  draw() {
    const { rows, column } = this, here = rows.counts(column, column.labels.length), share = rows.report.rows / Math.max(1, rows.count);
    const wanted = rows.filters.get(column)?.labels;
    this.buttons.forEach((button, k) => {
      button.setAttribute("aria-pressed", String(Boolean(wanted?.has(k))));
      const [all, some] = button.querySelector(".bar").children;
      all.style.width = `${(100 * column.counts[k]) / this.most}%`;
      some.style.width = `${Math.min(100, (100 * here[k] * share) / this.most)}%`;
    });
  }
}

function drawDistributions(host, rows) {
  const part = (role, title) => {
    const columns = rows.columns.filter((column) => column.role === role && (column.labels ? column.labels.length : column.high >= column.low));
    if (!columns.length) return [];
    const cards = (some) => element("div", { class: "histograms" }, ...some.map((column) => new (column.labels ? LabelBars : column.high > column.low ? Histogram : SameEverywhere)(rows, column).card));
    const of = columns.filter((column) => column.byPart), others = columns.filter((column) => !column.byPart);
    const found = [element("h2", {}, title), cards(others)];
    if (of.length) found.push(element("details", {}, element("summary", {}, `${title} by link and joint (${of.length})`), cards(of)));
    return found;
  };
  host.append(...part("parameter", "Parameters"), ...part("measure", "Measures"));
}
