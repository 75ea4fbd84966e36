// The tree with its sets, and the patterns of the mass matrix and of its factors.

class Structure {
  constructor(host, data, act) {
    this.data = data;
    this.act = act;
    this.n = data.structure.n;
    this.pattern = bits(data.structure.pattern, this.n * this.n);
    this.cholesky = bits(data.structure.cholesky, this.n * this.n);
    this.kind = "H";
    this.held = null;
    this.joints = new Map(data.joints.map((joint) => [joint.body, joint]));
    this.owner = new Int32Array(this.n);
    for (const joint of data.joints) for (let k = joint.v[0]; k < joint.v[1]; k++) this.owner[k] = joint.body;
    this.addSets();
    this.addTree(host);
    this.addMatrix(host);
  }

  addSets() {
    const { parent } = this.data.bodies;
    this.children = parent.map(() => []);
    this.under = parent.map((_, i) => [i]);
    for (let i = parent.length - 1; i > 0; i--) {
      this.children[parent[i]].unshift(i);
      this.under[parent[i]].push(...this.under[i]);
    }
    this.under.forEach((set) => set.sort((a, b) => a - b));
    this.depth = parent.map((p) => 0);
    for (let i = 1; i < parent.length; i++) this.depth[i] = this.depth[parent[i]] + 1;
  }

  addTree(host) {
    const rows = element("div", { id: "tree-rows" });
    this.rows = this.data.bodies.name.map((name, i) => {
      const joint = this.joints.get(i);
      const dofs = joint ? (joint.v[1] - joint.v[0] === 1 ? `${joint.kind}` : `${joint.kind}, ${joint.v[1] - joint.v[0]} dof`) : this.data.robot.base === "fixed" ? "fixed root" : "";
      const indent = element("span", { class: "branch" });
      indent.style.width = `${Math.min(this.depth[i], 14) * 10}px`;
      indent.style.flex = "none";
      const row = element("div", { class: "row" }, element("span", { class: "number" }, String(i)), indent, element("span", { class: "body", title: joint ? `${name}, moved by ${joint.name}` : name }, name), element("span", { class: "dofs" }, dofs));
      row.addEventListener("pointerenter", () => this.act.hover(i));
      row.addEventListener("pointerleave", () => this.act.hover(null));
      rows.append(row);
      return row;
    });
    this.sets = element("div", { id: "sets" });
    host.append(element("section", { class: "card", id: "tree-card" }, element("header", {}, element("h2", {}, "Tree"), element("span", { class: "unit" }, `${this.data.robot.bodies} ${this.data.robot.bodies === 1 ? "body" : "bodies"}, ${this.n} dof`)), rows, this.sets));
    this.showSets(null);
  }

  addMatrix(host) {
    this.canvas = element("canvas", { id: "matrix" });
    this.cell = element("p", { id: "cell" });
    this.figures = element("dl", { class: "figures" });
    const kinds = choice([["H", "H"], ["ltdl", "L of LᵀDL"], ["cholesky", "L of Cholesky"]], "H", (key) => { this.kind = key; this.draw(); this.showFigures(); });
    host.append(element("section", { class: "card", id: "matrix-card" }, element("header", {}, element("h2", {}, "Mass matrix"), kinds.group), element("div", { class: "matrix" }, this.canvas, this.figures), this.cell));
    this.canvas.addEventListener("pointermove", (event) => this.point(event, false));
    this.canvas.addEventListener("pointerleave", () => { this.at = this.held; this.tell(); });
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    this.showFigures();
    this.at = null;
    this.tell();
  }

  showFigures() {
    const { counts } = this.data.structure;
    const row = (label, text) => element("div", {}, element("dt", {}, label), element("dd", {}, text));
    const whole = (x) => x.toLocaleString("en-US").replace(/,/g, " ");
    const times = (a, b) => (b ? `${figure(a / b, 2)}×` : "–");
    const rows = {
      H: () => [row("zeros in H", `${Math.round(100 * counts.zeros_share)} %  (${whole(counts.zeros)} of ${whole(counts.entries)})`), row("factorise, tree / dense", `${whole(counts.factorise)} / ${whole(counts.factorise_dense)}`), row("fewer multiply-adds", times(counts.factorise_dense, counts.factorise)), row("solve, tree / dense", `${whole(counts.solve)} / ${whole(counts.solve_dense)}`), row("fewer multiply-adds", times(counts.solve_dense, counts.solve))],
      ltdl: () => [row("fill-in", "none"), row("factorise", whole(counts.factorise)), row("solve", whole(counts.solve)), row("against dense", times(counts.factorise_dense, counts.factorise))],
      cholesky: () => [row("fill-in", `${whole(counts.fill)} entries`), row("factorise", whole(counts.cholesky_factorise)), row("solve", whole(counts.cholesky_solve)), row("LᵀDL instead", `${times(counts.cholesky_factorise, counts.factorise)} fewer`)],
    };
    this.figures.replaceChildren(...rows[this.kind]());
  }

  draw() {
    const room = Math.max(150, Math.min(260, this.canvas.parentElement.clientWidth - 165));
    const ratio = Math.min(window.devicePixelRatio || 1, 2), n = this.n;
    Object.assign(this.canvas.style, { width: `${room}px`, height: `${room}px` });
    const side = (this.canvas.width = this.canvas.height = Math.round(room * ratio));
    const pen = this.canvas.getContext("2d");
    const step = side / n, gap = step > 5 ? 1 : 0;
    pen.fillStyle = colour("zero");
    pen.fillRect(0, 0, side, side);
    const [full, fill, accent] = [colour("potential"), colour("fill"), colour("text")];
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const value = this.value(i, j);
        if (!value) continue;
        pen.fillStyle = value === 2 ? fill : full;
        const x = Math.round(j * step), y = Math.round(i * step);
        pen.fillRect(x, y, Math.max(1, Math.round((j + 1) * step) - x - gap), Math.max(1, Math.round((i + 1) * step) - y - gap));
      }
    }
    pen.fillStyle = `color-mix(in srgb, ${colour("accent")} 28%, transparent)`;
    if (this.lit) for (let k = 0; k < n; k++) if (this.lit.has(this.owner[k])) pen.fillRect(0, k * step, side, step);
    if (!this.at) return;
    const [i, j] = this.at;
    pen.fillRect(0, i * step, side, step);
    pen.fillRect(j * step, 0, step, side);
    pen.strokeStyle = accent;
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(j * step, i * step, Math.max(step - gap, 2), Math.max(step - gap, 2));
  }

  // 0 zero, 1 entry, 2 fill-in
  value(i, j) {
    const k = i * this.n + j;
    if (this.kind === "H") return this.pattern[k];
    if (j > i) return 0;
    return this.kind === "ltdl" || this.pattern[k] ? this.pattern[k] : 2 * this.cholesky[k];
  }

  point(event, hold) {
    const edge = this.canvas.getBoundingClientRect();
    const index = (offset, length) => Math.min(this.n - 1, Math.max(0, Math.floor((this.n * offset) / length)));
    this.at = [index(event.clientY - edge.top, edge.height), index(event.clientX - edge.left, edge.width)];
    if (hold) this.held = this.held && this.held.join() === this.at.join() ? null : this.at;
    this.tell();
  }

  // Names the cell and lights the path that makes it non-zero.
  tell() {
    this.draw();
    if (!this.at) {
      this.cell.replaceChildren("Point at a cell: it names its two joints. A click holds it.");
      this.act.light(new Set());
      return;
    }
    const [i, j] = this.at;
    const upper = Math.max(i, j), lower = Math.min(i, j);
    const value = this.value(i, j);
    const symbol = this.kind === "H" ? "H" : "L";
    const why = i === j ? "a joint with itself" : value === 2 ? "zero in H, filled in by elimination" : value ? `${this.dofName(lower)} carries ${this.dofName(upper)}` : this.kind !== "H" && j > i ? "above the diagonal" : "zero: neither carries the other";
    this.cell.replaceChildren(element("b", {}, `${symbol}(${i + 1}, ${j + 1})  ${this.dofName(i)} × ${this.dofName(j)}`), element("br"), why);
    this.act.light(new Set([...this.support(this.owner[i]), ...this.support(this.owner[j])].filter((b) => {
      const both = this.support(this.owner[i]).has(b) && this.support(this.owner[j]).has(b);
      return !both || b === this.owner[lower] || b === this.owner[upper];
    })));
  }

  dofName(k) {
    const joint = this.joints.get(this.owner[k]);
    if (joint.v[1] - joint.v[0] === 1) return joint.name;
    const part = joint.kind === "floating" ? ["ωx", "ωy", "ωz", "vx", "vy", "vz"][k - joint.v[0]] : k - joint.v[0] + 1;
    return `${joint.name} ${part}`;
  }

  support(body) {
    const path = new Set();
    for (let b = body; b > 0; b = this.data.bodies.parent[b]) path.add(b);
    return path;
  }

  // A body is pointed at, here or in the joint list: its subtree is lit.
  highlight(body) {
    this.lit = body === null ? null : new Set(this.under[body]);
    this.rows.forEach((row, i) => {
      row.classList.toggle("lit", i === body);
      row.classList.toggle("under", Boolean(this.lit && i !== body && this.lit.has(i)));
    });
    this.showSets(body);
    this.draw();
  }

  showSets(body) {
    if (body === null) {
      this.sets.replaceChildren("Point at a body: λ its parent, μ its children, ν its subtree.");
      return;
    }
    const set = (members) => (members.length ? `{${ranges(members)}}` : "{}");
    const parent = this.data.bodies.parent[body];
    this.sets.replaceChildren(element("b", {}, `${body}  ${this.data.bodies.name[body]}`), element("br"), `λ = ${parent < 0 ? "none" : parent}   μ = ${set(this.children[body])}   ν = ${set(this.under[body])}`);
  }
}

// 3, 4, 5, 9 as "3–5, 9"
function ranges(numbers) {
  const parts = [];
  for (let k = 0; k < numbers.length; ) {
    let end = k;
    while (end + 1 < numbers.length && numbers[end + 1] === numbers[end] + 1) end++;
    parts.push(end > k + 1 ? `${numbers[k]}–${numbers[end]}` : numbers.slice(k, end + 1).join(", "));
    k = end + 1;
  }
  return parts.join(", ");
}
