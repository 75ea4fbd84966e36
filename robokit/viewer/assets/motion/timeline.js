// Time: play, pause, speed, loop, step, scrub, keys. Everything that shows the motion listens to `change`.

const ICONS = {
  start: "M3 3h2.4v12H3zM15 3v12L6.2 9z",
  back: "M12.6 3v12L4 9zM13 3h2v12h-2z",
  play: "M5 2.5v13L15.5 9z",
  pause: "M4.5 3h3.4v12H4.5zM10.1 3h3.4v12h-3.4z",
  on: "M5.4 3v12L14 9zM3 3h2v12H3z",
  eventBack: "M2.2 4.4h2v9.2h-2zM9.5 4.4 14.1 9l-4.6 4.6L4.9 9z",
  eventOn: "M13.8 4.4h2v9.2h-2zM8.5 4.4 13.1 9l-4.6 4.6L3.9 9z",
  loop: "M9 3.2V1L5 4.2 9 7.4V5.1a4 4 0 1 1-4 4H3.1A5.9 5.9 0 1 0 9 3.2z",
};

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 18 18");
  svg.setAttribute("width", "17");
  svg.setAttribute("height", "17");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

class Timeline {
  constructor(motion) {
    this.motion = motion;
    this.time = 0;
    this.speed = 1;
    this.playing = false;
    this.looping = false;
    this.listeners = [];
    $("timeline").hidden = false;
    const scrub = $("scrub");
    scrub.max = String(motion.duration);
    const buttons = { "to-start": ["start", () => this.seek(0)], "step-back": ["back", () => this.step(-1)], play: ["play", () => this.toggle()],
      "step-on": ["on", () => this.step(1)], loop: ["loop", () => this.setLoop(!this.looping)] };
    for (const [id, [picture, act]] of Object.entries(buttons)) {
      $(id).append(icon(picture));
      $(id).addEventListener("click", act);
    }
    scrub.addEventListener("input", () => { this.pause(); this.seek(Number(scrub.value)); });
    $("speed").addEventListener("change", () => { this.speed = Number($("speed").value); });
    this.drawClock();
  }

  onChange(listener) { this.listeners.push(listener); }

  tick(seconds) {
    if (!this.playing) return;
    let time = this.time + seconds * this.speed;
    if (time >= this.motion.duration) {
      if (this.looping) time %= Math.max(this.motion.duration, 1e-9);
      else { time = this.motion.duration; this.pause(); }
    }
    this.seek(time);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.motion.duration);
    this.drawClock();
    for (const listener of this.listeners) listener(this.time);
  }

  step(frames) {
    this.pause();
    const here = this.motion.frameAt(this.time);
    const next = frames > 0 ? Math.floor(here + 1e-4) + frames : Math.ceil(here - 1e-4) + frames;
    this.seek(this.motion.t[Math.min(Math.max(next, 0), this.motion.count - 1)]);
  }

  play() {
    if (this.time >= this.motion.duration - 1e-9) this.seek(0);
    this.playing = true;
    this.drawState();
  }

  pause() {
    this.playing = false;
    this.drawState();
  }

  toggle() { if (this.playing) this.pause(); else this.play(); }

  setLoop(on) {
    this.looping = on;
    $("loop").setAttribute("aria-pressed", String(on));
  }

  nudgeSpeed(by) {
    const select = $("speed");
    select.selectedIndex = Math.min(Math.max(select.selectedIndex + by, 0), select.options.length - 1);
    this.speed = Number(select.value);
  }

  drawState() {
    $("play").replaceChildren(icon(this.playing ? "pause" : "play"));
    $("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  drawClock() {
    const done = this.motion.duration ? (100 * this.time) / this.motion.duration : 0;
    $("scrub").value = String(this.time);
    $("scrub").style.setProperty("--done", `${done}%`);
    // A short run has its decimals, down to single steps.
    const { duration } = this.motion, more = duration >= 1 ? 0 : duration >= 0.1 ? 1 : 2;
    $("clock").replaceChildren(element("b", {}, this.time.toFixed(more > 1 ? 5 : 3)), ` / ${duration.toFixed(2 + more)} s`);
    $("scrub").setAttribute("aria-valuetext", $("clock").textContent);
  }

  addKeys(shortcuts) {
    const end = () => { this.pause(); this.seek(this.motion.duration); };
    shortcuts.add(" ", "Play or pause", () => this.toggle());
    shortcuts.add("ArrowLeft", "One frame back", () => this.step(-1));
    shortcuts.add("ArrowRight", "One frame forward", () => this.step(1));
    shortcuts.add("Shift+ArrowLeft", "Ten frames back", () => this.step(-10));
    shortcuts.add("Shift+ArrowRight", "Ten frames forward", () => this.step(10));
    shortcuts.add("Home", "To the start", () => this.seek(0));
    shortcuts.add("End", "To the end", end);
    shortcuts.add("[", "Slower", () => this.nudgeSpeed(-1));
    shortcuts.add("]", "Faster", () => this.nudgeSpeed(1));
    shortcuts.add("l", "Loop", () => this.setLoop(!this.looping));
  }

  // The size of a vector over time, drawn over the track: falls and impacts are seen before they are played.
  drawProfile(values, times) {
    const canvas = $("profile"), ratio = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.max(1, canvas.clientWidth * ratio);
    canvas.height = Math.max(1, canvas.clientHeight * ratio);
    const pen = canvas.getContext("2d"), top = Math.max(...values, 1e-12);
    pen.fillStyle = colour("profile");
    pen.beginPath();
    pen.moveTo(0, canvas.height);
    // Square roots keep the rest of the motion visible beside one hard impact.
    values.forEach((value, k) => pen.lineTo((canvas.width * times[k]) / Math.max(this.motion.duration, 1e-9), canvas.height * (1 - 0.96 * Math.sqrt(value / top))));
    pen.lineTo(canvas.width, canvas.height);
    pen.fill();
  }
}
