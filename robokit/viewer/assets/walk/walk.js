// Inside the algorithms: RNEA, CRBA, LTDL and ABA line by line on this robot, forwards and backwards.

const WALK_ICONS = {
  body: { back: "M10 3v12L3 9zM16 3v12L9.5 9z", on: "M8 3v12l7-6zM2 3v12l6.500-6z" },
  line: { back: "M12 3v12L4.500 9z", on: "M6 3v12l7.500-6z" },
};

// [ms] between two looks at the numbers while the motion plays; arrows and box follow every frame.
const WALK_PAUSE = 100;

class Walk {
  constructor(host, page) {
    this.page = page;
    this.host = host;
    host.classList.add("walk");
    const { walk, joints, bodies } = page.data;
    this.joints = new Map(joints.map((joint) => [joint.body, joint]));
    this.names = bodies.name;
    this.step = 0;
    this.recordings = new Map();
    this.places = new Map();
    this.stale = true;
    this.looked = 0;
    this.look = null;
    this.when = "";
    this.drawing = new WalkDrawing(page.stage, page.data);
    this.build(host, walk);
    this.watch();
  }

  build(host, walk) {
    const first = (walk.algorithms.find((algorithm) => algorithm.key === "crba") || walk.algorithms[0]).key;
    this.key = first;
    this.choice = choice(walk.algorithms.map((algorithm) => [algorithm.key, algorithm.key.toUpperCase()]), first, (key) => this.openAlgorithm(key));
    this.time = element("p", { class: "when", title: "Numbers and arrows belong to the state shown in the scene" });
    this.title = element("p", { class: "title" });
    this.sweep = element("div", { class: "sweep" });
    const left = element("div", { class: "left" }), map = element("div", { class: "map" }, left);
    this.tree = new WalkTree(left, this.page.data, { go: (body) => this.goToBody(body), hover: (body) => this.page.selection.hover(body) });
    left.append(...this.buildTransport());
    this.matrix = new WalkMatrix(map);
    this.where = element("p", { class: "where", "aria-live": "polite" });
    this.says = element("p", { class: "says" });
    this.values = element("div", { class: "values", tabindex: "0", role: "region", "aria-label": "Values read and written" });
    const notes = element("details", { class: "notes" }, element("summary", {}, "What the numbers describe"), ...walk.notes.map((note) => element("p", {}, note)));
    host.append(element("div", { class: "walk-head" }, this.choice.group, this.time), this.title, this.sweep, map);
    this.source = new SourceText(host);
    host.append(this.where, this.says, this.values, notes);
  }

  buildTransport() {
    const picture = (path) => { const svg = drawn("svg", { viewBox: "0 0 18 18", width: "15", height: "15" }, drawn("path", { d: path })); return svg; };
    const button = (path, title, act) => element("button", { type: "button", title, "aria-label": title.replace(/ \(.*/, ""), onclick: act }, picture(path));
    this.play = button(ICONS.play, "Play the lines", () => this.toggle());
    this.play.classList.add("primary");
    this.progress = element("input", { type: "range", min: "0", max: "1", step: "1", value: "0", "aria-label": "Current line" });
    this.progress.addEventListener("input", () => { this.stop(); this.go(Number(this.progress.value)); });
    this.count = element("output", {});
    this.speed = element("select", { class: "small", "aria-label": "Lines a second", title: "Lines a second" },
      ...[1, 3, 10, 30, 100].map((speed) => element("option", { value: String(speed), ...(speed === 3 ? { selected: "" } : {}) }, `${speed}/s`)));
    this.speed.addEventListener("change", () => { if (this.timer) { this.stop(); this.toggle(); } });
    const by = (way) => () => { this.stop(); this.go(this.step + way); };
    const byBody = (way) => () => { this.stop(); if (this.recording) this.go(this.recording.neighbour(this.step, way)); };
    const { shortcuts } = this.page;
    const when = (act) => () => { if (!this.host.hidden) act(); };
    shortcuts.add(",", "Algorithms: one line back", when(by(-1)));
    shortcuts.add(".", "Algorithms: one line forward", when(by(1)));
    shortcuts.add("<", "Algorithms: one body back", when(byBody(-1)));
    shortcuts.add(">", "Algorithms: one body forward", when(byBody(1)));
    return [element("div", { class: "progress" }, this.progress, this.count), element("div", { class: "transport" },
      button(WALK_ICONS.body.back, "One body back (<)", byBody(-1)), button(WALK_ICONS.line.back, "One line back (,)", by(-1)), this.play,
      button(WALK_ICONS.line.on, "One line forward (.)", by(1)), button(WALK_ICONS.body.on, "One body forward (>)", byBody(1)), this.speed)];
  }

  // The panel comes and goes; the scene shows another state; another part lights bodies.
  watch() {
    new MutationObserver(() => { if (this.host.hidden) this.leave(); }).observe(this.host, { attributes: true, attributeFilter: ["hidden"] });
    new MutationObserver(() => { if (this.recording && !this.host.hidden) this.matrix.show(this.step); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const { overlays, selection } = this.page;
    overlays.on.walk = true;
    overlays.built.walk = { visible: true, move: () => this.move() };
    selection.onSelect(({ body }) => { if (body && !this.host.hidden) this.goToBody(body); });
    selection.onHover((body) => { if (body === null && !this.host.hidden && this.recording) this.light(); });
  }

  open() {
    if (this.recording) this.go(this.step);
    else this.openAlgorithm(this.key);
  }

  async openAlgorithm(key) {
    this.stop();
    if (this.recording) this.places.set(this.key, this.step);
    this.key = key;
    const { walk } = this.page.data;
    const algorithm = walk.algorithms.find((algorithm) => algorithm.key === key);
    this.opening ??= Promise.all([WalkProgram.open(walk.program), WalkInputs.open(this.page)]);
    [this.program, this.inputs] = await this.opening;
    if (!this.recordings.has(key)) this.recordings.set(key, Recording.open(walk, algorithm, this.program));
    const recording = await this.recordings.get(key);
    if (this.key !== key) return;
    this.recording = recording;
    this.title.replaceChildren(element("b", {}, algorithm.title), ` ${algorithm.gives}`);
    this.source.open(algorithm.listings);
    this.progress.max = String(recording.count - 1);
    this.matrix.open(recording);
    this.drawing.open(recording);
    const { selection } = this.page, begin = recording.begins[0] ?? 0;
    this.go(this.places.get(key) ?? (selection.body ? recording.of(selection.body, begin) : null) ?? begin);
  }

  leave() {
    this.stop();
    this.forget();
    this.drawing.clear();
    this.page.stage.light(new Set());
  }

  toggle() {
    if (this.timer) { this.stop(); return; }
    if (!this.recording) return;
    if (this.step >= this.recording.count - 1) this.go(0);
    this.timer = setInterval(() => { if (this.step < this.recording.count - 1) this.go(this.step + 1); else this.stop(); }, 1000 / Number(this.speed.value));
    this.paintPlay("pause", "Pause");
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.paintPlay("play", "Play the lines");
  }

  paintPlay(name, title) {
    this.play.firstChild.firstChild.setAttribute("d", ICONS[name]);
    this.play.title = title;
    this.play.setAttribute("aria-label", title);
  }

  goToBody(body) {
    const step = this.recording ? this.recording.of(body, this.step) : null;
    if (step !== null) { this.stop(); this.go(step); }
  }

  // The scene shows another state: arrows and box follow at once, the numbers some times a second.
  move() {
    this.stale = true;
    if (this.host.hidden || !this.recording) return;
    this.update();
    this.seen = this.recording.seen(this.step);
    this.drawing.show(this.seen);
    const wait = this.looked + WALK_PAUSE - performance.now();
    if (wait <= 0) this.write();
    else this.look ??= setTimeout(() => this.write(), wait);
  }

  // Takes the program for the state that the scene shows, if that has changed.
  update() {
    if (!this.stale || !this.page.motion.count) return;
    const { time, flat } = this.inputs.now();
    this.program.run(flat);
    this.state = flat;
    this.stale = false;
    this.changed = true;
    const live = this.page.motion === this.page.run?.motion ? ", live" : "";
    this.when = time === null ? "this pose, at rest" : `${time.toFixed(3)} s${live}`;
  }

  // What the line at work read and wrote, in numbers, and the matrix.
  write() {
    this.forget();
    this.looked = performance.now();
    this.time.replaceChildren(element("span", { class: "soft" }, "numbers of "), this.when);
    this.showValues();
    this.matrix.show(this.step, this.changed);
    this.changed = false;
  }

  // No look at the numbers is due.
  forget() {
    clearTimeout(this.look);
    this.look = null;
  }

  go(step) {
    const { recording } = this;
    if (!recording) return;
    this.step = Math.min(Math.max(step, 0), recording.count - 1);
    const { algorithm } = recording;
    const form = recording.form(this.step);
    this.bodies = recording.bodies(this.step);
    this.update();
    this.seen = recording.seen(this.step);
    this.progress.value = String(this.step);
    this.progress.style.setProperty("--done", `${(100 * this.step) / Math.max(recording.count - 1, 1)}%`);
    const whole = (x) => x.toLocaleString("en-US").replace(/,/g, " ");
    this.count.textContent = `${whole(this.step + 1)} / ${whole(recording.count)}${algorithm.whole ? "" : "…"}`;
    this.count.title = algorithm.whole ? "Current line, of all lines" : "The algorithm is longer; only its first lines are included";
    this.source.mark(form);
    this.showSweep(form, algorithm);
    this.showIndices(algorithm, form);
    this.write();
    this.values.scrollTop = 0;
    this.drawing.show(this.seen);
    this.light();
  }

  showSweep(form, algorithm) {
    const number = form.sweep;
    const done = new Set();
    if (number >= 0) for (const [body, first] of this.recording.first[number]) if (first <= this.step) done.add(body);
    this.tree.show(done, this.bodies[0], this.bodies.slice(1).find((body) => body !== null) ?? null);
    if (number < 0) {
      this.sweep.replaceChildren(element("b", {}, "Before and after the passes"));
      return;
    }
    const sweep = algorithm.sweeps[number];
    const way = sweep.outward ? "outward, root to tips →" : "← inward, tips to root";
    this.sweep.replaceChildren(element("b", {}, `Pass ${number + 1} of ${algorithm.sweeps.length}`), element("span", { class: `way ${sweep.outward ? "outward" : "inward"}` }, way),
      element("span", { class: "soft" }, `${done.size} of ${this.names.length - 1}`), element("p", {}, sweep.title));
  }

  showIndices(algorithm, form) {
    const indices = this.recording.indices(this.step), second = indices.findIndex((index, k) => k && index !== null);
    const parts = algorithm.indices.flatMap((name, k) => {
      if (indices[k] === null) return [];
      return [element("span", { class: k === 0 ? "first" : k === second ? "second" : "third" }, element("i", {}, name), ` = ${indices[k]} ${this.names[this.bodies[k]]}`)];
    });
    this.says.textContent = form.says;
    this.where.replaceChildren(element("span", { class: "soft" }, `line ${form.line}`), ...parts);
  }

  showValues() {
    const { rows, from } = this.recording;
    const block = (one) => {
      const { letter } = one;
      const units = unitsOf(letter, one, rows, this.joints);
      const whose = one.cell ? `(${one.cell[0] + from}${one.cell[1] < rows.length ? `, ${one.cell[1] + from}` : ""})` : one.body === null ? "" : this.names[one.body];
      return element("div", { class: `value-of ${letter.out ? "out" : "in"} ${one.kind}` },
        element("div", { class: "value-head" }, symbolOf(letter), element("span", { class: "whose" }, whose), element("span", { class: "soft" }, letter.meaning)),
        element("div", { class: "value-parts" }, ...valueBlocks(one.kind, one.numbers, units)));
    };
    const out = this.seen.filter((one) => one.letter.out), read = this.seen.filter((one) => !one.letter.out);
    const group = (label, list) => {
      const entries = list.filter((one) => one.cell), together = label !== "reads" && entries.length > 1;
      const single = together ? list.filter((one) => !one.cell) : list;
      return list.length ? [element("h2", {}, label), ...single.map(block), ...(together ? [entryBlock(entries, this.recording.from)] : [])] : [];
    };
    this.values.replaceChildren(...(this.seen.length ? [...group("writes", out), ...group("reads", read)] : group("written before", this.before())));
  }

  // What the line that wrote last wrote: shown while a line reads and writes nothing.
  before() {
    for (let step = this.step - 1; step > Math.max(this.step - 9, 0); step--) {
      const out = this.recording.seen(step).filter((one) => one.letter.out);
      if (out.length) return out;
    }
    return [];
  }

  light() {
    const [body] = this.bodies, other = this.bodies.slice(1).find((each) => each !== null) ?? null;
    const composite = this.seen.some((one) => one.letter.symbol === "I^c" || one.letter.symbol === "F");
    this.drawing.light(body, other === body ? null : other, composite && body !== null ? this.page.structure.under[body] : []);
  }
}
