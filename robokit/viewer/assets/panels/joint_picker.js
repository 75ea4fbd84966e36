// A list of all joints with a search field: which of them a plot shows.

class JointPicker {
  constructor(host, data) {
    this.data = data;
    this.host = host;
    this.listeners = [];
    this.chosen = new Set();
    this.search = element("input", { type: "search", placeholder: `Search ${data.joints.length} joints`, "aria-label": "Search joints" });
    this.list = element("div", { class: "picks" });
    this.none = element("button", { class: "small", type: "button", onclick: () => this.set([]) }, "None");
    this.box = element("div", { class: "picker", role: "dialog", "aria-label": "Joints in the plot" }, element("div", { class: "pick-head" }, this.search, this.none), this.list);
    this.box.hidden = true;
    host.append(this.box);
    this.boxes = data.joints.filter((joint) => joint.v[1] > joint.v[0]).map((joint) => {
      const box = element("input", { type: "checkbox" });
      box.addEventListener("change", () => this.flip(joint.body));
      const row = element("label", {}, box, element("span", {}, joint.name));
      this.list.append(row);
      return { body: joint.body, name: joint.name.toLowerCase(), box, row };
    });
    this.search.addEventListener("input", () => {
      const words = this.search.value.toLowerCase().split(/\s+/);
      for (const { name, row } of this.boxes) row.hidden = !words.every((word) => name.includes(word));
    });
    this.box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.box.hidden && !this.box.contains(event.target) && event.target !== this.opener) this.close();
    });
  }

  // Hears of the bodies whose joints are chosen, now and whenever that changes.
  onChange(listener) {
    this.listeners.push(listener);
    listener(this.chosen);
  }

  // The joints that are chosen, in the order of the tree.
  get joints() { return this.data.joints.filter((joint) => this.chosen.has(joint.body)); }

  // Opens below a button, or closes.
  toggle(opener) {
    if (!this.box.hidden) { this.close(); return; }
    this.opener = opener;
    this.box.hidden = false;
    const below = opener.getBoundingClientRect(), around = this.host.getBoundingClientRect();
    const top = Math.max(Math.min(below.bottom + 4, around.bottom - this.box.offsetHeight - 8), around.top + 4);
    this.box.style.top = `${top - around.top + this.host.scrollTop}px`;
    opener.setAttribute("aria-expanded", "true");
    this.search.focus();
  }

  close() {
    this.box.hidden = true;
    if (!this.opener) return;
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.focus();
  }

  flip(body) {
    const chosen = new Set(this.chosen);
    if (!chosen.delete(body)) chosen.add(body);
    this.set(chosen);
  }

  set(bodies) {
    this.chosen = new Set(bodies);
    for (const { body, box } of this.boxes) box.checked = this.chosen.has(body);
    for (const listener of this.listeners) listener(this.chosen);
  }
}
