// The tab of live runs: what the reader may change, and the books.

const DROP_HINT = "Drag a link to pull it; Shift and click to push it. Drag beside the robot to turn the view.";

class LivePanel {
  constructor(host, page, run) {
    this.page = page;
    this.run = run;
    const { live } = page.data;
    const pull = Array.from(live.gravity), grips = Array.from(live.grips);
    this.usual = { gravity: Math.hypot(...pull), friction: grips.length ? Math.max(...grips) : null, dt: live.dt };
    // Without gravity in the recording, down is down.
    this.down = this.usual.gravity > 0 ? pull.map((part) => part / this.usual.gravity) : [0, 0, -1];
    this.door = element("button", { type: "button", class: "small live-door", onclick: () => run.enter() }, "Live from here");
    this.hint = element("p", { class: "live-hint" });
    host.append(element("div", { class: "live-head" }, this.hint, this.door), this.settings(grips.length > 0 && Math.min(...grips) < this.usual.friction));
    if (live.motors) this.motors = new LiveMotors(host, page, run);
    this.books = element("p", { id: "live-books", class: "live-hint" });
    this.running = element("div", { class: "live-books" }, this.books);
    this.charts = new LiveCharts(this.running, run);
    host.append(this.running);
    this.drawn = 0;
    this.open();
  }

  settings(differs) {
    const { run, usual } = this;
    const rows = element("div", { class: "live-settings" });
    const row = (key, label, unit, most, change) => {
      const value = element("b", { id: `live-${key}-value` });
      const slider = element("input", { id: `live-${key}`, type: "range", min: 0, max: most, step: 0.01, "aria-label": label });
      const show = () => {
        slider.style.setProperty("--done", `${(100 * slider.value) / most}%`);
        value.textContent = unit ? `${steady(Number(slider.value), 2)} ${unit}` : steady(Number(slider.value), 2);
      };
      slider.addEventListener("input", () => { show(); change(Number(slider.value)); });
      rows.append(element("label", { for: slider.id }, label), slider, value);
      return (given) => { slider.value = String(given); show(); };
    };
    const gravity = row("gravity", "Gravity", "m/s²", 20, (size) => run.set({ gravity: this.down.map((part) => size * part) }));
    const friction = usual.friction === null ? null : row("friction", "Friction", "", 2, (size) => run.set({ friction: size }));
    const steps = [...new Set([usual.dt, 0.00025, 0.0005, 0.001, 0.002, 0.004])].sort((a, b) => a - b);
    const step = element("select", { id: "live-dt", "aria-label": "Time step" }, ...steps.map((dt) => element("option", { value: dt }, `${+(1000 * dt).toPrecision(4)} ms`)));
    step.addEventListener("change", () => run.set({ dt: Number(step.value) }));
    const reset = element("button", { type: "button", class: "small", title: differs ? "In the recording, links have different coefficients" : "", onclick: () => { recorded(); run.set({ gravity: this.down.map((part) => part * usual.gravity), friction: null, dt: usual.dt }); } }, "As recorded");
    const recorded = () => {
      gravity(usual.gravity);
      friction?.(usual.friction);
      step.value = String(usual.dt);
    };
    rows.append(element("label", { for: "live-dt" }, "Time step"), step, reset);
    recorded();
    return rows;
  }

  open() {
    this.hint.textContent = this.run.on ? DROP_HINT : "Continue the simulation from the frame shown, and pull or push the robot. Energies, momenta and contact forces are plotted as it runs.";
    this.door.hidden = this.run.on;
    this.running.hidden = !this.run.on;
    if (this.motors) this.motors.box.hidden = !this.run.on;
    this.draw(true);
  }

  // At most ten times a second: the picture of the robot goes first.
  draw(now = false) {
    const time = performance.now();
    if (!this.page.panels.shows("live") || !this.run.on || (!now && this.run.running && time - this.drawn < 100)) return;
    this.drawn = time;
    if (!this.charts.energy.plot) this.charts.redraw();
    this.charts.draw();
    this.motors?.draw();
    const { motion, shown } = this.run;
    if (!motion.count) return;
    const k = Math.min(Math.round(shown), motion.count - 1), total = motion.energy[5 * k + 4];
    this.books.replaceChildren("Kinetic + potential + dissipated − added = ", element("b", {}, `${figure(total, 5)} J`),
      "; change since the start ", element("b", { id: "live-balance" }, `${figure(total - this.run.startEnergy, 2)} J`));
  }

  redraw() {
    if (this.charts.energy.plot) this.charts.redraw();
  }
}
