// The state of the physics in the page, its steps, what acts on it, and its books. Part of the Worker (worker.js).

// What a hand may do to a body of the mass m in one step without making it swing: k < SOFT m/dt^2, d < SLOW m/dt.
const SOFT = 0.05, SLOW = 0.2;

// A module and its arrays, by name.
class Kernel {
  static async load(module) {
    const packed = Uint8Array.from(atob(module.content), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = await new Response(stream).arrayBuffer();
    if (code.byteLength !== module.bytes) throw new Error("the module is not whole");
    const { instance } = await WebAssembly.instantiate(code, { start: { zero: 0 } });
    const kernel = new Kernel();
    kernel.run = instance.exports.step;
    for (const slot of module.slots) {
      kernel[slot.name] = new Float64Array(instance.exports.memory.buffer, slot.at, slot.count);
    }
    return kernel;
  }
}

const doubles = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

class Physics {
  static async load(live) {
    const physics = new Physics();
    physics.live = live;
    [physics.step, physics.look] = await Promise.all([Kernel.load(live.step), Kernel.load(live.look)]);
    physics.parameters = doubles(live.parameters);
    for (const [name, values] of live.tables) {
      for (const kernel of [physics.step, physics.look]) kernel[name].set(doubles(values));
    }
    physics.at = Object.fromEntries(live.ledger.map((name, k) => [name, k]));
    physics.gravity = [...live.gravity];
    physics.dt = live.dt;
    physics.started = false;
    return physics;
  }

  // ---- the state -----------------------------------------------------------------------------------

  start(t, q, v) {
    const { step, live } = this;
    step.parameters.set(this.parameters);
    step.parameters[0] = this.dt;
    step.gravity.set(this.gravity);
    step.q.set(q || doubles(live.q));
    step.v.set(v || doubles(live.v));
    step.tau.fill(0);
    step.ledger.fill(0);
    step.carried.fill(0);
    step.held.fill(0);
    if (this.friction !== undefined) this.setFriction(this.friction);
    Object.assign(this, { t, steps: 0, hand: null, push: null, shifted: 0, fell: [0, 0, 0], held: 0, peak: 0, sent: t });
    this.started = true;
    this.see();
    this.hold();
    this.first = this.look.figures.slice(5);
    this.before = step.ledger.slice();
    this.keep();
  }

  // What the next step is handed besides the state.
  hold() {
    const { step, look, live } = this;
    if (live.momentum) step.carried.set(look.kept.subarray(0, 6));
    if (live.energy) step.carried[step.carried.length - 1] = look.kept[6];
  }

  see() {
    const { step, look } = this;
    for (const name of ["q", "v", "gravity", "parameters"]) look[name].set(step[name]);
    look.run();
  }

  // The last good state, to go back to.
  keep() {
    const { step } = this;
    this.good = { q: step.q.slice(), v: step.v.slice(), ledger: step.ledger.slice(), carried: step.carried.slice(), t: this.t };
  }

  // One step; false where its state is not finite.
  take() {
    const { step, at, live } = this;
    if (this.hand || this.push) this.pull();
    step.run();
    const k = at.impulse_fx, { ledger, ledger_next: next } = step;
    this.peak = Math.max(this.peak, Math.hypot(next[k] - ledger[k], next[k + 1] - ledger[k + 1], next[k + 2] - ledger[k + 2]) / this.dt);
    if (this.hand) this.held += next[at.work] - ledger[at.work];
    step.q.set(step.q_next);
    step.v.set(step.v_next);
    ledger.set(next);
    step.carried.set(step.carried_next);
    this.t += this.dt;
    this.steps += 1;
    for (let j = 0; j < 3; j++) this.fell[j] += live.mass * this.gravity[j] * this.dt;
    if (this.push) {
      this.push = null;
      step.held.fill(0);
    }
    // The base or first joint shows it soon; the page is told of nothing that is not finite.
    return Number.isFinite(step.q[0] + step.v[0] + ledger[at.contact]);
  }

  get finite() {
    const { q, v } = this.step;
    return q.every(Number.isFinite) && v.every(Number.isFinite);
  }

  // ---- what acts from outside ----------------------------------------------------------------------

  pull() {
    const { step, hand, push } = this;
    this.see();
    step.held.fill(0);
    if (hand) {
      const p = this.place(hand.body, hand.point);
      const moved = hand.before ? p.map((x, j) => (x - hand.before[j]) / this.dt) : [0, 0, 0];
      hand.before = hand.at = p;
      hand.force = p.map((x, j) => hand.stiffness * (hand.target[j] - x) - hand.damping * moved[j]);
      this.apply(hand.body, hand.point, hand.force);
    }
    if (push) this.apply(push.body, push.point, push.impulse.map((x) => x / this.dt));
  }

  // Where a point of a body is in the world.
  place(body, point) {
    const a = this.look.places, k = 12 * (body - 1);
    return [0, 1, 2].map((j) => a[k + 9 + j] + a[k + j] * point[0] + a[k + 3 + j] * point[1] + a[k + 6 + j] * point[2]);
  }

  // A force in world axes at a point of a body, as a wrench in the body's coordinates.
  apply(body, point, force) {
    const { step, look } = this, k = 12 * (body - 1);
    const f = [0, 1, 2].map((row) => dot(look.places.subarray(k + 3 * row, k + 3 * row + 3), force));
    [...cross(point, f), ...f].forEach((x, j) => { step.held[6 * (body - 1) + j] += x; });
  }

  setHand({ body, point, target, stiffness, damping }) {
    const { live, dt, hand } = this, m = this.inertia(body);
    const same = hand && hand.body === body && hand.point.every((x, j) => x === point[j]);
    if (!same) this.held = 0;
    this.hand = {
      body, point, target, at: null, force: [0, 0, 0],
      before: same ? hand.before : null,
      stiffness: Math.min(stiffness ?? live.stiffness, (SOFT * m) / (dt * dt)),
      damping: Math.min(damping ?? live.damping, (SLOW * m) / dt),
    };
  }

  // Mass that a hand feels at least: of the body itself.
  inertia(body) {
    const { live } = this;
    return Math.max(live.masses[body - 1], 1e-3 * live.mass);
  }

  release() {
    this.hand = null;
    this.step.held.fill(0);
  }

  setFriction(value) {
    const { live } = this, [first, count] = live.friction;
    this.friction = value;
    for (let k = first; k < first + count; k++) this.step.parameters[k] = value ?? this.parameters[k];
  }

  setStep(dt) {
    this.dt = this.step.parameters[0] = dt;
    if (this.hand) this.setHand(this.hand);
  }

  // The energy of the place changes: that is work of whoever changes it.
  setGravity(gravity) {
    this.gravity = [...gravity];
    if (!this.started) return;
    this.see();
    const before = this.look.figures[4];
    this.step.gravity.set(gravity);
    this.see();
    this.hold();
    this.shifted += this.look.figures[4] - before;
  }

  // ---- what the page is told -----------------------------------------------------------------------

  energies() {
    const { at, look } = this, { ledger } = this.step;
    const kinetic = look.figures[3], potential = look.figures[4];
    const dissipated = ledger[at.contact] + ledger[at.friction] + ledger[at.stops] + ledger[at.collision];
    const work = ledger[at.work] + this.shifted;
    return { kinetic, potential, dissipated, work, total: kinetic + potential + dissipated - work };
  }

  // Of the ground on each body in the last step, (N, 3).
  forces() {
    const { step, live } = this, sums = new Float64Array(3 * live.masses.length);
    live.contacts.forEach((body, k) => {
      for (let j = 0; j < 3; j++) sums[3 * (body - 1) + j] += step.forces[3 * k + j];
    });
    return sums;
  }

  frame() {
    this.see();
    const { step, look, live, at, hand } = this, { ledger } = step;
    const touch = [];
    for (let k = 0; k < live.contacts.length; k++) {
      if (step.forces[3 * k] || step.forces[3 * k + 1] || step.forces[3 * k + 2]) touch.push(k);
    }
    const rows = (a, k) => a.subarray(3 * k, 3 * k + 3);
    const time = this.t - this.sent, k = at.impulse_fx;
    const force = [0, 1, 2].map((j) => (time > 0 ? (ledger[k + j] - this.before[k + j]) / time : 0));
    const found = {
      t: this.t, steps: this.steps, q: step.q.slice(), v: step.v.slice(), poses: this.poses(),
      com: [...look.figures.subarray(0, 3)], energy: this.energies(), momentum: [...look.figures.subarray(5)],
      balance: this.balance(), force, peak: this.peak, forceByBody: Float32Array.from(this.forces()),
      contacts: Float32Array.from(touch.flatMap((n) => [...rows(look.points, n), ...rows(step.forces, n)])),
      contactBody: Uint16Array.from(touch.map((n) => live.contacts[n])),
      hand: hand && { body: hand.body, point: this.place(hand.body, hand.point), target: hand.target, force: hand.force, work: this.held },
      gravity: [...this.gravity],
    };
    this.before.set(ledger);
    this.sent = this.t;
    this.peak = 0;
    return found;
  }

  balance() {
    const { live, at } = this, { ledger } = this.step, size = live.ledger.length;
    if (!live.floats) return null;
    return [0, 1, 2, 3, 4, 5].map((j) => this.look.figures[5 + j] - this.first[j] - ledger[at.impulse_nx + j]
      - ledger[size + j] - (j < 3 ? 0 : this.fell[j - 3]));
  }

  // (N, 7): position, and the quaternion x y z w of the rotation from body to world axes.
  poses() {
    const a = this.look.places, count = a.length / 12, out = new Float32Array(7 * count);
    for (let i = 0; i < count; i++) {
      const [xx, yx, zx, xy, yy, zy, xz, yz, zz, ...r] = a.subarray(12 * i, 12 * i + 12);
      const q = [xx - yy - zz, yy - xx - zz, zz - xx - yy, xx + yy + zz];
      const k = q.indexOf(Math.max(...q)), big = Math.sqrt(1 + q[k]) / 2, f = 0.25 / big;
      const rest = [
        [0, (xy + yx) * f, (xz + zx) * f, (zy - yz) * f],
        [(xy + yx) * f, 0, (yz + zy) * f, (xz - zx) * f],
        [(xz + zx) * f, (yz + zy) * f, 0, (yx - xy) * f],
        [(zy - yz) * f, (xz - zx) * f, (yx - xy) * f, 0],
      ][k];
      rest[k] = big;
      out.set([...r, ...rest], 7 * i);
    }
    return out;
  }
}
