// The tree with its sets, the mass matrix with its factors, and what the algorithms cost.

class Structure {
  // act: { hover(body), choose(body, dof), light(bodies, ends), values() }; a page without a scene leaves out what it has not.
  constructor(host, data, act, branches = new Branches(data)) {
    this.data = data;
    this.act = act;
    this.branches = branches;
    this.under = branches.under;
    this.lit = new Set();
    const { robot } = data, n = data.structure.n;
    const tree = element("section", { class: "card tree-card" }, element("header", {}, element("h2", {}, "Tree"), element("span", { class: "unit" }, `${robot.bodies} ${robot.bodies === 1 ? "body" : "bodies"}, ${n} dof`)));
    this.tree = new TreeView(tree, data, branches, { hover: (body) => act.hover(body), choose: (body) => act.choose(body) });
    this.sets = element("div", { class: "sets" });
    tree.append(this.sets);
    const matrix = element("div", { class: "matrix-view" });
    this.figures = element("dl", { class: "figures" });
    this.operations = element("div", { class: "counted" }, operationsTable(data), element("p", {}, "Counted in the compiled code, for one state; n bodies, depth d. A multiply-add counts as two."));
    this.operations.hidden = true;
    const choices = [["H", "H"], ["ltdl", "L of LᵀDL"], ["cholesky", "L of Cholesky"], ["operations", "Counts"]];
    this.kinds = choice(choices, "H", (kind) => this.show(kind));
    const card = element("section", { class: "card matrix-card" }, element("header", {}, element("h2", {}, "Mass matrix"), this.kinds.group), matrix, this.figures, this.operations);
    host.append(tree, card);
    this.matrix = new MatrixView(matrix, data, branches, { light: (ends, way) => this.light(ends, way), choose: (body, dof) => act.choose(body, dof), values: () => act.values() });
    this.figures.replaceChildren(...matrixFigures(data, "H"));
    // A page may show several robots; the first one's parts can be linked to.
    const parts = { "tree-rows": this.tree.list, sets: this.sets, matrix: this.matrix.canvas, cell: this.matrix.cell };
    for (const [id, part] of Object.entries(parts)) if (!$(id)) part.id = id;
    this.showSets(null);
    new ResizeObserver(() => this.draw()).observe(host);
  }

  // As a click on the button would.
  choose(kind) { this.kinds.select(kind); }

  show(kind) {
    const table = kind === "operations";
    this.matrix.canvas.closest(".matrix-view").hidden = this.figures.hidden = table;
    this.operations.hidden = !table;
    if (table) return;
    this.figures.replaceChildren(...matrixFigures(this.data, kind));
    this.matrix.show(kind);
  }

  draw() {
    this.matrix.draw();
    this.tree.reveal();
  }

  // The values have changed with the time.
  update() {
    if (this.waiting || this.matrix.kind !== "H" || !this.matrix.canvas.offsetParent) return;
    // Twelve pictures a second are enough, and leave the time to the scene; the last one is always drawn.
    this.waiting = setTimeout(() => {
      this.waiting = null;
      this.matrix.draw();
      this.matrix.tellEntry();
    }, 80);
  }

  // A cell is pointed at: its two joints, and the way between them.
  light(ends, way) {
    if (this.tree) this.tree.light(ends, way);
    this.act.light(way, ends);
  }

  // A body is pointed at, here or elsewhere: its subtree is lit.
  highlight(body) {
    const under = new Set(body === null ? [] : this.under[body]);
    this.matrix.lit = body === null ? null : under;
    this.matrix.pointed = body;
    this.tree.light(new Set(body === null ? [] : [body]), under);
    this.showSets(body === null ? this.tree.selected : body);
    this.matrix.draw();
  }

  // A body is selected, with a cell of H where that is how.
  select(body, dof = null) {
    this.tree.select(body);
    this.matrix.chosen = new Set(body === null ? [] : [body]);
    if (dof === null) this.matrix.held = this.matrix.at = null;
    this.matrix.tell();
    this.matrix.draw();
    this.showSets(body);
  }

  showSets(body) {
    if (body === null) {
      this.sets.replaceChildren("Point at a body to see its parent λ, its children μ, its subtree ν, and the joints κ that carry it.");
      return;
    }
    const parent = this.data.bodies.parent[body];
    const set = (name, members) => element("span", {}, `${name} = ${members}`);
    this.sets.replaceChildren(element("b", {}, `${body}  ${this.data.bodies.name[body]}`), element("br"),
      set("λ", parent < 0 ? "none" : parent), set("μ", setText(this.branches.children[body])), set("ν", setText(this.under[body])), set("κ", setText(this.branches.support(body))));
  }
}
