// One plot: lines over time, drawn by uPlot, in step with the timeline and with the other plots.
//
// A graph is {title, unit, x, lines: [{name, y, x, colour, low, high}]}; a line may have times of its own, and
// limits that are shaded.

const LINE_COLOURS = { kinetic: "kinetic", potential: "potential", dissipated: "dissipated", total: "total", size: "total", work: "s3", ground: "s1", joints: "s2", limits: "s4", collisions: "s7", springs: "s5", x: "x", y: "y", z: "z", roll: "x", pitch: "y", yaw: "z", drift: "total" };

// Colours of lines without a name of their own.
const SERIES = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];

// Values below this share of the largest of a graph are shown as 0: a robot at rest moves by rounding.
const ROUNDING = 1e-15;

class Plot {
  // act: {window, stopped, seek(time), point(time or null)}
  constructor(host, act) {
    this.act = act;
    this.hiddenSeries = new Set();
    this.time = 0;
    this.pointed = null;
    this.header = element("header");
    this.legend = element("div", { class: "legend" });
    this.chart = element("div", { class: "chart" });
    this.more = element("div", { class: "more" });
    this.more.hidden = true;
    this.card = element("section", { class: "plot" }, this.header, this.more, this.legend, this.chart);
    this.cut = element("button", { class: "cut", type: "button", title: "Some values are outside the range shown; click to show or hide them" });
    this.cut.addEventListener("click", () => { this.all = !this.all; this.rescale(); });
    host.append(this.card);
    new ResizeObserver(() => this.resize()).observe(this.chart);
  }

  draw(graph) {
    const { act } = this;
    if (this.chartObject && act.over() === this) act.point(null, this);
    this.graph = graph;
    this.all = false;
    graph.lines.forEach((line, k) => {
      line.x ??= graph.x;
      line.tint = colour(line.colour || LINE_COLOURS[line.name] || SERIES[k % SERIES.length]);
    });
    if (this.chartObject) this.chartObject.destroy();
    this.values = graph.lines.map((line, k) => {
      const value = element("b", {}, "–");
      const button = element("button", { type: "button", "aria-pressed": String(!this.hiddenSeries.has(line.name)), title: `Show or hide ${line.name}` }, element("em", {}, line.name), value);
      button.style.setProperty("--series", line.tint);
      button.addEventListener("click", () => this.flip(line.name, k, button));
      return { button, value };
    });
    this.legend.replaceChildren(...this.values.map((entry) => entry.button));
    this.legend.classList.toggle("many", graph.lines.length > 4);
    this.largest = Math.max(0, ...graph.lines.map((line) => line.y.reduce((most, y) => Math.max(most, Number.isFinite(y) ? Math.abs(y) : 0), 0)));
    this.limit = sane(graph.lines, act.stopped);
    const axis = axisLook();
    const options = {
      width: Math.max(this.chart.clientWidth, 50),
      height: Math.max(this.chart.clientHeight, 50),
      padding: [6, 20, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: () => [act.window.from, act.window.to] }, y: { range: () => this.range() } },
      axes: [
        { ...axis, size: 24, gap: 3, space: 62, values: (_, ticks, _axis, _space, step) => timeLabels(ticks, step) },
        { ...axis, size: room, gap: 4, values: (_, ticks, _axis, _space, step) => tickLabels(ticks, step) },
      ],
      series: [{}, ...graph.lines.map((line) => ({ stroke: line.tint, width: line.name === "total" ? 2 : 1.6, points: { show: false }, spanGaps: !line.gaps, pxAlign: 0, show: !this.hiddenSeries.has(line.name), dash: line.name === "total" ? [6, 3] : undefined }))],
      hooks: { drawAxes: [(u) => this.drawLimits(u)], draw: [() => this.place()] },
    };
    this.chartObject = new uPlot(options, this.columns(), this.chart);
    this.hand = new PlotHand(this, act);
    this.showCut();
    this.setTime(this.time);
    this.setPointed(this.pointed);
  }

  // uPlot draws later than it is asked to: only then places are known.
  place() {
    if (!this.hand || this.hand.chart !== this.chartObject) return;
    this.hand.showTime(this.time);
    this.hand.showPointed(this.pointed);
  }

  // What uPlot draws: one row of times for all lines; what blew up ends far outside the picture.
  columns() {
    const far = 50 * this.limit;
    const drawn = (line) => Array.from(line.y, (y) => (Number.isFinite(y) ? Math.min(Math.max(y, -far), far) : null));
    const { lines } = this.graph;
    if (lines.every((line) => line.x === lines[0].x)) return [lines.length ? lines[0].x : this.graph.x, ...lines.map(drawn)];
    return uPlot.join(lines.map((line) => [line.x, drawn(line)]));
  }

  shown() { return this.graph.lines.filter((line) => !this.hiddenSeries.has(line.name)); }

  range() {
    const { from, to } = this.act.window;
    return span(this.shown(), from, to, this.all ? Infinity : this.limit, this.graph.least);
  }

  // After a change of the window, of what is shown, or of what is cut.
  rescale() {
    if (!this.chartObject) return;
    const { from, to } = this.act.window;
    this.chartObject.batch(() => this.chartObject.setScale("x", { min: from, max: to }));
    this.showCut();
    this.setTime(this.time);
    this.setPointed(this.pointed);
  }

  showCut() {
    this.cut.hidden = this.limit === Infinity;
    this.cut.textContent = this.all ? "all shown" : `cut; reaches ${figure(this.largest)}`;
  }

  // Beyond the limits of each line, its own colour, faintly.
  drawLimits(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const limited = this.shown().filter((line) => line.low !== undefined || line.high !== undefined);
    for (const line of limited) {
      for (const [limit, end] of [[line.high, bbox.top], [line.low, bbox.top + bbox.height]]) {
        if (limit === undefined) continue;
        const at = Math.min(Math.max(u.valToPos(limit, "y", true), bbox.top - 4), bbox.top + bbox.height + 4);
        ctx.fillStyle = ctx.strokeStyle = line.tint;
        ctx.globalAlpha = 0.1;
        // Many bands, one over another, would hide the lines.
        if (limited.length <= 2) ctx.fillRect(bbox.left, Math.min(at, end), bbox.width, Math.abs(end - at));
        ctx.globalAlpha = 0.55;
        ctx.lineWidth = devicePixelRatio;
        ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, at);
        ctx.lineTo(bbox.left + bbox.width, at);
        ctx.stroke();
      }
    }
    ctx.restore();
  }

  flip(name, k, button) {
    const show = this.hiddenSeries.has(name);
    if (show) this.hiddenSeries.delete(name);
    else this.hiddenSeries.add(name);
    button.setAttribute("aria-pressed", String(show));
    this.chartObject.setSeries(k + 1, { show });
    this.rescale();
  }

  resize() {
    if (!this.chartObject || this.chart.clientWidth < 20 || this.chart.clientHeight < 20) return;
    this.chartObject.setSize({ width: this.chart.clientWidth, height: this.chart.clientHeight });
    this.setTime(this.time);
  }

  setTime(time) {
    this.time = time;
    if (!this.chartObject || !this.chart.clientWidth) return;
    this.hand.showTime(time);
    if (this.pointed === null) this.read(time);
  }

  // The time under the pointer, here or in another plot; null where there is none.
  setPointed(time) {
    this.pointed = time;
    if (!this.chartObject || !this.chart.clientWidth) return;
    this.hand.showPointed(time);
    this.read(time ?? this.time);
  }

  // The legend's values are those of a time.
  read(time) {
    this.graph.lines.forEach((line, k) => { this.values[k].value.textContent = this.text(valueAt(line, time)); });
  }

  text(exact) {
    const value = Math.abs(exact) < Math.max(ROUNDING * this.largest, this.graph.least ?? 0) ? 0 : exact;
    return Math.abs(value) < 0.01 && value !== 0 ? figure(value) : steady(value, Math.abs(value) < 10 ? 3 : 1);
  }
}
