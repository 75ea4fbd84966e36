// The state of the physics in the page, what acts on it, and its books; steps are taken by contact_step.js or passive_step.js.
// Part of the Worker (worker.js).

// What a hand may do to a body of the mass m in one step without making it swing: k < SOFT m/dt^2, d < SLOW m/dt.
const SOFT = 0.05, SLOW = 0.2;

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const octets = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const doubles = (text) => new Float64Array(octets(text).buffer);

// The bytes of a compressed text, so many of them where that is known.
async function unpacked(text, count, format) {
  const stream = new Blob([octets(text)]).stream().pipeThrough(new DecompressionStream(format));
  const content = new Uint8Array(await new Response(stream).arrayBuffer());
  if (count !== null && content.length !== count) throw new Error("the module is incomplete");
  return content;
}

// What a row of a sweep has of its own, by name.
const ownOf = (live) => Object.fromEntries(live.own.map(([name, values]) => [name, doubles(values)]));

class Physics {
  static async load(live) {
    const physics = new Physics();
    physics.live = live;
    physics.model = await (live.stepper ? ContactStep : PassiveStep).load(live);
    physics.at = Object.fromEntries(live.ledger.map((name, k) => [name, k]));
    physics.gravity = [...live.gravity];
    physics.setStep(live.dt);
    const { motors } = live;
    physics.recorded = physics.commands = motors ? doubles(motors.commands) : null;
    physics.started = false;
    return physics;
  }

  // ---- the state -----------------------------------------------------------------------------------

  start(t, q, v) {
    const { model, live } = this;
    model.start(q || doubles(live.q), v || doubles(live.v));
    model.setGravity(this.gravity);
    if (this.friction !== undefined) model.setFriction(this.friction);
    if (this.commands) this.drive(this.commands, this.powered);
    Object.assign(this, { t, steps: 0, hand: null, push: null, shifted: 0, fell: [0, 0, 0], held: 0, peak: 0, sent: t });
    this.started = true;
    model.see();
    model.hold();
    this.first = model.figures.slice(5);
    this.before = model.ledger.slice();
    this.keep();
  }

  // The last good state, to go back to.
  keep() { this.good = { state: this.model.save(), t: this.t }; }

  goBack() {
    this.model.restore(this.good.state);
    this.t = this.good.t;
  }

  // One step; false where its state is not finite.
  take() {
    const { model, at, live } = this, k = at.impulse_fx;
    if (this.hand || this.push) this.pull();
    const work = model.ledger[at.work], before = model.ledger.slice(k, k + 3);
    model.take();
    const { ledger } = model;
    this.peak = Math.max(this.peak, Math.hypot(ledger[k] - before[0], ledger[k + 1] - before[1], ledger[k + 2] - before[2]) / this.dt);
    if (this.hand) this.held += ledger[at.work] - work;
    this.t += this.dt;
    this.steps += 1;
    for (let j = 0; j < 3; j++) this.fell[j] += live.mass * this.gravity[j] * this.dt;
    if (this.push) {
      this.push = null;
      model.free();
    }
    // The base or first joint shows it soon; the page is told of nothing that is not finite.
    return Number.isFinite(model.q[0] + model.v[0] + ledger[at.contact]);
  }

  get finite() {
    const { q, v } = this.model;
    return q.every(Number.isFinite) && v.every(Number.isFinite);
  }

  // ---- what acts from outside ----------------------------------------------------------------------

  pull() {
    const { model, hand, push } = this;
    model.see();
    model.free();
    if (hand) {
      const p = this.place(hand.body, hand.point);
      const moved = hand.before ? p.map((x, j) => (x - hand.before[j]) / this.dt) : [0, 0, 0];
      hand.before = hand.at = p;
      hand.force = p.map((x, j) => hand.stiffness * (hand.target[j] - x) - hand.damping * moved[j]);
      model.act(hand.body, hand.point, hand.force);
    }
    if (push) model.act(push.body, push.point, push.impulse.map((x) => x / this.dt));
  }

  // Where a point of a body is in the world.
  place(body, point) {
    const a = this.model.places, k = 12 * (body - 1);
    return [0, 1, 2].map((j) => a[k + 9 + j] + a[k + j] * point[0] + a[k + 3 + j] * point[1] + a[k + 6 + j] * point[2]);
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
    this.model.free();
  }

  // What the driven joints are given from now on; null: what they were at the start of the recording. Whether they act.
  drive(commands, powered = true) {
    this.commands = commands ?? this.recorded;
    this.powered = powered;
    this.model.power(powered);
    this.model.drive(powered ? this.commands : this.commands.map(() => 0));
  }

  setFriction(value) {
    this.friction = value;
    this.model.setFriction(value);
  }

  setStep(dt) {
    this.dt = dt;
    this.model.setStep(dt);
    if (this.hand) this.setHand(this.hand);
  }

  // The energy of the place changes: that is work of whoever changes it.
  setGravity(gravity) {
    const { model } = this;
    this.gravity = [...gravity];
    if (!this.started) return;
    model.see();
    const before = model.figures[4];
    model.setGravity(gravity);
    model.see();
    model.hold();
    this.shifted += model.figures[4] - before;
  }

  // ---- what the page is told -----------------------------------------------------------------------

  energies() {
    const { at } = this, { ledger, figures } = this.model;
    const kinetic = figures[3], potential = figures[4];
    const dissipated = ledger[at.contact] + ledger[at.friction] + ledger[at.stops] + ledger[at.collision];
    const work = ledger[at.work] + this.shifted;
    return { kinetic, potential, dissipated, work, total: kinetic + potential + dissipated - work };
  }

  frame() {
    const { model, at, hand } = this;
    model.see();
    const { ledger, figures } = model, { contacts, normals, bodies, met } = model.touching();
    const time = this.t - this.sent, k = at.impulse_fx;
    const force = [0, 1, 2].map((j) => (time > 0 ? (ledger[k + j] - this.before[k + j]) / time : 0));
    const found = {
      t: this.t, steps: this.steps, q: model.q.slice(), v: model.v.slice(), poses: this.poses(),
      com: [...figures.subarray(0, 3)], energy: this.energies(), momentum: [...figures.subarray(5)],
      balance: this.balance(), force, peak: this.peak, forceByBody: Float32Array.from(model.forces()),
      contacts, contactNormals: normals, contactBody: bodies, met,
      hand: hand && { body: hand.body, point: this.place(hand.body, hand.point), target: hand.target, force: hand.force, work: this.held },
      gravity: [...this.gravity],
    };
    this.before.set(ledger);
    this.sent = this.t;
    this.peak = 0;
    return found;
  }

  balance() {
    const { live, at } = this, { ledger, outside, figures } = this.model;
    if (!live.floats) return null;
    return [0, 1, 2, 3, 4, 5].map((j) => figures[5 + j] - this.first[j] - ledger[at.impulse_nx + j]
      - outside[j] - (j < 3 ? 0 : this.fell[j - 3]));
  }

  // (N, 7): position, and the quaternion x y z w of the rotation from body to world axes.
  poses() {
    const a = this.model.places, count = a.length / 12, out = new Float32Array(7 * count);
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
