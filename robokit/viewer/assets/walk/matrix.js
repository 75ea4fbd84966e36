// The matrix that an algorithm fills, entry by entry: H for the CRBA, L for the factorisation.

class WalkMatrix {
  constructor(host) {
    this.canvas = element("canvas", { class: "walk-matrix" });
    this.note = element("p", { class: "note" });
    this.host = element("div", { class: "matrix-side" }, this.canvas, this.note);
    host.append(this.host);
    this.canvas.addEventListener("pointermove", (event) => {
      const edge = this.canvas.getBoundingClientRect();
      const [i, j] = [(event.clientY - edge.top) / edge.height, (event.clientX - edge.left) / edge.width].map((x) => Math.min(this.n - 1, Math.max(0, Math.floor(this.n * x))));
      this.pointed = [i, j];
      this.say(i, j);
    });
    this.canvas.addEventListener("pointerleave", () => { this.pointed = null; this.say(...(this.last || [null])); });
  }

  open(recording) {
    this.recording = recording;
    this.letter = recording.algorithm.matrix;
    this.host.hidden = !this.letter;
    this.n = recording.rows.length;
    this.values = new Float64Array(this.n * this.n);
    this.written = new Uint8Array(this.n * this.n);
    this.reset();
  }

  reset() {
    this.done = 0;
    this.step = -1;
    this.values.fill(0);
    this.written.fill(0);
    this.last = null;
  }

  // Goes to a step; backwards, and where the numbers have changed, by filling anew, which takes less than a frame.
  show(step, anew = false) {
    if (!this.letter) return;
    if (anew || step < this.step) this.reset();
    const { entries } = this.recording;
    while (this.done < entries.length && entries[this.done][0] <= step) this.apply(entries[this.done++]);
    this.step = step;
    this.fresh = [];
    this.read = [];
    for (const one of this.recording.seen(step)) {
      if (one.cell) (one.letter.out ? this.fresh : this.read).push(one.cell);
    }
    if (this.fresh.length) this.last = this.fresh[0];
    this.draw();
    this.say(...(this.pointed || this.last || [null]));
  }

  apply([, row, column, at]) {
    if (row < 0) {
      for (let k = 0; k < this.values.length; k++) this.values[k] = this.recording.number(at + k);
      this.written.fill(0);
      return;
    }
    const value = this.recording.number(at);
    this.put(row, column, value);
    if (this.letter === "H") this.put(column, row, value);
    this.last = [row, column];
  }

  put(i, j, value) {
    this.values[i * this.n + j] = value;
    this.written[i * this.n + j] = 1;
  }

  draw() {
    const { n } = this, ratio = Math.min(window.devicePixelRatio || 1, 2);
    const side = Math.round((this.canvas.clientWidth || 116) * ratio);
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const pen = this.canvas.getContext("2d"), cell = side / n, gap = cell > 4 ? 1 : 0;
    const logs = [...this.values].filter((x) => x && Number.isFinite(x)).map((x) => Math.log10(Math.abs(x)));
    const high = Math.max(...logs, -30), low = Math.max(Math.min(...logs, high - 1), high - 8);
    const box = (i, j) => [Math.round(j * cell), Math.round(i * cell), Math.max(1, Math.round((j + 1) * cell) - Math.round(j * cell) - gap), Math.max(1, Math.round((i + 1) * cell) - Math.round(i * cell) - gap)];
    pen.fillStyle = colour("zero");
    pen.fillRect(0, 0, side, side);
    const [full, fresh, read] = [colour("potential"), colour("two"), colour("accent")];
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const value = this.values[i * n + j], wrote = this.written[i * n + j];
        if (!value && !wrote) continue;
        const size = value ? Math.min(1, Math.max(0, (Math.log10(Math.abs(value)) - low) / (high - low))) : 0;
        pen.globalAlpha = (wrote ? 1 : 0.45) * (0.3 + 0.7 * size);
        pen.fillStyle = full;
        pen.fillRect(...box(i, j));
      }
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 1.5 * ratio;
    const rows = (cells) => cells.flatMap(([i, j]) => (j < n ? [[i, j]] : Array.from({ length: n }, (_, k) => [i, k])));
    pen.strokeStyle = read;
    for (const [i, j] of rows(this.read)) pen.strokeRect(...box(i, j));
    pen.fillStyle = fresh;
    for (const [i, j] of rows(this.fresh)) {
      pen.fillRect(...box(i, j));
      if (this.letter === "H" && i !== j) { pen.globalAlpha = 0.5; pen.fillRect(...box(j, i)); pen.globalAlpha = 1; }
    }
  }

  say(i, j = 0) {
    if (i === null) { this.note.textContent = `${this.letter}, ${this.n} × ${this.n}`; return; }
    const k = Math.min(j, this.n - 1), { from } = this.recording;
    const text = four(this.values[i * this.n + k], largestOf(this.values));
    this.note.textContent = `${this.letter}(${i + from},${k + from}) ${text.startsWith("≈") ? "" : "= "}${text}`;
  }
}
