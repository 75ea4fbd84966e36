// The tree of bodies, root at the left: which the pass has done, which it is at, and which way it goes.

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

class WalkTree {
  constructor(host, data, act) {
    this.parent = data.bodies.parent;
    this.names = data.bodies.name;
    const n = this.parent.length;
    this.depth = new Array(n).fill(0);
    for (let i = 1; i < n; i++) this.depth[i] = this.depth[this.parent[i]] + 1;
    // Leaves one under another, every other body in the middle of its children.
    const children = this.parent.map(() => []);
    for (let i = 1; i < n; i++) children[this.parent[i]].push(i);
    let leaves = 0;
    this.height = new Array(n).fill(0);
    for (let i = n - 1; i >= 0; i--) {
      this.height[i] = children[i].length ? children[i].reduce((sum, child) => sum + this.height[child], 0) / children[i].length : leaves++;
    }
    this.svg = drawn("svg", { class: "walk-tree", role: "img", "aria-label": "Tree of bodies" });
    const far = Math.max(...this.depth, 1), wide = 240, high = Math.min(Math.max(16 * leaves, 30), 82);
    const x = (i) => 10 + ((wide - 20) * this.depth[i]) / far, y = (i) => (leaves > 1 ? 9 + ((high - 18) * (leaves - 1 - this.height[i])) / (leaves - 1) : high / 2);
    this.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    const radius = Math.max(1.6, Math.min(5.2, (0.38 * (wide - 20)) / far, (0.42 * high) / leaves));
    this.edges = this.parent.map((p, i) => (i ? drawn("path", { d: `M${x(p)} ${y(p)}C${(x(p) + x(i)) / 2} ${y(p)} ${(x(p) + x(i)) / 2} ${y(i)} ${x(i)} ${y(i)}` }) : null));
    this.dots = this.parent.map((_, i) => {
      const dot = drawn("circle", { cx: x(i), cy: y(i), r: i ? radius : 0.8 * radius }, drawn("title", {}));
      dot.querySelector("title").textContent = `${i} ${this.names[i]}`;
      dot.addEventListener("click", () => { if (i) act.go(i); });
      dot.addEventListener("pointerenter", () => act.hover(i));
      dot.addEventListener("pointerleave", () => act.hover(null));
      return dot;
    });
    this.dots[0].classList.add("root");
    this.svg.append(...this.edges.filter(Boolean), ...this.dots);
    host.append(this.svg);
  }

  // Bodies done, the one at work and a second one, with the path between them where there is one.
  show(done, body, other) {
    const path = new Set();
    if (body !== null && other !== null) for (let b = body; b > 0 && b !== other; b = this.parent[b]) path.add(b);
    this.dots.forEach((dot, i) => {
      dot.classList.toggle("done", done.has(i));
      dot.classList.toggle("other", i === other && other !== body);
      dot.classList.toggle("body", i === body);
      this.edges[i]?.classList.toggle("path", path.has(i));
      this.edges[i]?.classList.toggle("done", done.has(i));
    });
  }
}
