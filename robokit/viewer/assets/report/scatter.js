// Any two columns, coloured by a third. A drag chooses the rows inside, a click runs the row. With the focus on it, arrow
// keys go from row to row and Enter runs it.

const GAP = { left: 78, right: 14, top: 10, bottom: 38 };
const REACH = 9; // [px] from a point that is meant

class Scatter {
  constructor(host, rows, fall) {
    this.rows = rows;
    this.fall = fall;
    const { report } = rows;
    this.axes = { across: rows.columns[report.across], up: rows.columns[report.up], tint: rows.columns[report.tinted] };
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-roledescription": "scatter plot", "aria-describedby": "scatter-hint" });
    this.tip = element("div", { class: "tip", "aria-hidden": "true" });
    this.tip.hidden = true;
    this.legend = element("div", { class: "tint-legend" });
    this.area = element("div", { class: "scatter" }, this.canvas, this.tip);
    const hint = element("p", { id: "scatter-hint", class: "unseen" }, "Arrow keys move from row to row, Enter runs the row, Escape removes the filter of both columns.");
    host.append(element("header", { class: "axes" }, this.select("across", "across"), this.select("up", "up"), this.select("tint", "colour"), this.legend), this.area, hint);
    this.pointed = -1;
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("pointermove", (event) => { if (!event.buttons) this.point(this.nearest(event)); });
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("blur", () => this.point(-1));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    rows.onFilter(() => this.draw());
    fall.onRow(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  select(axis, label) {
    const options = this.rows.columns.map((column, k) => element("option", { value: String(k) }, column.heading));
    if (axis === "tint") options.unshift(element("option", { value: "-1" }, "one colour"));
    const select = element("select", {}, ...options);
    select.value = String(this.axes[axis] ? this.axes[axis].place : -1);
    select.addEventListener("change", () => {
      this.axes[axis] = this.rows.columns[Number(select.value)] || null;
      this.draw();
    });
    return element("label", {}, `${label} `, select);
  }

  // Range of an axis, with room at both ends.
  range(column) {
    if (column.labels) return [-0.5, column.labels.length - 0.5];
    const { low, high } = column, rim = 0.02 * (high - low) || 0.5;
    return [low - rim, high + rim];
  }

  // Pixels of a value and back.
  scales() {
    const width = this.area.clientWidth, height = this.area.clientHeight;
    const along = (column, from, to) => {
      const [low, high] = this.range(column), scale = (to - from) / (high - low);
      return { at: (x) => from + (x - low) * scale, value: (p) => low + (p - from) / scale, from, to, low, high };
    };
    return { width, height, x: along(this.axes.across, GAP.left, width - GAP.right), y: along(this.axes.up, height - GAP.bottom, GAP.top) };
  }

  draw() {
    const { width, height, x, y } = (this.scale = this.scales());
    if (width < 120 || height < 80) return;
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    this.canvas.setAttribute("aria-label", `Scatter of ${this.axes.up.heading} over ${this.axes.across.heading}: ${countOf(this.rows.left, "row")}`);
    const pen = this.canvas.getContext("2d", { willReadFrequently: true });
    pen.scale(ratio, ratio);
    this.drawAxes(pen);
    this.drawPoints(pen, ratio);
    this.drawLegend();
    const wanted = [this.rows.filters.get(this.axes.across), this.rows.filters.get(this.axes.up)];
    if (wanted.some((one) => one && !one.labels)) {
      const ends = (one, axis) => (one && !one.labels ? [axis.at(one.low), axis.at(one.high)] : [axis.from, axis.to]);
      const [a, b] = ends(wanted[0], x), [c, d] = ends(wanted[1], y);
      pen.strokeStyle = colour("accent");
      pen.strokeRect(Math.max(a, GAP.left), Math.max(d, GAP.top), Math.min(b, x.to) - Math.max(a, GAP.left), Math.min(c, y.from) - Math.max(d, GAP.top));
    }
    if (this.fall.place >= 0) this.ring(pen, this.fall.place, colour("chosen"), 6);
    if (this.pointed >= 0) this.ring(pen, this.pointed, colour("text"), 5);
  }

  ring(pen, place, tint, radius) {
    const { x, y } = this.scale, { across, up } = this.axes;
    pen.beginPath();
    pen.arc(x.at(across.values[place]), y.at(up.values[place]), radius, 0, 2 * Math.PI);
    pen.lineWidth = 2;
    pen.strokeStyle = tint;
    pen.stroke();
    pen.lineWidth = 1;
  }

  drawAxes(pen) {
    const { width, height, x, y } = this.scale, { across, up } = this.axes;
    pen.font = "11.5px system-ui, sans-serif";
    pen.strokeStyle = colour("grid");
    pen.fillStyle = colour("soft");
    const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
    for (const [value, text] of marks(across, x, 84)) {
      const at = Math.round(x.at(value)) + 0.5;
      line(pen, at, GAP.top, at, height - GAP.bottom);
      pen.textAlign = "center";
      pen.fillText(cut(text, 14), at, height - GAP.bottom + 15);
    }
    for (const [value, text] of marks(up, y, 44)) {
      const at = Math.round(y.at(value)) + 0.5;
      line(pen, GAP.left, at, width - GAP.right, at);
      pen.textAlign = "right";
      pen.fillText(cut(text, 9), GAP.left - 6, at + 4);
    }
    pen.fillStyle = colour("text");
    pen.textAlign = "center";
    pen.fillText(across.heading, (GAP.left + width - GAP.right) / 2, height - 6);
    pen.save();
    pen.translate(11, (GAP.top + height - GAP.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(up.heading, 0, 0);
    pen.restore();
  }

  // Each point is a small square, set in the picture's own pixels: a hundred thousand in some milliseconds.
  drawPoints(pen, ratio) {
    const { x, y } = this.scale, { across, up, tint } = this.axes, { rows, canvas } = this;
    const picture = pen.getImageData(0, 0, canvas.width, canvas.height), { data: packed } = picture, pixels = new Uint32Array(packed.buffer);
    const side = Math.max(1, Math.round((rows.left > 20000 ? 1.5 : rows.left > 2000 ? 2.5 : 4) * ratio)), half = side >> 1;
    const colours = this.tints(tint), away = packedColour(colour("profile"));
    const [low, high] = tint ? this.range(tint) : [0, 1];
    const paint = (k, shade) => {
      const px = Math.round(x.at(across.values[k]) * ratio) - half, py = Math.round(y.at(up.values[k]) * ratio) - half;
      for (let row = Math.max(py, 0); row < Math.min(py + side, canvas.height); row++) {
        for (let at = Math.max(px, 0); at < Math.min(px + side, canvas.width); at++) pixels[row * canvas.width + at] = shade;
      }
    };
    const seen = (k) => !Number.isNaN(across.values[k]) && !Number.isNaN(up.values[k]);
    if (rows.filters.size) for (let k = 0; k < rows.count; k++) if (!rows.kept[k] && seen(k)) paint(k, away);
    for (let k = 0; k < rows.count; k++) {
      if (!rows.kept[k] || !seen(k)) continue;
      const value = tint ? tint.values[k] : 0;
      if (tint?.labels) paint(k, colours[value % colours.length]);
      else if (Number.isNaN(value)) paint(k, away);
      else paint(k, colours[Math.min(colours.length - 1, Math.max(0, Math.floor(((value - low) / (high - low)) * colours.length)))]);
    }
    pen.putImageData(picture, 0, 0);
  }

  tints(tint) {
    if (!tint) return [packedColour(colour("accent"))];
    if (tint.labels) return [1, 2, 3, 4, 5, 6, 7, 8].map((k) => packedColour(colour(`s${k}`)));
    return shades(32).map(packedColour);
  }

  drawLegend() {
    const { tint } = this.axes;
    this.legend.hidden = !tint;
    if (!tint) return;
    if (tint.labels) {
      const shown = tint.labels.slice(0, 6).map((label, k) => element("span", { class: "tint" }, swatch(colour(`s${(k % 8) + 1}`)), label));
      this.legend.replaceChildren(...shown, ...(tint.labels.length > 6 ? [element("span", {}, "…")] : []));
    } else {
      const strip = element("span", { class: "strip", "aria-hidden": "true" });
      strip.style.background = `linear-gradient(90deg, ${shades(8).join(", ")})`;
      this.legend.replaceChildren(element("span", {}, tint.text(tint.low)), strip, element("span", {}, tint.text(tint.high, true)));
    }
  }

  // ---- hands -------------------------------------------------------------------------------------------

  nearest(event) {
    const edge = this.canvas.getBoundingClientRect(), px = event.clientX - edge.left, py = event.clientY - edge.top;
    const { x, y } = this.scale, { across, up } = this.axes;
    let found = -1, least = REACH * REACH;
    for (let k = 0; k < this.rows.count; k++) {
      if (!this.rows.kept[k]) continue;
      const dx = x.at(across.values[k]) - px, dy = y.at(up.values[k]) - py, far = dx * dx + dy * dy;
      if (far < least) [found, least] = [k, far];
    }
    return found;
  }

  point(place, say = false) {
    if (place === this.pointed) return;
    this.pointed = place;
    this.draw();
    this.tip.hidden = place < 0;
    if (place < 0) return;
    const { x, y, width } = this.scale, shown = [...new Set(Object.values(this.axes))].filter(Boolean);
    const text = `row ${grouped(this.rows.numbers[place])}`;
    const lines = shown.map((column) => `${column.title} ${column.text(column.values[place], true)}`);
    this.tip.replaceChildren(element("b", {}, text), ...lines.map((one) => element("span", {}, one)));
    const left = x.at(this.axes.across.values[place]);
    this.tip.style.left = `${left + this.tip.offsetWidth + 16 > width ? left - this.tip.offsetWidth - 10 : left + 10}px`;
    this.tip.style.top = `${Math.max(0, y.at(this.axes.up.values[place]) - 14)}px`;
    if (say) $("said").textContent = [text, ...lines].join(", ");
  }

  drag(event) {
    if (event.button !== 0) return;
    const edge = this.canvas.getBoundingClientRect(), { x, y } = this.scale, { across, up } = this.axes;
    const place = (now) => [now.clientX - edge.left, now.clientY - edge.top];
    const first = place(event);
    const far = (now) => Math.hypot(...place(now).map((p, k) => p - first[k])) > 4;
    hearDrag(this.canvas, event, (now) => {
      if (!far(now)) return;
      this.point(-1);
      const last = place(now);
      const ends = (axis, k) => [axis.value(first[k]), axis.value(last[k])].sort((a, b) => a - b);
      for (const [column, [low, high]] of [[across, ends(x, 0)], [up, ends(y, 1)]]) {
        if (column.labels) this.rows.filters.set(column, { labels: new Set(column.labels.keys().filter((k) => k >= low && k <= high)) });
        else this.rows.filters.set(column, { low, high });
      }
      this.rows.apply();
    }, (now) => {
      if (far(now)) return;
      const hit = this.nearest(now);
      if (hit >= 0) this.fall.show(hit);
      else this.lift();
    });
  }

  lift() {
    this.rows.filters.delete(this.axes.across);
    this.rows.filters.delete(this.axes.up);
    this.rows.apply();
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowRight: ["across", 1], ArrowLeft: ["across", -1], ArrowUp: ["up", 1], ArrowDown: ["up", -1] }[event.key];
    if (by) this.walk(this.axes[by[0]], by[1]);
    else if (event.key === "Enter" && this.pointed >= 0) this.fall.show(this.pointed);
    else if (event.key === "Escape") this.lift();
    else return;
    event.preventDefault();
  }

  // The next row by the value of a column.
  walk(column, by) {
    const places = this.rows.sorted(column, false), values = column.values;
    let end = places.length;
    while (end && Number.isNaN(values[places[end - 1]])) end -= 1;
    if (!end) return;
    const at = this.pointed < 0 ? (by > 0 ? -1 : end) : places.indexOf(this.pointed);
    this.point(places[Math.min(Math.max(at + by, 0), end - 1)], true);
  }
}
