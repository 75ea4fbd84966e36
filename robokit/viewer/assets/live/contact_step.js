// Steps of the integrator "contact": one WebAssembly module for all robots (robokit/sim/page_step.py). The robot and
// its ground are arrays in its memory. Part of the Worker (worker.js).

// What a step may find no place for, in the order in which it says how much it needs.
const ROOM = ["n_contacts", "n_near", "n_candidates", "n_constraints", "n_rows", "n_fill", "n_noted", "n_noted_contacts"];

// Memory to work in, at first and at most [bytes].
const SPARE = 65536, MOST_SPARE = 2 ** 26;

// The arrays in their order, as StepperData says what they are.
const tablesOf = (stepper) => stepper.arrays.split(",").map((table) => {
  const [name, ...extents] = table.replace(/^[\d#*]+/, "").split(" ");
  return { name, extents, bytes: parseInt(table) || 0, whole: table.includes("#"), kept: table.includes("*") };
});

class ContactStep {
  static async load(live) {
    const made = new ContactStep(), { stepper } = live;
    made.live = live;
    const { instance } = await WebAssembly.instantiate(await unpacked(stepper.module, stepper.bytes, "gzip"), { start: { zero: 0 } });
    made.exports = instance.exports;
    made.sizes = new Map(stepper.sizes);
    made.spare = SPARE;
    made.layout();
    const numbers = await unpacked(stepper.numbers, null, "deflate");
    let from = 0;
    // The lowest bytes of all numbers stand first, then all second ones and so on.
    for (let byte = 0; byte < 8; byte++) {
      for (const { name, bytes } of tablesOf(stepper)) {
        const values = made.x[name], size = values.BYTES_PER_ELEMENT, to = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
        for (let at = byte; byte < bytes && at < to.length; at += size, from++) to[at] = numbers[from];
      }
    }
    made.faceNormals();
    made.x.watched[0] = 2;
    // Numbers of a contact and of a link that a step notes (robokit/contact/monitor.py).
    [made.ofContact, made.ofLink] = ["noted_contact", "noted_link"].map((name) => Number(tablesOf(stepper).find((one) => one.name === name).extents.at(-1)));
    // Bodies of the links that can touch the ground.
    made.bodyOfLink = [];
    made.x.link_of_shape.forEach((link, k) => { if (link >= 0) made.bodyOfLink[link] = made.x.shape_body[k]; });
    made.grips = made.x.shape_friction.slice();
    made.give(ownOf(live));
    return made;
  }

  // Places of all arrays, and a view of each by its name; what is in those of before is kept.
  layout() {
    const { sizes, live: { stepper } } = this, { memory } = this.exports;
    const before = Object.entries(this.x || {}).map(([name, values]) => [name, values.slice()]), lengths = [...sizes.values()];
    let end = 8;
    const tables = tablesOf(stepper).map(({ extents, ...table }) => {
      const count = extents.reduce((product, size) => product * (size[0] === "@" ? lengths[size.slice(1)] : size), 1), at = end;
      end += 8 * (count + 1);
      return { ...table, at, count };
    });
    const room = end + this.spare;
    const missing = Math.ceil((room - memory.buffer.byteLength) / 65536);
    if (missing > 0) memory.grow(missing);
    new Uint8Array(memory.buffer).fill(0);
    this.x = {};
    tables.forEach(({ whole, name, at, count }) => { this.x[name] = new (whole ? Int32Array : Float64Array)(memory.buffer, at, count); });
    for (const [name, values] of before) {
      this.x[name].set(values);
      if (name.endsWith("_pair")) this.x[name].fill(-1, values.length);
    }
    const places = tables.map(({ at }) => at);
    this.given = [...lengths, ...places.slice(0, stepper.steps), end, room];
    this.shown = [...lengths, ...places];
  }

  // Normals of the faces of hulls, from their corners, as collision/shapes.py has them.
  faceNormals() {
    const { x } = this;
    for (let k = 0; k < x.shape_body.length; k++) {
      const [first, count] = x.shape_faces.subarray(2 * k, 2 * k + 2), from = x.shape_corners[2 * k];
      for (let face = first; face < first + count; face++) {
        const [start, corners] = x.face_corners.subarray(2 * face, 2 * face + 2), n = [0, 0, 0];
        const at = (m) => 3 * (from + x.polygon[start + m]), off = (m) => [0, 1, 2].map((c) => x.corners[at(m) + c] - x.corners[at(0) + c]);
        for (let m = 1; m < corners - 1; m++) cross(off(m), off(m + 1)).forEach((each, c) => { n[c] += each; });
        const length = Math.sqrt(dot(n, n));
        x.face_normal.set(n.map((each) => each / length), 3 * face);
      }
    }
  }

  get q() { return this.x.q; }
  get v() { return this.x.v; }
  get ledger() { return this.x.ledger; }
  get outside() { return this.x.outside_impulse; }
  get figures() { return this.x.figures; }
  get places() { return this.x.places.subarray(12); }

  start(q, v) {
    const { x, live: { stepper } } = this;
    for (const { name, kept } of tablesOf(stepper)) if (kept) x[name].fill(name.endsWith("_pair") ? -1 : 0);
    this.acting = 0;
    x.push_wrench.fill(0);
    x.q.set(q);
    x.v.set(v);
  }

  // What the next step is handed besides the state follows from that.
  hold() { this.x.kept.fill(0); }

  // Takes the step again where there was no place for what it found, or no room to work in.
  take() {
    for (;;) {
      this.x.noted.fill(0);
      const status = this.exports.contact_step(...this.given), { x } = this, { needed } = x;
      if (!status && !needed[0]) return;
      if (status) {
        if (this.spare > MOST_SPARE) throw new Error("not enough memory for the step");
        for (const name of ["q", "v", "near_pair", "near_direction", "near_corners"]) x[name].set(x[`${name}_before`]);
        this.spare *= 4;
      }
      ROOM.forEach((name, k) => { if (needed[1 + k] > this.sizes.get(name)) this.sizes.set(name, needed[1 + k] + (needed[1 + k] >> 1)); });
      needed.fill(0);
      this.layout();
    }
  }

  see() { this.exports.contact_look(...this.shown); }

  save() {
    const { stepper } = this.live;
    return tablesOf(stepper).filter(({ kept }) => kept).map(({ name }) => [name, this.x[name].slice()]);
  }

  restore(saved) {
    for (const [name, values] of saved) {
      this.x[name].set(values);
      if (name.endsWith("_pair")) this.x[name].fill(-1, values.length);
    }
    this.x.noted.fill(0);
  }

  // ---- what acts -----------------------------------------------------------------------------------

  // A force in world axes at a point of a body, in the next step.
  act(body, point, force) {
    const { x } = this, k = this.pushes.length / 6 + this.acting++;
    x.push_body[k] = body;
    x.push_point.set(point, 3 * k);
    x.push_wrench.set(force, 6 * k + 3);
  }

  free() {
    this.acting = 0;
    this.x.push_wrench.fill(0, this.pushes.length);
  }

  // Those of the run itself, six numbers each; the last two are the hand's.
  get pushes() { return this.x.push_wrench.subarray(0, -12); }

  // Arrays of a row of a sweep that differ from those of the program, and what its driven joints want.
  give(own) {
    const { x } = this;
    for (const [name, values] of Object.entries(own)) if (name in x && name !== "q" && name !== "v") x[name].set(values);
    if (own.drives) this.drive(own.drives);
    this.grips = x.shape_friction.slice();
  }

  // Whether actuators act: without their gains they give nothing where nothing is asked of them.
  power(on) {
    this.motorGains ??= this.x.motor_gains.slice();
    this.x.motor_gains.set(on ? this.motorGains : this.motorGains.map(() => 0));
  }

  // What the driven joints are given [N m | N].
  drive(commands) { commands.forEach((wanted, k) => { this.x.motor_command[2 * k] = wanted; }); }

  setGravity(gravity) { this.x.gravity.set(gravity); }

  setStep(dt) { this.x.dt[0] = dt; }

  // Least and largest coefficient of friction on the ground, if anything can touch it.
  get groundGrips() {
    const { ground_shapes: [count], shape_body: body } = this.x, own = Array.from(this.grips.subarray(0, count));
    const of = Array.from(this.grips).filter((_, k) => body[k]);
    const found = [...own.filter((mu) => mu >= 0), ...(own.some((mu) => mu < 0) ? of : [])];
    return found.length && of.length ? [Math.min(...found), Math.max(...found)] : [];
  }

  setFriction(value) {
    for (let k = 0; k < this.x.ground_shapes[0]; k++) this.x.shape_friction[k] = value ?? this.grips[k];
  }

  // ---- what the ground did in the last step, as the step noted it ------------------------------------

  touching() {
    const { x, ofContact: wide } = this;
    // A row: two shapes, place, force on the second, and at its end the normal. Those that press.
    const pressing = Array.from({ length: x.noted[1] }, (_, k) => x.noted_contact.subarray(wide * k, wide * (k + 1))).filter((row) => row[5] || row[6] || row[7]);
    const rows = pressing.filter((row) => x.shape_body[row[0]] === 0), between = pressing.filter((row) => x.shape_body[row[0]] > 0);
    const flat = (parts) => Float32Array.from(parts.flatMap((part) => [...part]));
    return {
      contacts: flat(rows.map((row) => row.subarray(2, 8))), normals: flat(rows.map((row) => row.subarray(wide - 3))), bodies: Uint16Array.from(rows, (row) => x.shape_body[row[1]]),
      met: flat(between.flatMap((row) => [row.subarray(2, 8), row.subarray(wide - 3)])),
    };
  }

  // Of the ground on each body, (N, 3).
  forces() {
    const { x } = this, out = new Float64Array(3 * (this.sizes.get("n_bodies") - 1));
    if (x.noted[0]) this.bodyOfLink.forEach((body, link) => { for (let c = 0; c < 3; c++) out[3 * (body - 1) + c] += x.noted_link[this.ofLink * link + c]; });
    return out;
  }
}
