// The card of what is selected, over the 3D view: what it is, what it weighs, what the ground does to it now.
// In a small view it is one line, which unfolds.

class SelectedCard {
  constructor(page, branches) {
    this.page = page;
    this.branches = branches;
    this.card = element("section", { id: "selected", "aria-label": "Selected link" });
    this.card.hidden = true;
    // The force of the ground in the one line of a small view, and the button that unfolds it.
    this.brief = element("span", { class: "brief" });
    this.fold = element("button", { class: "quiet fold-card", type: "button", onclick: () => this.unfold(!this.card.classList.contains("open")) });
    this.unfold(false);
    $("view").append(this.card);
  }

  unfold(open) {
    const text = open ? "Less about it" : "More about it";
    this.card.classList.toggle("open", open);
    this.fold.setAttribute("aria-expanded", String(open));
    this.fold.setAttribute("aria-label", text);
    this.fold.title = text;
    this.fold.textContent = open ? "▴" : "▾";
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
      rows.push(line("joint", element("button", { type: "button", title: "Show in the joint list", onclick: () => this.page.panels.open("joints") }, joint.name), element("span", {}, ` ${joint.kind}`)));
      rows.push(line("rests on", element("button", { type: "button", title: "Select it", onclick: () => selection.select(parent[body]) }, data.bodies.name[parent[body]])));
    }
    if (link) rows.push(line("mass", link.mass > 0 ? `${figure(link.mass)} kg` : "none"));
    if (link && link.moments) rows.push(line("moments", `${link.moments.map((x) => figure(x)).join(", ")} kg m²`));
    // A run over ground has a force of the ground on every link, be it none.
    this.history = this.page.curves?.graphs.forces.find((force) => force.name === this.name) ?? null;
    this.contact = element("dd", {}, "–");
    const { link_forces } = data;
    if (link_forces.length) rows.push(element("div", {}, element("dt", {}, "ground"), this.contact));
    const title = element("header", {}, element("h2", { title: name }, name ?? data.bodies.name[body]), this.brief, this.fold, element("button", { class: "quiet", type: "button", "aria-label": "Unselect", title: "Unselect (Escape)", onclick: () => selection.select(null) }, "×"));
    this.card.replaceChildren(title, element("dl", {}, ...rows));
    this.update();
  }

  // The size of the ground's force on the link at the time shown. A live run tells it by body.
  update() {
    if (this.card.hidden) return;
    const { timeline, run } = this.page;
    if (run?.on) this.contact.textContent = this.liveForce(run.motion);
    else if (!timeline) this.contact.textContent = "–";
    else this.contact.textContent = this.history ? `${figure(valueAt(this.history, timeline.time))} N` : "no contact";
    this.brief.textContent = /\d/.test(this.contact.textContent) ? this.contact.textContent : "";
  }

  liveForce({ count, contacts, contactBody }) {
    if (!count || this.page.posed) return "–";
    const { body, data } = this.page.selection, force = [0, 0, 0];
    let touches = false;
    contactBody.forEach((one, k) => {
      if (one !== body) return;
      touches = true;
      for (let j = 0; j < 3; j++) force[j] += contacts[6 * k + 3 + j];
    });
    const several = data.links.filter((link) => link.body === body).length > 1;
    return touches ? `${figure(Math.hypot(...force))} N${several ? " on its body" : ""}` : "no contact";
  }
}
