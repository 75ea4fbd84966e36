// Curves in step with the timeline: uPlot draws them, a line of our own shows the time, a click seeks.

const LINE_COLOURS = { kinetic: "kinetic", potential: "potential", dissipated: "dissipated", total: "total", work: "two", tau: "y", x: "x", y: "y", z: "z", drift: "total" };

// Values below this share of the largest of a graph are shown as 0: a robot at rest moves by rounding.
const ROUNDING = 1e-15;

class Plot {
  constructor(host, seek) {
    this.seek = seek;
    this.hiddenSeries = new Set();
    this.time = 0;
    this.header = element("header");
    this.legend = element("div", { class: "legend" });
    this.chart = element("div", { class: "chart" });
    this.card = element("section", { class: "plot" }, this.header, this.legend, this.chart);
    host.append(this.card);
    new ResizeObserver(() => this.resize()).observe(this.chart);
  }

  // graph: {title, unit, x: [...], lines: [{name, y: [...]}]}
  draw(graph) {
    this.graph = graph;
    if (this.chartObject) this.chartObject.destroy();
    this.chartObject = null;
    const tint = (line, k) => colour(line.colour || LINE_COLOURS[line.name] || (k ? "two" : "one"));
    this.values = graph.lines.map((line, k) => {
      const value = element("b", {}, "–");
      const button = element("button", { type: "button", "aria-pressed": String(!this.hiddenSeries.has(line.name)), title: "Show or hide" }, line.name, value);
      button.style.setProperty("--series", tint(line, k));
      button.addEventListener("click", () => this.flip(line.name, k, button));
      return { button, value };
    });
    this.largest = Math.max(...graph.lines.map((line) => line.y.reduce((most, y) => Math.max(most, Math.abs(y)), 0)));
    this.legend.replaceChildren(...this.values.map((entry) => entry.button));
    const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" };
    const options = {
      width: Math.max(this.chart.clientWidth, 50),
      height: Math.max(this.chart.clientHeight, 50),
      padding: [6, 10, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { size: 5 } },
      scales: { x: { time: false, range: [graph.x[0], graph.x[graph.x.length - 1]] }, y: { range: span } },
      axes: [{ ...axis, size: 24, gap: 3, values: (_, ticks) => ticks.map((s) => `${s} s`) }, { ...axis, size: room, gap: 4, values: (_, ticks) => ticks.map(short) }],
      series: [{}, ...graph.lines.map((line, k) => ({ stroke: tint(line, k), width: line.name === "total" ? 2 : 1.6, points: { show: false }, show: !this.hiddenSeries.has(line.name), dash: line.name === "total" ? [6, 3] : undefined }))],
    };
    this.chartObject = new uPlot(options, [graph.x, ...graph.lines.map((line) => line.y)], this.chart);
    this.playhead = element("div", { class: "playhead" });
    const over = this.chartObject.over;
    over.append(this.playhead);
    const jump = (event) => this.seek(this.chartObject.posToVal(event.clientX - over.getBoundingClientRect().left, "x"));
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      over.setPointerCapture(event.pointerId);
      jump(event);
    });
    over.addEventListener("pointermove", (event) => { if (over.hasPointerCapture(event.pointerId)) jump(event); });
    this.setTime(this.time);
  }

  flip(name, k, button) {
    const show = this.hiddenSeries.has(name);
    if (show) this.hiddenSeries.delete(name);
    else this.hiddenSeries.add(name);
    button.setAttribute("aria-pressed", String(show));
    this.chartObject.setSeries(k + 1, { show });
  }

  resize() {
    if (!this.chartObject || this.chart.clientWidth < 20 || this.chart.clientHeight < 20) return;
    this.chartObject.setSize({ width: this.chart.clientWidth, height: this.chart.clientHeight });
    this.setTime(this.time);
  }

  setTime(time) {
    this.time = time;
    if (!this.chartObject || !this.chart.clientWidth) return;
    this.playhead.style.left = `${this.chartObject.valToPos(time, "x")}px`;
    const { x, lines } = this.graph;
    let low = 0, high = x.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] <= time) low = middle;
      else high = middle;
    }
    const part = high > low ? Math.min(Math.max((time - x[low]) / (x[high] - x[low]), 0), 1) : 0;
    lines.forEach((one, k) => {
      const exact = one.y[low] + part * (one.y[high] - one.y[low]);
      const value = Math.abs(exact) < ROUNDING * this.largest ? 0 : exact;
      this.values[k].value.textContent = Math.abs(value) < 0.01 && value !== 0 ? figure(value) : steady(value, Math.abs(value) < 10 ? 3 : 1);
    });
  }
}

// Range of the y axis: some air, and zero in view where it is near. Never narrower than rounding noise.
function span(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const scale = Math.max(Math.abs(low), Math.abs(high), 1e-12);
  const air = Math.max(0.06 * (high - low), 1e-6 * scale);
  return [low - air, high + air];
}

// Width of the y axis [px]: more than usual only for numbers with a power of ten.
const room = (_, labels) => Math.max(50, 16 + 6 * Math.max(0, ...(labels || []).map((label) => label.length)));

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return powerOfTen(value, 2);
  if (size >= 1e4) return `${+(value / 1000).toFixed(1)}k`.replace("-", "−");
  return String(+value.toPrecision(4)).replace("-", "−");
}
