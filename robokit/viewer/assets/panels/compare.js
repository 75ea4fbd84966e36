// Two runs beside each other: figures of both, the curves of both, and their difference.

const RUN_COLOURS = ["one", "ghost"];

class Comparison {
  constructor(host, page) {
    const { data, timeline, selection } = page;
    const { ghost } = data;
    this.page = page;
    this.labels = ghost.labels;
    const seek = (time) => { timeline.pause(); timeline.seek(time); };
    const text = (value) => (value === null ? "–" : figure(value));
    const rows = ghost.figures.map((compared) => element("tr", {}, element("th", { scope: "row" }, compared.label, element("span", { class: "unit" }, ` ${compared.unit}`)), element("td", {}, text(compared.first)), element("td", {}, text(compared.second))));
    const head = element("tr", {}, element("td"), ...ghost.labels.map((label, k) => element("th", { scope: "col", title: label }, element("span", { class: `run ${k ? "two" : "one"}` }, label))));
    host.append(element("section", { class: "card" }, element("table", { class: "compared" }, element("thead", {}, head), element("tbody", {}, ...rows))));
    const read = (curve) => ({ key: curve.key, title: curve.title, unit: curve.unit, x: Array.from(floats(curve.t)), lines: curve.series.map((series, k) => ({ name: series.name, y: Array.from(floats(series.y)), colour: RUN_COLOURS[k] })) });
    this.pairs = ghost.pairs.map((curve) => read(curve));
    this.differences = ghost.differences.map((curve) => read(curve));
    this.joint = data.joints.find((joint) => joint.q[1] - joint.q[0] === 1) || null;
    const { window } = page.curves;
    const point = (time, plot) => {
      this.over = time === null ? null : plot;
      for (const one of this.plots) one.setPointed(time);
    };
    const act = { window, stopped: Boolean(data.stopped), seek, point, over: () => this.over };
    this.plots = [new Plot(host, act), new Plot(host, act)];
    const [both, apart] = this.plots;
    window.onChange(() => { for (const plot of this.plots) plot.rescale(); });
    this.unit = element("span", { class: "unit" });
    const names = { com: "CoM", energy: "Energy", force: "Force" };
    const tabs = this.pairs.map((graph) => [graph.key, names[graph.key] || graph.title]);
    if (this.joint) tabs.push(["joint", "Joint"]);
    this.key = tabs[0][0];
    const chosen = choice(tabs, this.key, (key) => this.show(key));
    both.header.append(chosen.group, this.unit);
    apart.header.remove(); // its legend says all
    this.show(this.key);
    timeline.onChange((time) => { for (const plot of this.plots) plot.setTime(time); });
    selection.onSelect(({ body }) => {
      const joint = data.joints.find((joint) => joint.body === body);
      if (!joint || joint.q[1] - joint.q[0] !== 1) return;
      this.joint = joint;
      if (this.key === "joint") this.show("joint");
    });
    whenThemeChanges(() => this.show(this.key));
  }

  show(key) {
    this.key = key;
    const [both, apart] = key === "joint" ? this.jointGraphs() : [this.pairs, this.differences].map((graphs) => graphs.find((graph) => graph.key === key));
    this.unit.textContent = both.unit;
    this.unit.title = both.title;
    this.plots[0].draw(both);
    this.plots[1].draw(apart);
  }

  jointGraphs() {
    const { joint, labels } = this;
    const { motion } = this.page, other = this.page.ghost.motion;
    const at = joint.q[0], unit = joint.kind === "prismatic" ? "m" : "rad";
    const x = Array.from(motion.t).filter((time) => time <= other.duration + 1e-6);
    const first = x.map((_, k) => motion.q[k * motion.nq + at]);
    const second = x.map((time) => other.coordinates(other.frameAt(time))[at]);
    return [
      { title: joint.name, unit: `q ${joint.name} [${unit}]`, x, lines: [first, second].map((y, k) => ({ name: labels[k], y, colour: RUN_COLOURS[k] })) },
      { title: "Difference", unit, x, lines: [{ name: `difference [${unit}]`, y: second.map((q, k) => q - first[k]) }] },
    ];
  }
}
