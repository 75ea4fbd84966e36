// The plots of a run: two at a time, each of what the reader chooses, in step with the timeline and one another.

const GRAPH_NAMES = { energy: "Energy", force: "Contact force", links: "Force by link", power: "Power", springs: "Spring forces", lengths: "Spring lengths", joint: "Joints", link: "Link motion", bodies: "Kinetic by body", linear: "Linear momentum", angular: "Angular momentum", drift: "Energy balance" };
// Size below which what a plot shows is zero, in SI units.
const LEAST = 1e-9;
const PARTS = { joint: [["q", "q"], ["v", "v"], ["tau", "τ"]], link: Object.entries(LINK_PARTS).map(([part, { label }]) => [part, label]) };
// Plots at first, of curves of the caller's own, and at most.
const MOST_FIRST = 4, MOST_PLOTS = 8;

class Curves {
  constructor(host, page) {
    const { data, timeline, motion } = page;
    this.page = page;
    this.graphs = new Graphs(data, motion);
    const moving = data.joints.filter((joint) => joint.v[1] > joint.v[0]);
    const joint = moving.find((joint) => joint.q[1] - joint.q[0] === 1) || moving[0];
    const { stored, forces } = this.graphs;
    this.own = [...stored.keys()].filter((key) => key.startsWith(OWN));
    this.keys = [...this.own, ...Object.keys(GRAPH_NAMES).filter((key) => stored.has(key) || (key === "links" && forces.length) || (key === "link" && data.links.length) || (motion.v && ((key === "joint" && joint) || key === "bodies")))];
    this.window = new TimeWindow(motion.duration, Math.max(2e-3 * motion.duration, 1e-6));
    this.over = null;
    this.link = this.body = null;
    this.host = host;
    this.picker = new JointPicker(host, data);
    this.picker.onChange(() => this.redrawOf("joint"));
    const seek = (time) => { timeline.pause(); timeline.seek(time); };
    this.act = { window: this.window, stopped: Boolean(data.stopped), seek, point: (time, plot) => this.point(time, plot), over: () => this.over };
    const usual = ["energy", stored.has("force") ? "force" : "joint"].filter((key) => this.keys.includes(key));
    this.panes = [];
    this.plots = [];
    this.adder = element("button", { class: "small add-plot", type: "button", title: "Add a plot below", onclick: () => this.add() }, "Add a plot");
    host.append(this.adder);
    const own = this.own.slice(0, MOST_FIRST);
    for (const key of own.length > 1 ? own : [...own, ...usual].slice(0, 2)) this.pane(key);
    if (joint) this.picker.chosen.add(joint.body);
    this.picker.set(this.picker.chosen);
    this.addRange();
    this.redraw();
    this.window.onChange(() => this.showWindow());
    const keys = { "+": ["narrower", 0.5], "-": ["wider", 2] };
    for (const [key, [words, factor]] of Object.entries(keys)) page.shortcuts.add(key, `Plots: a ${words} part of the run`, () => this.window.zoom(timeline.time, factor));
    page.shortcuts.add("0", "Plots: the whole run", () => this.window.reset());
    new ResizeObserver(() => this.drawProfile()).observe($("profile"));
  }

  // One plot with its choices.
  pane(key) {
    const pane = { plot: new Plot(this.host, this.act), key, part: { joint: "q", link: "position" }, point: [0, 0, 0] };
    pane.select = element("select", { class: "which", "aria-label": "What the plot shows" }, ...this.keys.map((one) => element("option", { value: one }, this.nameOf(one))));
    pane.select.addEventListener("change", () => this.draw(pane, pane.select.value));
    pane.unit = element("span", { class: "unit" });
    pane.tools = element("span", { class: "tools" });
    pane.peak = element("button", { class: "largest", type: "button" });
    pane.close = element("button", { class: "small close-plot", type: "button", title: "Remove this plot", "aria-label": "Remove this plot", onclick: () => this.remove(pane) }, "×");
    pane.plot.header.append(pane.select, pane.unit, pane.plot.cut, pane.tools, pane.peak, pane.close);
    this.addLinkRow(pane);
    this.host.insertBefore(pane.plot.card, this.adder);
    this.panes.push(pane);
    this.counted();
    return pane;
  }

  nameOf(key) { return GRAPH_NAMES[key] || this.graphs.stored.get(key).title; }

  // Which link a plot of one is about, and which point of it.
  addLinkRow(pane) {
    pane.linkSelect = element("select", { "aria-label": "Link" }, ...this.page.data.links.map((link) => element("option", { value: link.name }, link.name)));
    pane.linkSelect.addEventListener("change", () => {
      pane.link = pane.linkSelect.value;
      this.draw(pane, "link");
    });
    const point = element("input", { type: "text", value: "0 0 0", size: 12, "aria-label": "Point in the link's axes, x y z in metres", title: "x y z in the link's axes [m]" });
    point.addEventListener("input", () => {
      const numbers = point.value.trim().split(/[\s,;]+/).map(Number);
      const good = numbers.length === 3 && numbers.every(Number.isFinite);
      point.setAttribute("aria-invalid", String(!good));
      if (!good) return;
      pane.point = numbers;
      this.draw(pane, "link");
    });
    pane.parts = element("span");
    pane.plot.more.append(pane.linkSelect, element("label", {}, "point ", point, " m"), pane.parts);
  }

  add() {
    const shown = this.panes.map((pane) => pane.key);
    const pane = this.pane(this.keys.find((key) => !shown.includes(key)) || this.keys[0]);
    this.draw(pane, pane.key);
    pane.plot.setTime(this.page.timeline.time);
    pane.plot.card.scrollIntoView({ block: "nearest" });
    pane.select.focus();
  }

  remove(pane) {
    this.panes.splice(this.panes.indexOf(pane), 1);
    pane.plot.card.remove();
    this.counted();
    this.adder.focus();
  }

  counted() {
    this.plots.splice(0, Infinity, ...this.panes.map((pane) => pane.plot));
    for (const pane of this.panes) pane.close.hidden = this.panes.length <= 2;
    this.adder.hidden = this.panes.length >= MOST_PLOTS;
  }

  // What a plot shows, the second one unless said otherwise.
  show(key, which = 1) { this.draw(this.panes[which], key); }

  draw(pane, key) {
    pane.key = pane.select.value = key;
    const graph = this.graphOf(pane);
    pane.unit.textContent = graph.unit;
    pane.unit.title = pane.select.title = graph.title;
    pane.plot.more.hidden = key !== "link";
    if (key === "link") pane.linkSelect.value = this.linkOf(pane);
    pane.plot.draw(graph);
    this.drawTools(pane);
    this.drawPeak(pane);
  }

  // Robots at rest move by rounding; the balance of energy is about just that.
  graphOf(pane) {
    return { ...this.dataOf(pane), least: pane.key === "drift" ? 0 : LEAST };
  }

  dataOf(pane) {
    const { key, part } = pane;
    if (key === "joint") return this.graphs.joints(this.picker.joints, part.joint);
    if (key === "links") return this.graphs.links(this.link);
    if (key === "bodies") return this.graphs.bodies(this.body);
    if (key === "link") return this.graphs.link(this.linkOf(pane), pane.point, part.link);
    return this.graphs.run(key);
  }

  // The link of a plot's own choice, else the one that is selected.
  linkOf(pane) {
    const { data } = this.page, name = pane.link ?? this.link;
    const known = data.links.some((link) => link.name === name);
    return known ? name : (data.links.find((link) => link.body > 0) || data.links[0]).name;
  }

  drawTools(pane) {
    const { key } = pane;
    const made = [];
    if (PARTS[key]) {
      const { v, tau } = this.graphs.motion;
      const parts = PARTS[key].filter(([part]) => (part !== "tau" || tau) && (v || !["linear", "angular"].includes(part)));
      const { group } = choice(parts, pane.part[key], (part) => { pane.part[key] = part; this.draw(pane, key); });
      if (key === "link") pane.parts.replaceChildren(group);
      else made.push(group);
    }
    if (key === "joint") {
      const opener = element("button", { class: "small", type: "button", "aria-haspopup": "dialog", "aria-expanded": "false" }, `${this.picker.chosen.size} shown ▾`);
      opener.addEventListener("click", () => this.picker.toggle(opener));
      made.push(opener);
    }
    pane.tools.replaceChildren(...made);
  }

  // The largest value: of the size or the kinetic energy where there is one, else of any line.
  drawPeak(pane) {
    const { lines } = pane.plot.graph;
    const one = lines.find((line) => line.name === "size" || line.name === "kinetic");
    let best = null;
    for (const line of one ? [one] : lines) line.y.forEach((y, k) => { if (Number.isFinite(y) && (!best || Math.abs(y) > Math.abs(best.y))) best = { y, time: timeOf(line, k), name: line.name }; });
    pane.peak.hidden = !best || Math.abs(best.y) <= pane.plot.graph.least || !pane.plot.cut.hidden || Boolean(PARTS[pane.key]);
    if (!best) return;
    // Of a run of which only the records are known, single steps may have had more: the summary has their peak.
    const peak = pane.plot.graph.title?.includes("recorded steps only") ? "peak of records" : "peak";
    const name = best.name === "size" || lines.length === 1 ? peak : best.name;
    // Where there is no room for its time, that is on a second line, which is not seen.
    pane.peak.replaceChildren(element("span", {}, `${name} `, element("b", {}, figure(best.y, 4))), " ", element("span", {}, `at ${+best.time.toFixed(4)} s`));
    pane.peak.title = `Largest value, of ${best.name}: click to go there`;
    pane.peak.onclick = () => { this.page.timeline.pause(); this.page.timeline.seek(best.time); };
  }

  redraw() {
    for (const pane of this.panes) this.draw(pane, pane.key);
    this.drawProfile();
  }

  redrawOf(...keys) {
    for (const pane of this.panes || []) if (keys.includes(pane.key)) this.draw(pane, pane.key);
  }

  // A body that is selected: its joint and its link are what plots of one joint or link show.
  choose(body, link = null) {
    this.link = link ?? this.page.data.links.find((link) => link.body === body)?.name ?? null;
    const joint = this.page.data.joints.find((joint) => joint.body === body && joint.v[1] > joint.v[0]);
    if (joint && !this.picker.chosen.has(body)) this.picker.set(this.picker.chosen.size > 1 ? [...this.picker.chosen, body] : [body]);
    this.body = body;
    if (this.link !== null) for (const pane of this.panes) pane.link = null;
    this.redrawOf("links", "link", "bodies");
  }

  onPick(listener) { this.picker.onChange(listener); }

  // A joint into the plot, or out of it, from elsewhere: a plot that shows joints is there afterwards.
  pin(body) {
    this.picker.flip(body);
    if (!this.panes.some((pane) => pane.key === "joint")) this.show("joint");
  }

  setTime(time) {
    this.window.follow(time);
    for (const plot of this.plots) plot.setTime(time);
  }

  // The time under the pointer, read in all plots.
  point(time, plot) {
    this.over = time === null ? null : plot;
    for (const one of this.plots) one.setPointed(time);
  }

  // What of the run the plots show, on the timeline, with a button to show all.
  addRange() {
    this.range = element("button", { id: "zoomed", type: "button", title: "Range shown in the plots: click to show the whole run" });
    this.range.addEventListener("click", () => this.window.reset());
    this.range.hidden = true;
    $("profile").after(this.range);
  }

  showWindow() {
    const { from, to, duration, whole } = this.window;
    this.range.hidden = whole;
    this.range.style.left = `calc(7px + (100% - 14px) * ${from / duration})`;
    this.range.style.width = `calc((100% - 14px) * ${(to - from) / duration})`;
    this.range.setAttribute("aria-label", `The plots show ${from.toFixed(3)} to ${to.toFixed(3)} s: show all`);
    for (const plot of this.plots) plot.rescale();
  }

  drawProfile() {
    const { stored } = this.graphs;
    const { x, lines } = stored.get("force") || stored.get("energy");
    const line = lines.find((one) => one.name === "size") || lines[0];
    this.page.timeline.drawProfile(line.y, x);
  }
}
