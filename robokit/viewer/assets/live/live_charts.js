// The books of a live run as it goes: what each line is now, and the kept seconds of it.

// A chart whose lines grow. `lines` are [name, colour] pairs; `read` gives the columns, time first.
class LiveChart {
  constructor(host, seek) {
    this.seek = seek;
    this.header = element("header");
    this.legend = element("div", { class: "legend" });
    this.chart = element("div", { class: "chart" });
    host.append(element("section", { class: "plot live-plot" }, this.header, this.legend, this.chart));
    new ResizeObserver(() => this.resize()).observe(this.chart);
  }

  make(lines, text = livePart) {
    this.text = text;
    if (this.plot) this.plot.destroy();
    this.lines = lines;
    this.values = lines.map(([name, tint]) => {
      const value = element("b", {}, "–");
      const entry = element("span", {}, name, value);
      entry.style.setProperty("--series", colour(tint));
      this.legend.append(entry);
      return value;
    });
    this.legend.replaceChildren(...this.values.map((value) => value.parentElement));
    const axis = axisLook();
    this.plot = new uPlot({
      width: Math.max(this.chart.clientWidth, 50), height: Math.max(this.chart.clientHeight, 50), padding: [6, 16, 0, 0], legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { show: false } },
      scales: { x: { time: false, range: (_, low, high) => (low === null ? [0, 2] : [low, Math.max(high, low + 2)]) }, y: { range: airy } },
      axes: [{ ...axis, size: 24, gap: 3, values: (_, ticks) => ticks.map((s) => `${s} s`) }, { ...axis, size: room, gap: 4, values: (_, ticks, _axis, _space, step) => tickLabels(ticks, step) }],
      series: [{}, ...lines.map(([, tint, dash]) => ({ stroke: colour(tint), width: dash ? 2 : 1.6, dash: dash ? [6, 3] : undefined, points: { show: false } }))],
    }, [[], ...lines.map(() => [])], this.chart);
    this.playhead = element("div", { class: "playhead" });
    this.plot.over.append(this.playhead);
    this.plot.over.addEventListener("pointerdown", (event) => {
      const { left } = this.plot.over.getBoundingClientRect();
      if (event.button === 0) this.seek(this.plot.posToVal(event.clientX - left, "x"));
    });
    this.resize();
  }

  resize() {
    if (this.plot && this.chart.clientWidth > 20 && this.chart.clientHeight > 20) this.plot.setSize({ width: this.chart.clientWidth, height: this.chart.clientHeight });
  }

  // Columns: times, then one for each line; `frame` is the one that is shown.
  show(columns, frame) {
    if (this.chart.clientWidth < 20) return;
    this.plot.setData(columns);
    const k = Math.min(Math.round(frame), columns[0].length - 1);
    // uPlot finds its new scale in a microtask of its own. While the newest frame is shown, the lines' ends say it.
    this.playhead.hidden = k >= columns[0].length - 1;
    queueMicrotask(() => { this.playhead.style.left = `${this.plot.valToPos(columns[0][k], "x")}px`; });
    this.values.forEach((value, i) => { value.textContent = this.text(columns[i + 1][k]); });
  }
}

// Range of the y axis with some air, never narrower than rounding.
function airy(_, low, high) {
  if (low === null || !Number.isFinite(high - low)) return [0, 1];
  if (low === 0 && high === 0) return [-1, 1];
  const air = Math.max(0.06 * (high - low), 1e-6 * Math.max(Math.abs(low), Math.abs(high)), 1e-12);
  return [low - air, high + air];
}

const livePart = (value) => steady(value, Math.abs(value) < 100 ? 2 : 1);

// Place and speed of a link over the kept frames: each frame is computed once.
class LiveLink {
  constructor(run) {
    this.run = run;
    this.known = new Map();
  }

  // {name, values}: of the link's frame x, y, z [m] and speed [m/s], for all frames that are kept.
  read() {
    const { run } = this, { motion, page } = run, { data, selection } = page;
    const link = data.links.find((link) => link.name === selection.link) || data.links.find((link) => link.body > 0) || data.links[0];
    if (this.link !== link || this.number !== run.number) this.known.clear();
    Object.assign(this, { link, number: run.number });
    this.moving ??= new LinkMotion(data, motion);
    const fixed = pointOfLink(link, [0, 0, 0]), values = new Float64Array(4 * motion.count), found = new Map();
    for (let k = 0; k < motion.count; k++) {
      const row = this.known.get(motion.t[k]) || this.row(link, fixed, k);
      found.set(motion.t[k], row);
      values.set(row, 4 * k);
    }
    this.known = found;
    return { name: link.name, values };
  }

  row(link, fixed, frame) {
    const { motion } = this.run, { arm, place } = placed(motion.poses, link.body ? 7 * (link.body - 1 + frame * motion.bodies) : -1, fixed);
    const own = this.moving.at(frame).subarray(6 * link.body, 6 * link.body + 6), moved = cross3(own, arm);
    return [...place, Math.hypot(...moved.map((part, c) => part + own[3 + c]))];
  }
}

// Energies, and below them what the reader chooses.
class LiveCharts {
  constructor(host, run) {
    this.run = run;
    const seek = (time) => run.seek(time);
    this.energy = new LiveChart(host, seek);
    this.energy.header.append(element("h2", {}, "Energy"), element("span", { class: "unit" }, "J"));
    this.other = new LiveChart(host, seek);
    this.kinds = {
      force: ["Force", "N", "force", 3, ["x", "y", "z"]],
      peak: ["Peak", "N", "peak", 1, [["largest force of a step", "two"]]],
      work: ["Energy added", "J", "energy", 5, [["added", "y"]], (row) => [row[3]]],
      linear: ["Linear", "N s", "momentum", 6, ["x", "y", "z"], (row) => row.slice(3)],
      angular: ["Angular", "N m s", "momentum", 6, ["x", "y", "z"], (row) => row.slice(0, 3)],
      balance: ["Balance", "J", "energy", 5, [["total minus start", "total"]], (row) => [row[4] - this.run.startEnergy]],
    };
    // Of the link that is selected, or the first one that moves.
    this.links = new LiveLink(run);
    this.kinds.link = ["Link", "m", "link", 4, ["x", "y", "z"], (row) => row.slice(0, 3)];
    this.kinds.speed = ["Speed", "m/s", "link", 4, [["of the link", "two"]], (row) => row.slice(3)];
    if (run.page.data.ground === null) for (const key of ["force", "peak"]) delete this.kinds[key];
    this.unit = element("span", { class: "unit" });
    this.key = Object.keys(this.kinds)[0];
    const tabs = choice(Object.entries(this.kinds).map(([key, [label]]) => [key, label]), this.key, (key) => this.choose(key));
    this.other.header.append(tabs.group, this.unit);
  }

  redraw() {
    this.energy.make([["kinetic", "kinetic"], ["potential", "potential"], ["dissipated", "dissipated"], ["added", "y"], ["total", "total", true]]);
    this.choose(this.key);
  }

  choose(key) {
    this.key = key;
    const [, unit, , , lines] = this.kinds[key];
    this.words = unit;
    this.other.make(lines.map((line) => (typeof line === "string" ? [line, line] : line)), key === "balance" ? (value) => figure(value, 2) : livePart);
    this.draw();
  }

  draw() {
    const { motion, shown } = this.run;
    const columns = (table, width, pick = (row) => row) => {
      const rows = Array.from({ length: motion.count }, (_, k) => pick(table.subarray(k * width, (k + 1) * width)));
      const count = rows.length ? rows[0].length : 5;
      return [Array.from(motion.t), ...Array.from({ length: count }, (_, i) => rows.map((row) => row[i]))];
    };
    if (!motion.count) return;
    this.energy.show(columns(motion.energy, 5), shown);
    const [, , table, width, , pick] = this.kinds[this.key];
    const { name, values } = table === "link" ? this.links.read() : { name: "", values: motion[table] };
    this.unit.textContent = this.unit.title = name ? `${name} [${this.words}]` : this.words;
    this.other.show(columns(values, width, pick), shown);
  }
}
