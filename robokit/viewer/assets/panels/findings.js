// The check panel: what the importer found, and every link's mass beside its equivalent inertia box.
// Pointing at a line leaves only that link's box in the picture.

class FindingPanel {
  constructor(host, data, stage, act) {
    this.stage = stage;
    this.act = act;
    for (const solid of stage.roles.inertia) {
      const [red, green, blue] = solid.userData.rgba;
      const edges = new THREE.LineBasicMaterial({ color: ink(new THREE.Color(red, green, blue)), transparent: true, opacity: 0.7 });
      solid.add(new THREE.LineSegments(new THREE.EdgesGeometry(solid.geometry), edges));
    }
    const { findings, inertias } = data.check;
    const title = (text, unit) => element("header", {}, element("h2", {}, text), element("span", { class: "unit" }, unit));
    const found = element("div", { class: "findings" });
    const totals = ["error", "warning", "note"].map((s) => [s, findings.filter((finding) => finding.severity === s).length]).filter(([, n]) => n);
    const said = totals.map(([s, n]) => `${n} ${s}${n === 1 ? "" : "s"}`).join(", ") || "nothing to report";
    for (const finding of findings) found.append(this.finding(finding));
    host.append(element("section", { class: "card" }, title("Findings", said), found));
    const table = element("table", { class: "inertias" });
    table.append(element("tr", {}, ...["link", "kg", "equivalent box [m]"].map((text) => element("th", {}, text))));
    for (const inertia of inertias) {
      const line = element("tr", { class: inertia.odd ? "odd" : "" }, element("td", { title: inertia.link }, inertia.link), element("td", {}, figure(inertia.mass)), element("td", {}, inertia.box.map((x) => x.toPrecision(2)).join(" × ")));
      line.title = `${inertia.link}: principal moments ${inertia.moments.map((x) => x.toPrecision(4)).join(", ")} kg m²`;
      this.point(line, inertia.link, inertia.body);
      table.append(line);
    }
    host.append(element("section", { class: "card" }, title("Inertias", "box of uniform density with the mass and inertia of each link; red: implausible"), table));
  }

  finding(finding) {
    const head = element("div", { class: "head" }, element("b", {}, finding.severity), element("span", {}, finding.code), element("span", { class: "line" }, finding.line ? `line ${finding.line}` : ""));
    const row = element("div", { class: `finding ${finding.severity}` }, head, element("p", {}, `${finding.element}: ${finding.message}`));
    if (finding.hint) row.append(element("p", { class: "hint" }, finding.hint));
    this.point(row, finding.link, finding.body);
    return row;
  }

  point(row, link, body) {
    if (body === null) return;
    row.classList.add("points");
    row.addEventListener("pointerenter", () => { this.only(link); this.act.hover(body); });
    row.addEventListener("pointerleave", () => { this.only(null); this.act.hover(null); });
  }

  // Only one link's box, or all that are switched on.
  only(link) {
    const on = this.act.shown();
    const boxes = this.stage.roles.inertia;
    const known = boxes.some((solid) => solid.userData.link === link);
    for (const solid of boxes) solid.visible = known ? solid.userData.link === link : on;
    this.stage.dirty();
  }
}
