// The bar under a live run, in the place of the recording's: run, drop again, the kept seconds, speed, and the way back.

// A plain factor, or as fast as the machine can.
const LIVE_SPEEDS = [["0.1", "0.1×"], ["0.25", "0.25×"], ["0.5", "0.5×"], ["1", "1×"], ["2", "2×"], ["4", "4×"], ["Infinity", "fastest"]];
const LIVE_ICONS = {
  drop: "M7.9 2h2.2v6.6h3.4L9 13.4 4.5 8.6h3.4zM3 14.6h12v2H3z",
  here: "M4 2.5h2v13H4zM8 2.8v12.4L16 9z",
};

class LiveBar {
  constructor(page, run) {
    this.page = page;
    this.run = run;
    Object.assign(ICONS, LIVE_ICONS);
    const button = (id, picture, title, act, kind = "") => {
      const made = element("button", { id, type: "button", class: kind, title, "aria-label": title.replace(/ \(.*/, ""), onclick: act });
      made.append(icon(picture));
      return made;
    };
    this.play = button("live-play", "pause", "Run or pause (space)", () => run.toggle(), "primary");
    this.clock = element("output", { id: "live-clock", class: "clock", "aria-live": "off" });
    this.scrub = element("input", { id: "live-scrub", type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "Time of the live run" });
    this.scrub.addEventListener("input", () => run.seek(Number(this.scrub.value)));
    this.rate = element("output", { id: "live-rate", "aria-live": "off", title: "Simulated time relative to real time" });
    const speed = element("select", { id: "live-speed", title: "Speed" }, ...LIVE_SPEEDS.map(([value, label]) => element("option", { value }, label)));
    speed.value = "1";
    speed.addEventListener("change", () => run.setSpeed(Number(speed.value)));
    this.message = element("p", { id: "live-message", role: "status" });
    this.bar = element("footer", { id: "live-bar", class: "timeline", "aria-label": "Live run" },
      element("div", { class: "transport" },
        button("live-drop", "drop", "Restart from the same state (D)", () => run.drop()),
        this.play,
        button("live-here", "here", "Start from here: restarts begin at the state shown now", () => run.fromHere())),
      this.clock,
      element("div", { class: "track" }, this.scrub, this.message),
      element("label", { class: "speed" }, "speed ", speed),
      this.rate,
      element("button", { id: "live-back", type: "button", title: "Leave the live run and return to the page as it was (B)", onclick: () => run.leave() }, page.timeline ? "Back to recording" : "Back to pose"));
    this.bar.hidden = true;
    $("timeline").after(this.bar);
    this.door = element("button", { id: "live", type: "button", title: "Live: continue the simulation from the state shown (D)", onclick: () => run.enter() }, "Live");
    (page.timeline ? $("timeline") : $("cameras")).append(this.door);
    if (!page.timeline) this.door.className = "chip plain";
  }

  show(on) {
    this.bar.hidden = !on;
    this.door.hidden = on;
    $("timeline").hidden = on || !this.page.timeline;
    this.draw();
  }

  say(text) {
    this.message.textContent = text;
    this.draw();
  }

  draw() {
    const { motion, running, latest, shown, speed } = this.run;
    if (this.pictured !== running) this.play.replaceChildren(icon(running ? "pause" : "play"));
    this.pictured = running;
    this.play.setAttribute("aria-label", running ? "Pause" : "Run");
    const first = motion.count ? motion.t[0] : 0, last = motion.duration;
    const now = motion.count ? motion.mixed(motion.t, 1, shown)[0] : 0;
    this.scrub.min = String(first);
    this.scrub.max = String(Math.max(last, first + 1e-9));
    this.scrub.value = String(now);
    this.scrub.style.setProperty("--done", `${last > first ? (100 * (now - first)) / (last - first) : 100}%`);
    this.clock.replaceChildren(element("b", {}, now.toFixed(3)), " s");
    const rate = running && latest ? latest.rate : 0;
    this.rate.textContent = rate ? `${rate < 9.95 ? rate.toFixed(2) : rate.toFixed(0)}×` : "paused";
    this.rate.classList.toggle("behind", Boolean(rate) && Number.isFinite(speed) && rate < 0.9 * speed);
  }
}
