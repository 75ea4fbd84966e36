// A live run: the robot goes on from the frame that is shown, by physics in the page, under the reader's hand.
// While it is on, `page.motion` is the live motion, and the recording waits as it was left.

class LiveRun {
  constructor(page) {
    this.page = page;
    this.recording = page.motion;
    this.motion = new LiveMotion(page.data);
    this.engine = null;
    this.on = false;
    this.running = false;
    this.speed = 1;
    this.shown = 0;
    this.latest = null;
    this.start = null;
    this.settings = {};
    this.number = 0;
    this.waiting = true;
    this.ready = false;
    this.tabBefore = null;
    this.bar = new LiveBar(page, this);
    this.panel = new LivePanel(page.panels.add("live", "Live", () => this.panel.open()), page, this);
    this.hand = new Hand(page, {
      running: () => this.on && this.running,
      pull: (values) => this.engine.send("hand", values),
      letGo: () => this.engine.send("release"),
      push: (values) => this.engine.send("push", values),
    });
    page.shortcuts.add("d", "Live: simulate from the state shown; restart", () => { if (this.on) this.drop(); else this.enter(); });
    page.shortcuts.add("b", "Back to the recording", () => this.leave());
  }

  // ---- to and fro ------------------------------------------------------------------------------------

  // Live from what is shown: a frame of the recording, or the pose that sliders made, at rest.
  enter() {
    if (this.on) return;
    const { page, recording } = this, frame = page.frame(), posed = page.posed;
    page.timeline?.pause();
    // The first frame starts from the recording's own numbers; others from those of the page, which are rounded.
    this.start = frame === 0 && !posed ? { t: 0, q: null, v: null } : this.state(recording, frame, posed);
    this.panel.motors?.begin(page.timeline?.time ?? 0, posed, frame === 0 && !posed);
    this.on = true;
    document.documentElement.dataset.live = "on";
    page.shortcuts.instead = { " ": () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), "Shift+ArrowLeft": () => this.step(-10),
      "Shift+ArrowRight": () => this.step(10), Home: () => this.seek(0), End: () => this.seek(this.motion.duration) };
    this.bar.show(true);
    this.wake();
    this.panel.motors?.send();
    this.drop();
    if (!page.panels.shows("live")) this.tabBefore = page.panels.current;
    page.panels.open("live");
  }

  // Back to the recording, where it was left.
  leave() {
    if (!this.on) return;
    this.on = false;
    this.halt();
    this.page.posed = null;
    this.page.shortcuts.instead = {};
    if (this.page.motion === this.motion) {
      this.page.motion = this.recording;
      this.page.overlays.use(this.recording);
      this.page.cameras.comeBack();
    }
    delete document.documentElement.dataset.live;
    this.bar.show(false);
    if (this.tabBefore !== null && this.page.panels.shows("live")) this.page.panels.open(this.tabBefore);
    this.tabBefore = null;
    this.panel.open();
    this.page.back();
  }

  state(motion, frame, posed) {
    const q = posed || motion.coordinates(frame), dof = this.page.data.robot.dof;
    const v = posed || !motion.v?.length ? new Array(dof).fill(0) : motion.mixed(motion.v, dof, frame);
    return { t: 0, q: Float64Array.from(upright(this.page.data.joints, q)), v: Float64Array.from(v) };
  }

  // ---- the Worker ------------------------------------------------------------------------------------

  wake() {
    if (this.engine) return;
    this.engine = this.page.startEngine();
    this.engine.on("ready", () => {
      this.ready = true;
      this.bar.say("");
    });
    this.engine.on("frame", (frame) => this.take(frame));
    this.engine.on("stopped", ({ t, run, reason }) => {
      if (run !== this.number) return;
      this.running = false;
      this.hand.release();
      this.bar.say(`Stopped at ${figure(t)} s. ${reason}`);
    });
    this.engine.on("problem", ({ message }) => {
      this.running = false;
      this.bar.say(message);
    });
    this.engine.send("set", this.settings);
  }

  take(frame) {
    // Frames of before the last start may still be on their way.
    if (!this.on || frame.run !== this.number) return;
    this.latest = frame;
    const entered = this.page.motion !== this.motion;
    if (this.waiting) this.adopt(frame);
    this.motion.push(frame);
    if (entered) this.page.cameras.goAlong();
    if (this.follows) this.shown = this.motion.count - 1;
    this.fresh = true;
  }

  // ---- running ---------------------------------------------------------------------------------------

  // From the start of this live run.
  drop() {
    this.begin(this.start);
    this.run();
  }

  begin(start) {
    this.page.posed = null;
    this.hand.release();
    // What was is kept until the first frame of the new run comes.
    this.waiting = true;
    this.follows = true;
    this.number += 1;
    this.engine.send("start", { ...start, run: this.number });
  }

  // From its first frame on, the page shows the live motion.
  adopt(frame) {
    this.waiting = false;
    this.motion.clear();
    this.startEnergy = frame.energy.total;
    if (this.page.motion === this.motion) return;
    this.page.motion = this.motion;
    this.page.overlays.use(this.motion);
  }

  // On from what is shown: the newest frame, an earlier one, or a pose of the sliders.
  run() {
    if (this.page.posed || !this.follows) {
      this.start = this.state(this.motion, this.shown, this.page.posed);
      this.begin(this.start);
    }
    this.running = true;
    this.bar.say(this.ready ? "" : "Preparing the simulation …");
    this.engine.send("run", { speed: this.speed });
    this.bar.draw();
  }

  halt() {
    if (this.running) this.engine.send("pause");
    this.running = false;
    this.hand.release();
    this.bar.draw();
  }

  toggle() { if (this.running) this.halt(); else this.run(); }

  // The frame shown becomes the start that "drop again" goes back to.
  fromHere() {
    if (this.waiting) return;
    this.start = this.state(this.motion, this.shown, this.page.posed);
    this.drop();
  }

  setSpeed(speed) {
    this.speed = speed;
    if (this.running) this.engine.send("run", { speed });
  }

  // Gravity, friction, time step: for this run and those after it.
  set(values) {
    Object.assign(this.settings, values);
    this.engine?.send("set", values);
  }

  // A time of the live run that is kept.
  seek(time) {
    if (this.waiting) return;
    this.halt();
    this.page.posed = null;
    this.shown = this.motion.frameAt(Math.min(Math.max(time, this.motion.t[0]), this.motion.duration));
    this.follows = this.shown >= this.motion.count - 1;
    this.draw();
  }

  step(frames) {
    const next = frames > 0 ? Math.floor(this.shown + 1e-4) + frames : Math.ceil(this.shown - 1e-4) + frames;
    if (!this.waiting) this.seek(this.motion.t[Math.min(Math.max(next, 0), this.motion.count - 1)]);
  }

  // ---- drawing ---------------------------------------------------------------------------------------

  // Every time the screen is drawn.
  tick(seconds) {
    this.hand.spring.fade(seconds);
    if (!this.on) return;
    if (this.fresh) this.draw();
    this.hand.pull();
    this.hand.draw(this.latest?.hand ? Math.hypot(...this.latest.hand.force) : 0);
  }

  draw() {
    this.fresh = false;
    if (this.waiting || this.page.posed) return;
    this.page.drawFrame(this.shown);
    this.bar.draw();
    this.panel.draw();
  }
}

// A configuration whose quaternions are units: those of a recording are rounded and mixed.
function upright(joints, q) {
  const own = Array.from(q);
  for (const joint of joints) {
    if (joint.kind !== "floating" && joint.kind !== "spherical") continue;
    const at = joint.q[0], n = Math.hypot(...own.slice(at, at + 4));
    for (let k = 0; k < 4; k++) own[at + k] /= n;
  }
  return own;
}
