// The card of what is selected, over the 3D view: what it is, what it weighs, what the ground does to it now.

class SelectedCard {
  constructor(page, branches) {
    this.page = page;
    this.branches = branches;
    this.card = element("section", { id: "selected", "aria-label": "Selected link" });
    this.card.hidden = true;
    $("view").append(this.card);
  }

  show({ body, link: name }) {
    this.card.hidden = body === null;
    this.name = name;
    if (body === null) return;
    const { data, selection } = this.page, { parent } = data.bodies;
    const link = data.links.find((link) => link.name === name && link.body === body);
    const joint = this.branches.joints.get(body);
    const line = (label, ...text) => element("div", { "data-row": label }, element("dt", {}, label), element("dd", {}, ...text));
    const carried = link && name !== data.bodies.name[body] ? ` on ${data.bodies.name[body]}` : "";
    const rows = [line("body", `${body}${carried}`)];
    if (joint) {
      rows.push(line("joint", element("button", { type: "button", title: "Show it among the joints", onclick: () => this.page.panels.open("joints") }, joint.name), element("span", {}, ` ${joint.kind}`)));
      rows.push(line("rests on", element("button", { type: "button", title: "Select it", onclick: () => selection.select(parent[body]) }, data.bodies.name[parent[body]])));
    }
    if (link) rows.push(line("mass", link.mass > 0 ? `${figure(link.mass)} kg` : "none"));
    if (link && link.moments) rows.push(line("moments", `${link.moments.map((x) => figure(x)).join(", ")} kg m²`));
    // A run over ground has a force of the ground on every link, be it none.
    this.history = this.page.curves?.graphs.forces.find((force) => force.name === this.name) ?? null;
    this.contact = element("dd", {}, "–");
    const { link_forces } = data;
    if (link_forces.length) rows.push(element("div", {}, element("dt", {}, "ground"), this.contact));
    const title = element("header", {}, element("h2", { title: name }, name ?? data.bodies.name[body]), element("button", { class: "quiet", type: "button", "aria-label": "Unselect", title: "Unselect (Escape)", onclick: () => selection.select(null) }, "×"));
    this.card.replaceChildren(title, element("dl", {}, ...rows));
    this.update();
  }

  // The size of the ground's force on the link at the time shown; a live run does not tell it by link.
  update() {
    if (this.card.hidden) return;
    const { timeline, run } = this.page;
    if (!timeline || run?.on) this.contact.textContent = "–";
    else this.contact.textContent = this.history ? `${figure(valueAt(this.history, timeline.time))} N` : "no contact";
  }
}
