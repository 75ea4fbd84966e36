// The curves of a run: energies over what the reader chooses, in step with the timeline.

class Curves {
  constructor(host, page) {
    const { data, timeline } = page;
    this.page = page;
    this.joint = data.joints.find((joint) => joint.q[1] - joint.q[0] === 1) || null;
    const seek = (time) => { timeline.pause(); timeline.seek(time); };
    const [energy, ...others] = data.curves.map((curve) => ({
      key: curve.key, title: curve.title, unit: curve.unit, x: Array.from(floats(curve.t)),
      lines: curve.series.map((series) => ({ name: series.name, y: Array.from(floats(series.y)) })),
    }));
    this.energy = energy;
    this.others = others;
    this.first = new Plot(host, seek);
    this.second = new Plot(host, seek);
    this.plots = [this.first, this.second];
    this.first.header.replaceChildren(element("h2", {}, energy.title), element("span", { class: "unit" }, energy.unit));
    const names = { force: "Force", linear: "Linear", angular: "Angular", drift: "Balance" };
    const tabs = others.map((graph) => [graph.key, names[graph.key] || graph.title]);
    if (this.joint) tabs.push(["joint", "Joint"]);
    this.unit = element("span", { class: "unit" });
    this.key = tabs[0][0];
    const tabbed = choice(tabs, this.key, (key) => this.show(key));
    this.select = tabbed.select;
    this.second.header.append(tabbed.group, this.unit);
    this.redraw();
    new ResizeObserver(() => this.drawProfile()).observe($("profile"));
  }

  redraw() {
    this.first.draw(this.energy);
    this.show(this.key);
    this.drawProfile();
  }

  show(key) {
    this.key = key;
    const graph = key === "joint" ? this.jointGraph(this.joint) : this.others.find((one) => one.key === key);
    this.unit.textContent = graph.unit;
    this.unit.title = graph.title;
    this.second.draw(graph);
  }

  // The joint of a body, if it has one coordinate.
  choose(body) {
    const found = this.page.data.joints.find((joint) => joint.body === body);
    if (!found || found.q[1] - found.q[0] !== 1) return;
    this.joint = found;
    if (this.key === "joint") this.select("joint");
  }

  drawProfile() {
    const force = this.others.find((one) => one.key === "force");
    const values = force ? force.lines[0].y.map((_, k) => Math.hypot(...force.lines.map((one) => one.y[k]))) : this.energy.lines[0].y;
    this.page.timeline.drawProfile(values, this.energy.x);
  }

  jointGraph(joint) {
    const { motion } = this.page;
    const column = (values, width, at) => Array.from({ length: motion.count }, (_, k) => values[k * width + at]);
    const metre = joint.kind === "prismatic";
    const lines = [{ name: "q", y: column(motion.q, motion.nq, joint.q[0]) }];
    const width = motion.v ? motion.v.length / motion.count : 0;
    if (motion.v) lines.push({ name: "v", y: column(motion.v, width, joint.v[0]) });
    if (motion.tau) lines.push({ name: "tau", y: column(motion.tau, width, joint.v[0]) });
    return { title: joint.name, unit: `${joint.name} [${metre ? "m, m/s" : "rad, rad/s"}${motion.tau ? (metre ? ", N" : ", N m") : ""}]`, x: Array.from(motion.t), lines };
  }
}
