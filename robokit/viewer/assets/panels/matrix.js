// The mass matrix and its factors: values or patterns, joints named on the axes, zeros outlined by branches.

const DECADES = 6;
const NAME_ROOM = 10.5;

class MatrixView {
  // act: { light(ends, way), choose(body, dof), values() -> n x n numbers at the time shown, or null for patterns }
  constructor(host, data, branches, act) {
    Object.assign(this, { data, branches, act });
    this.n = data.structure.n;
    this.pattern = bits(data.structure.pattern, this.n * this.n);
    this.cholesky = bits(data.structure.cholesky, this.n * this.n);
    this.blocks = zeroBlocks(this.pattern, this.n);
    this.kind = "H";
    this.at = this.held = this.lit = this.pointed = this.numbers = this.scale = null;
    this.chosen = new Set();
    this.canvas = element("canvas", { class: "matrix", tabindex: "0", role: "application", "aria-roledescription": "matrix", "aria-label": `${this.n} by ${this.n}: arrow keys move between cells, Enter selects` });
    this.names = { left: element("div", { class: "names left", "aria-hidden": "true" }), top: element("div", { class: "names top", "aria-hidden": "true" }) };
    this.legend = element("div", { class: "scale" });
    this.cell = element("p", { class: "cell", "aria-live": "polite" });
    host.append(element("div", { class: "axes" }, this.names.top, this.names.left, this.canvas), this.legend, this.cell);
    this.canvas.addEventListener("pointermove", (event) => this.point(event, false));
    this.canvas.addEventListener("pointerleave", () => this.move(this.held));
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.move(this.held));
    this.tell();
  }

  show(kind) {
    this.kind = kind;
    this.tell();
    this.draw();
  }

  // 0 zero, 1 entry, 2 fill-in
  value(i, j) {
    const k = i * this.n + j;
    if (this.kind === "H") return this.pattern[k];
    if (j > i) return 0;
    return this.kind === "ltdl" || this.pattern[k] ? this.pattern[k] : 2 * this.cholesky[k];
  }

  // ---- the picture ----------------------------------------------------------------------------

  layout() {
    const wide = this.canvas.closest(".card").clientWidth - 28, panel = this.canvas.closest(".panel");
    const high = panel ? panel.clientHeight : 900;
    const side = Math.floor(Math.max(140, Math.min(320, wide - 110, 0.35 * high)));
    const { style, classList } = this.canvas.closest(".matrix-view");
    style.setProperty("--names", `${Math.min(140, wide - side)}px`);
    style.setProperty("--side", `${side}px`);
    // Where there is little room, the columns have numbers alone; the rows have the same names.
    this.tall = high > 760;
    classList.toggle("tall", this.tall);
    return side;
  }

  draw() {
    if (!this.canvas.offsetParent || !this.n) return;
    const room = this.layout(), { n } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const side = Math.round(room * ratio);
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    this.pen = this.canvas.getContext("2d");
    this.step = side / n;
    this.gap = this.step > 5 ? 1 : 0;
    this.pen.fillStyle = colour("zero");
    this.pen.fillRect(0, 0, side, side);
    this.numbers = this.kind === "H" ? this.act.values() : null;
    if (this.numbers) this.drawValues();
    else this.drawPattern();
    if (this.kind === "H") this.drawBlocks();
    this.drawMarks(side, ratio);
    this.drawNames(room);
    this.drawLegend();
  }

  fill(i, j) {
    const { step, gap } = this, x = Math.round(j * step), y = Math.round(i * step);
    this.pen.fillRect(x, y, Math.max(1, Math.round((j + 1) * step) - x - gap), Math.max(1, Math.round((i + 1) * step) - y - gap));
  }

  drawPattern() {
    const tints = [null, colour("potential"), colour("fill")];
    for (let i = 0; i < this.n; i++) {
      for (let j = 0; j < this.n; j++) {
        const value = this.value(i, j);
        if (!value) continue;
        this.pen.fillStyle = tints[value];
        this.fill(i, j);
      }
    }
  }

  // Colour by the logarithm. The scale holds from the first picture on, and only ever grows.
  drawValues() {
    const { n, numbers } = this;
    let low = Infinity, high = 0;
    for (let k = 0; k < n * n; k++) {
      const size = Math.abs(numbers[k]);
      if (this.pattern[k] && size > high) high = size;
      if (this.pattern[k] && size > 0 && size < low) low = size;
    }
    if (high > 0) {
      const top = Math.max(Math.ceil(Math.log10(high)), this.scale ? this.scale.top : -Infinity);
      const foot = Math.max(Math.min(Math.floor(Math.log10(low)), top - 1), top - DECADES);
      this.scale = { top, foot: this.scale ? Math.max(Math.min(foot, this.scale.foot), top - DECADES) : foot };
    }
    const { top, foot } = this.scale || { top: 0, foot: -1 };
    const tints = ramp([colour("h-low"), colour("h-middle"), colour("h-high")], 48);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const k = i * n + j;
        if (!this.pattern[k]) continue;
        const share = (Math.log10(Math.abs(numbers[k])) - foot) / (top - foot);
        this.pen.fillStyle = tints[Math.round(47 * Math.min(Math.max(share, 0), 1))];
        this.fill(i, j);
      }
    }
  }

  // Lines round every block of zeros: two branches that part at the same body.
  drawBlocks() {
    const { n, blocks, step, pen } = this;
    const label = (i, j) => (i < 0 || j < 0 || i >= n || j >= n ? -1 : blocks[i * n + j]);
    const own = this.at && !this.pattern[this.at[0] * n + this.at[1]] ? label(...this.at) : -2;
    for (const marked of [false, true]) {
      pen.strokeStyle = colour(marked ? "accent" : "faint");
      pen.lineWidth = marked ? 2 * Math.min(window.devicePixelRatio || 1, 2) : 1;
      pen.beginPath();
      for (let i = 0; i <= n; i++) {
        for (let j = 0; j <= n; j++) {
          const here = label(i, j), above = label(i - 1, j), left = label(i, j - 1);
          const edge = (a, b) => a !== b && (marked ? a === own || b === own : a >= 0 || b >= 0);
          const x = Math.round(j * step) - 0.5, y = Math.round(i * step) - 0.5;
          if (edge(here, above)) { pen.moveTo(x, y); pen.lineTo(Math.round((j + 1) * step) - 0.5, y); }
          if (edge(here, left)) { pen.moveTo(x, y); pen.lineTo(x, Math.round((i + 1) * step) - 0.5); }
        }
      }
      pen.stroke();
      if (own === -2) break;
    }
  }

  drawMarks(side, ratio) {
    const { pen, step, n } = this, { owner } = this.branches;
    const band = (k) => { pen.fillRect(0, k * step, side, step); pen.fillRect(k * step, 0, step, side); };
    // The body pointed at, and faintly what hangs on it.
    const [strong, faint] = [24, 7].map((share) => `color-mix(in srgb, ${colour("accent")} ${share}%, transparent)`);
    for (let k = 0; k < n && this.lit; k++) {
      if (!this.lit.has(owner[k])) continue;
      pen.fillStyle = owner[k] === this.pointed ? strong : faint;
      band(k);
    }
    pen.fillStyle = `color-mix(in srgb, ${colour("chosen")} 34%, transparent)`;
    for (let k = 0; k < n; k++) if (this.chosen.has(owner[k])) band(k);
    if (!this.at) return;
    const [i, j] = this.at;
    pen.fillStyle = `color-mix(in srgb, ${colour("accent")} 22%, transparent)`;
    pen.fillRect(0, i * step, side, step);
    pen.fillRect(j * step, 0, step, side);
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(j * step, i * step, Math.max(step - this.gap, 2), Math.max(step - this.gap, 2));
  }

  // As many names as fit; those of the joints pointed at and selected come first.
  drawNames(room) {
    const { n } = this, { joints, owner } = this.branches;
    const row = room / n, marked = new Set([...(this.at || []).map((k) => owner[k]), ...this.chosen]);
    const key = [row, this.tall, this.at, ...this.chosen].join();
    if (key === this.named) return;
    this.named = key;
    const middle = (joint) => 0.5 * (joint.v[0] + joint.v[1]) * row;
    const rows = [...joints.values()].filter((joint) => joint.v[1] > joint.v[0]);
    rows.sort((a, b) => marked.has(b.body) - marked.has(a.body) || a.body - b.body);
    for (const side of ["left", "top"]) {
      const bare = side === "top" && !this.tall, shown = [];
      for (const joint of rows) {
        if (shown.every((other) => Math.abs(middle(other) - middle(joint)) >= (bare ? 1.7 : 1) * NAME_ROOM)) shown.push(joint);
      }
      this.names[side].replaceChildren(...shown.map((joint) => {
        const name = element("span", { class: marked.has(joint.body) ? "marked" : "", title: joint.name }, element("i", {}, String(joint.body)), bare ? "" : shortName(joint.name));
        name.style[side === "left" ? "top" : "left"] = `${middle(joint)}px`;
        return name;
      }));
    }
  }

  drawLegend() {
    const { scale, n } = this, key = [this.kind, Boolean(this.numbers), scale && scale.top, scale && scale.foot].join();
    if (key === this.told) return;
    this.told = key;
    this.legend.replaceChildren();
    this.legend.classList.toggle("patterns", !this.numbers);
    const patch = (tint, text) => element("span", { class: `patch ${tint}` }, text);
    if (this.numbers && scale) {
      let sliding = 0;
      for (let k = 0; k < n; k++) sliding += this.branches.slides(k);
      const unit = sliding === 0 ? "kg m²" : sliding === n ? "kg" : "kg m², kg m or kg";
      const power = (x) => `10${superscript(x)}`;
      this.legend.append(element("span", {}, power(scale.foot)), element("span", { class: "bar", title: "Colours show the logarithm of the size of an entry" }), element("span", {}, power(scale.top)), element("span", { class: "unit" }, unit), patch("zero", "zero"));
    } else {
      this.legend.append(patch("entry", "entry"), ...(this.kind === "cholesky" ? [patch("filled", "fill-in")] : []), patch("zero", "zero"));
    }
  }

  // ---- the cell -------------------------------------------------------------------------------

  point(event, hold) {
    const edge = this.canvas.getBoundingClientRect();
    const index = (offset, length) => Math.min(this.n - 1, Math.max(0, Math.floor((this.n * offset) / length)));
    const at = [index(event.clientY - edge.top, edge.height), index(event.clientX - edge.left, edge.width)];
    if (hold) this.hold(this.held && this.held.join() === at.join() ? null : at);
    else if (!this.at || this.at.join() !== at.join()) this.move(at);
  }

  // A held cell stays when the pointer leaves; its row's joint is selected.
  hold(at) {
    this.held = at;
    this.act.choose(at && this.branches.owner[at[0]], at && at[0]);
    this.held = at;
    this.move(at);
  }

  move(at) {
    this.at = at;
    this.tell();
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [i, j] = this.at || this.held || [0, 0], last = this.n - 1;
    const to = { ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1], Home: [i, 0], End: [i, last], PageUp: [0, j], PageDown: [last, j] }[event.key];
    if (!to && event.key !== "Enter" && event.key !== " ") return;
    // These keys move the timeline elsewhere.
    event.preventDefault();
    event.stopPropagation();
    if (!to) this.hold(this.held && this.held.join() === [i, j].join() ? null : [i, j]);
    else this.move(this.at ? to.map((k) => Math.min(Math.max(k, 0), last)) : [i, j]);
  }

  // Names the cell and lights the way between its joints.
  tell() {
    if (!this.at) {
      this.cell.replaceChildren(this.n ? "Point at a cell to see its two joints. Click to hold it and select the joint of its row." : "Nothing moves: H is empty.");
      this.act.light(new Set(), new Set());
      return;
    }
    const [i, j] = this.at, { owner } = this.branches;
    const symbol = this.kind === "H" ? "H" : "L";
    const title = `${symbol}(${this.branches.dofNumber(i)}, ${this.branches.dofNumber(j)})`;
    this.number = element("span", { class: "entry" });
    this.cell.replaceChildren(element("b", {}, `${title}  ${this.branches.dofName(i)} × ${this.branches.dofName(j)}`), element("br"), this.number, this.reason(i, j));
    this.numbers = this.kind === "H" ? this.act.values() : null;
    this.tellEntry();
    this.act.light(new Set([owner[i], owner[j]]), this.branches.between(owner[i], owner[j]));
  }

  // The number in the cell, with its unit; it changes with the time.
  tellEntry() {
    if (!this.at || !this.numbers) return;
    const [i, j] = this.at;
    if (this.value(i, j)) this.number.textContent = `${figure(this.numbers[i * this.n + j], 4)} ${this.branches.unit(i, j)}  `;
  }

  reason(i, j) {
    const upper = Math.max(i, j), lower = Math.min(i, j), { owner } = this.branches;
    const name = (body) => this.data.bodies.name[body];
    const part = () => `${name(owner[lower])} and ${name(owner[upper])} part at ${name(this.branches.meet(owner[i], owner[j]))}`;
    const value = this.value(i, j);
    if (value === 2) return `filled in by elimination, zero in H: ${part()}`;
    if (this.kind !== "H" && j > i) return "above the diagonal";
    if (!value) return `zero, neither carries the other: ${part()}`;
    return i === j ? "what the joint itself carries" : `${this.branches.dofName(lower)} carries ${this.branches.dofName(upper)}`;
  }
}

// So many colours evenly between the given ones (#rrggbb).
function ramp(stops, count) {
  const parts = stops.map((stop) => [1, 3, 5].map((k) => parseInt(stop.slice(k, k + 2), 16)));
  return Array.from({ length: count }, (_, k) => {
    const at = (k * (stops.length - 1)) / (count - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return `rgb(${parts[low].map((x, c) => Math.round(x + (at - low) * (parts[low + 1][c] - x))).join()})`;
  });
}
