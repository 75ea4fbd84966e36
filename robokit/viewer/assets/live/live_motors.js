// Targets of the actuators in a live run: a slider each, from the joint's limits, beside where the joint is.

class LiveMotors {
  constructor(host, page, run) {
    this.page = page;
    this.run = run;
    const { motors } = page.data.live;
    this.motors = motors.list;
    this.t = floats(motors.t);
    this.recorded = floats(motors.targets);
    this.targets = new Float64Array(this.motors.length);
    this.start = this.targets.slice();
    this.first = true;
    const rows = element("div", { class: "live-motors" });
    this.rows = this.motors.map((motor, k) => {
      const joint = page.data.joints.find((joint) => joint.name === motor.joint);
      const slider = element("input", { type: "range", min: motor.lower, max: Math.max(motor.upper, motor.lower + 1e-9), step: "any", "aria-label": `Target ${motor.kind} of ${motor.joint}` });
      slider.addEventListener("input", () => this.set(k, Number(slider.value)));
      const target = element("b"), now = element("span");
      rows.append(element("label", { title: `${motor.joint}: target ${motor.kind}` }, motor.joint), slider, element("output", { "aria-live": "off" }, target, now));
      return { joint, slider, target, now };
    });
    const reset = element("button", { type: "button", class: "small", title: "Reset to the targets at the start of this live run", onclick: () => this.reset() }, "Reset");
    this.power = element("input", { type: "checkbox", checked: "", onchange: () => this.powered() });
    this.box = element("details", { class: "live-actuators" }, element("summary", {}, this.motors.length === 1 ? "Target of the actuator" : `Targets of ${this.motors.length} actuators`), element("div", { class: "live-motors-head" }, element("label", { title: "If off, no actuator acts and the joints move freely" }, this.power, " powered"), element("span", { class: "live-hint" }, "target, actual"), reset), rows);
    this.box.open = true;
    host.append(this.box);
    this.begin(0, null);
  }

  // The targets at a time of the recording; a pose that sliders made is held.
  begin(time, posed, exact = time === 0 && !posed) {
    let k = 0;
    while (k + 1 < this.t.length && this.t[k + 1] <= time + 1e-9) k += 1;
    this.motors.forEach((motor, i) => {
      const joint = this.rows[i].joint;
      const held = posed && motor.kind === "position" ? posed[joint.q[0]] : this.recorded[k * this.motors.length + i];
      this.start[i] = this.targets[i] = held;
    });
    this.first = exact;
    this.draw();
  }

  set(k, target) {
    this.targets[k] = target;
    this.first = false;
    this.draw();
    this.send();
  }

  reset() {
    this.targets.set(this.start);
    this.draw();
    this.send();
  }

  // The recording's own numbers where nothing was changed: those of the targets are rounded.
  send() {
    const commands = this.motors.map((motor, k) => {
      const most = motor.limit ?? Infinity;
      return motor.bias + motor.gain * Math.min(Math.max(this.targets[k], -most), most);
    });
    this.run.engine?.send("drive", { commands: this.first ? null : commands, powered: this.power.checked });
  }

  powered() {
    for (const { slider } of this.rows) slider.disabled = !this.power.checked;
    this.send();
  }

  // What the sliders say; and where the joints are, of the live run that is shown.
  draw() {
    const { motion, shown } = this.run, moving = this.run.on && motion.count > 0;
    this.motors.forEach((motor, k) => {
      const { joint, slider, target, now } = this.rows[k];
      if (document.activeElement !== slider || Number(slider.value) !== this.targets[k]) slider.value = String(this.targets[k]);
      slider.style.setProperty("--done", `${(100 * (this.targets[k] - motor.lower)) / Math.max(motor.upper - motor.lower, 1e-9)}%`);
      target.textContent = `${steady(this.targets[k], 2)} ${motor.unit}`;
      const is = !moving ? null : motor.kind === "position" ? motion.mixed(motion.q, motion.nq, shown)[joint.q[0]] : motor.kind === "velocity" ? motion.mixed(motion.v, this.page.data.robot.dof, shown)[joint.v[0]] : null;
      now.textContent = is === null ? "" : steady(is, 2);
    });
  }
}
