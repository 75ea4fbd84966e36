// The tree of bodies: pointed at, selected, folded, walked by the arrow keys (the tree pattern of WAI-ARIA).

class TreeView {
  // act: { hover(body), choose(body) }
  constructor(host, data, branches, act) {
    this.data = data;
    this.branches = branches;
    this.act = act;
    this.closed = new Set();
    this.selected = null;
    const { children, depth } = branches, { parent } = data.bodies;
    this.list = element("div", { class: "tree-rows", role: "tree", "aria-label": "Bodies" });
    this.rows = data.bodies.name.map((name, i) => {
      const joint = branches.joints.get(i);
      const dofs = joint ? (joint.v[1] - joint.v[0] > 1 ? `${joint.kind}, ${joint.v[1] - joint.v[0]} dof` : joint.kind) : data.robot.base === "fixed" ? "fixed root" : "";
      const indent = element("span", { class: "branch" });
      indent.style.width = `${Math.min(depth[i], 14) * 10}px`;
      const fold = element("span", { class: "fold", "aria-hidden": "true" });
      fold.addEventListener("click", (event) => { event.stopPropagation(); if (children[i].length) this.fold(i, !this.closed.has(i)); });
      const siblings = i ? children[parent[i]] : [0];
      const row = element("div", { class: "row", role: "treeitem", tabindex: "-1", "aria-level": depth[i] + 1, "aria-setsize": siblings.length, "aria-posinset": siblings.indexOf(i) + 1, "aria-selected": "false" },
        element("span", { class: "number" }, String(i)), indent, fold, element("span", { class: "body", title: joint ? `${name}, moved by ${joint.name}` : name }, name), element("span", { class: "dofs" }, dofs));
      if (children[i].length) row.setAttribute("aria-expanded", "true");
      row.addEventListener("pointerenter", () => act.hover(i));
      row.addEventListener("pointerleave", () => act.hover(null));
      row.addEventListener("click", () => { this.focus(i); act.choose(i); });
      this.list.append(row);
      return row;
    });
    this.rows[0].tabIndex = 0;
    this.list.addEventListener("keydown", (event) => this.key(event));
    host.append(this.list);
  }

  visible(i) {
    for (let b = this.data.bodies.parent[i]; b >= 0; b = this.data.bodies.parent[b]) if (this.closed.has(b)) return false;
    return true;
  }

  fold(i, closed) {
    if (closed) this.closed.add(i);
    else this.closed.delete(i);
    this.rows[i].setAttribute("aria-expanded", String(!closed));
    this.rows.forEach((row, k) => { row.hidden = !this.visible(k); });
    const focused = this.rows.findIndex((row) => row.tabIndex === 0);
    if (this.rows[focused].hidden) this.roving(i);
  }

  roving(i) { this.rows.forEach((row, k) => { row.tabIndex = k === i ? 0 : -1; }); }

  focus(i) {
    this.roving(i);
    this.rows[i].focus({ preventScroll: true });
  }

  key(event) {
    const at = this.rows.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const { children } = this.branches, { parent } = this.data.bodies;
    const shown = this.rows.map((_, i) => i).filter((i) => !this.rows[i].hidden);
    const open = children[at].length && !this.closed.has(at);
    const to = {
      ArrowDown: () => shown[shown.indexOf(at) + 1],
      ArrowUp: () => shown[shown.indexOf(at) - 1],
      Home: () => shown[0],
      End: () => shown[shown.length - 1],
      ArrowRight: () => (open ? children[at][0] : this.fold(at, false)),
      ArrowLeft: () => (open ? this.fold(at, true) : parent[at]),
      Enter: () => at,
      " ": () => at,
    }[event.key];
    if (!to) return;
    // These keys move the timeline elsewhere.
    event.preventDefault();
    event.stopPropagation();
    const next = to();
    if (next === undefined || next < 0) return;
    this.focus(next);
    this.act.choose(next);
  }

  // ends: the bodies pointed at; under: what hangs on them, or lies between them.
  light(ends, under) {
    this.rows.forEach((row, i) => {
      row.classList.toggle("lit", ends.has(i));
      row.classList.toggle("under", under.has(i) && !ends.has(i));
    });
  }

  select(body) {
    this.selected = body;
    this.rows.forEach((row, i) => {
      row.classList.toggle("chosen", i === body);
      row.setAttribute("aria-selected", String(i === body));
    });
    if (body === null) return;
    for (let b = this.data.bodies.parent[body]; b >= 0; b = this.data.bodies.parent[b]) if (this.closed.has(b)) this.fold(b, false);
    this.roving(body);
    this.reveal();
  }

  reveal() {
    if (this.selected !== null && this.list.clientHeight) this.rows[this.selected].scrollIntoView({ block: "nearest" });
  }
}
