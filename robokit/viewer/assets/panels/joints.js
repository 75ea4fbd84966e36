// The joint panel: each joint with its value between its limits; moving a slider poses the robot.

class JointPanel {
  constructor(host, data, act) {
    this.data = data;
    this.rows = [];
    const note = element("span", {}, `${data.robot.joints} joint${data.robot.joints === 1 ? "" : "s"}: drag to pose`);
    const reset = element("button", { class: "small", type: "button", onclick: () => act.reset() }, data.frames.count > 1 ? "Back to the motion" : "Reset");
    host.append(element("div", { class: "joint-head" }, note, reset));
    for (const joint of data.joints) this.addRow(host, joint, act);
  }

  addRow(host, joint, act) {
    const single = joint.q[1] - joint.q[0] === 1;
    const value = element("span", { class: "value" });
    const label = element("span", { class: "label", title: `${joint.name}: ${joint.parent_link} to ${joint.child_link}` }, joint.name, element("span", { class: "kind" }, joint.mimic ? `${joint.kind}, follows ${joint.mimic}` : joint.kind));
    const row = element("div", { class: "joint" }, label, value);
    const pin = act.plot && joint.v[1] > joint.v[0] ? toggle("∿", false, () => act.plot(joint), { class: "pin", title: `Plot ${joint.name}` }) : null;
    if (pin) {
      pin.setAttribute("aria-label", `Plot ${joint.name}`);
      pin.addEventListener("click", (event) => event.stopPropagation());
      row.append(pin);
    }
    row.addEventListener("pointerenter", () => act.hover(joint.body));
    row.addEventListener("pointerleave", () => act.hover(null));
    row.addEventListener("click", () => act.choose(joint));
    const entry = { joint, row, value, pin, slider: null };
    if (single) {
      const reach = joint.kind === "prismatic" ? 1 : Math.PI;
      const low = joint.lower ?? Math.min(-reach, (joint.upper ?? 0) - reach), high = joint.upper ?? Math.max(reach, low + reach);
      const end = (limit, text) => element("span", {}, limit === null ? "∞" : steady(text, 2));
      entry.slider = element("input", { type: "range", min: low, max: high, step: "any", "aria-label": joint.name });
      entry.slider.addEventListener("input", () => act.set(joint.q[0], Number(entry.slider.value)));
      row.append(element("div", { class: "slider" }, end(joint.lower, low), entry.slider, end(joint.upper, high)));
    }
    host.append(row);
    this.rows.push(entry);
  }

  show(q) {
    for (const { joint, value, slider } of this.rows) {
      const own = q.slice(...joint.q);
      if (!slider) {
        value.textContent = own.map((x) => steady(x, 2)).join("  ");
        continue;
      }
      value.textContent = `${steady(own[0], 3)} ${joint.kind === "prismatic" ? "m" : "rad"}`;
      slider.value = String(own[0]);
      const [low, high] = [Number(slider.min), Number(slider.max)];
      slider.style.setProperty("--done", `${(100 * (Number(slider.value) - low)) / Math.max(high - low, 1e-12)}%`);
    }
  }

  // The row of the selected body's joint, brought into view.
  select(body) {
    for (const { joint, row } of this.rows) {
      row.classList.toggle("chosen", joint.body === body);
      if (joint.body === body && row.offsetParent) row.scrollIntoView({ block: "nearest" });
    }
  }

  // The joints that a plot shows.
  plotted(bodies) {
    for (const { joint, pin } of this.rows) pin?.setAttribute("aria-pressed", String(bodies.has(joint.body)));
  }

  light(bodies) {
    for (const { joint, row } of this.rows) row.classList.toggle("lit", bodies.has(joint.body));
  }
}
