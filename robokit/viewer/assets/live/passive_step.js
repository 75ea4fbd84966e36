// Steps of passive motion: two WebAssembly modules of the robot (robokit/sim/page_step.py). Part of the Worker
// (worker.js).

// A module and its arrays, by name.
class Kernel {
  static async load(module) {
    const { instance } = await WebAssembly.instantiate(await unpacked(module.content, module.bytes, "gzip"), { start: { zero: 0 } });
    const kernel = new Kernel();
    kernel.run = instance.exports.step;
    for (const slot of module.slots) {
      kernel[slot.name] = new Float64Array(instance.exports.memory.buffer, slot.at, slot.count);
    }
    return kernel;
  }
}

class PassiveStep {
  static async load(live) {
    const made = new PassiveStep();
    made.live = live;
    [made.step, made.look] = await Promise.all([Kernel.load(live.step), Kernel.load(live.look)]);
    made.parameters = doubles(live.parameters);
    made.give(ownOf(live));
    return made;
  }

  get q() { return this.step.q; }
  get v() { return this.step.v; }
  get ledger() { return this.step.ledger; }
  get outside() { return this.step.ledger.subarray(this.live.ledger.length); }
  get figures() { return this.look.figures; }
  get places() { return this.look.places; }

  start(q, v) {
    const { step, parameters } = this, dt = step.parameters[0];
    step.parameters.set(parameters);
    step.parameters[0] = dt;
    step.q.set(q);
    step.v.set(v);
    for (const name of ["tau", "ledger", "carried", "held"]) step[name].fill(0);
  }

  // What the next step is handed besides the state.
  hold() {
    const { step, look, live } = this;
    if (live.momentum) step.carried.set(look.kept.subarray(0, 6));
    if (live.energy) step.carried[step.carried.length - 1] = look.kept[6];
  }

  take() {
    const { step } = this;
    step.run();
    for (const name of ["q", "v", "ledger", "carried"]) step[name].set(step[`${name}_next`]);
  }

  see() {
    const { step, look } = this;
    for (const name of ["q", "v", "gravity", "parameters"]) look[name].set(step[name]);
    look.run();
  }

  save() { return ["q", "v", "ledger", "carried"].map((name) => [name, this.step[name].slice()]); }

  restore(saved) { for (const [name, values] of saved) this.step[name].set(values); }

  // ---- what acts -----------------------------------------------------------------------------------

  // A force in world axes at a point of a body, in the next step, as a wrench in the body's coordinates.
  act(body, point, force) {
    const { step, look } = this, k = 12 * (body - 1);
    const f = [0, 1, 2].map((row) => dot(look.places.subarray(k + 3 * row, k + 3 * row + 3), force));
    [...cross(point, f), ...f].forEach((x, j) => { step.held[6 * (body - 1) + j] += x; });
  }

  free() { this.step.held.fill(0); }

  get pushes() { return this.step.pushes; }

  // What the first step is handed besides the state, and what driven joints want, as a row of a sweep has them.
  give({ carried, drives }) {
    if (carried) this.step.carried.set(carried);
    if (drives) this.drive(drives);
  }

  // Whether actuators act: without their gains they give nothing where nothing is asked of them.
  power(on) {
    this.given ??= this.parameters.slice();
    const { motors } = this.live;
    for (const at of motors.gains) this.parameters[at] = this.step.parameters[at] = on ? this.given[at] : 0;
  }

  // What the driven joints are given [N m | N].
  drive(commands) { this.step.drives.set(commands); }

  setGravity(gravity) { this.step.gravity.set(gravity); }

  setStep(dt) { this.step.parameters[0] = dt; }

  // Nothing touches.
  groundGrips = [];

  setFriction() {}

  touching() { return { contacts: new Float32Array(0), normals: new Float32Array(0), bodies: new Uint16Array(0), met: new Float32Array(0) }; }

  forces() { return new Float64Array(3 * this.live.masses.length); }
}
