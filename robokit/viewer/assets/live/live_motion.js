// The last seconds of a live run, read as a recorded motion is: scrub bar, overlays and cameras see no difference.

// Frames that are kept, 30 s at 60 Hz, and how many numbers at most: long robots keep fewer frames. The tables hold
// twice as many, so that old frames are seldom moved out.
const KEPT_FRAMES = 1800;
const KEPT_NUMBERS = 6e6;

class LiveMotion extends Motion {
  constructor(data) {
    const empty = { count: 0, t: "", poses: "", q: "", com: "", v: "", momentum: "", force: "", contacts: "", contact_normals: "", contact_count: "", met: "", met_count: "" };
    super(empty, data.bodies.name.length - 1);
    this.nq = Math.max(0, ...data.joints.map((joint) => joint.q[1]));
    this.widths = { t: 1, poses: 7 * this.bodies, q: this.nq, v: data.robot.dof, com: 3, momentum: 6, force: 3, peak: 1, energy: 5, gravity: 3 };
    const width = Object.values(this.widths).reduce((sum, one) => sum + one, 0);
    this.kept = Math.max(60, Math.min(KEPT_FRAMES, Math.floor(KEPT_NUMBERS / width)));
    this.rows = {};
    for (const [key, count] of Object.entries(this.widths)) this.rows[key] = new Float64Array(2 * this.kept * count);
    this.touching = [];
    const { mass, size } = data.robot;
    this.weight = 9.81 * mass;
    // The momentum of a fall from the robot's own size, and of turning that fast.
    const fast = Math.sqrt(2 * 9.81 * size);
    this.momenta = [0.25 * mass * fast * size, mass * fast];
    this.clear();
  }

  largestMomenta() { return this.momenta; }

  // Nobody knows yet: arrows are as long as in a hard fall.
  largestForce() { return 50 * this.weight; }

  clear() {
    this.from = this.count = 0;
    this.touching.length = 0;
    this.contacts = [];
    this.normals = [];
    this.contactBody = [];
    this.contactStart = [0];
    this.met = [];
    this.metStart = [0];
    this.show();
  }

  // A frame of the Worker (worker.js).
  push(frame) {
    let end = this.from + this.count;
    if (end === 2 * this.kept) {
      for (const [key, width] of Object.entries(this.widths)) this.rows[key].copyWithin(0, this.from * width, end * width);
      this.from = 0;
      end = this.count;
    }
    const { kinetic, potential, dissipated, work, total } = frame.energy;
    // As in a recording: the force of a frame is that of the step before it, so that the arrows add up to it.
    const force = [0, 0, 0];
    frame.contacts.forEach((value, k) => { if (k % 6 > 2) force[(k % 6) - 3] += value; });
    const given = { ...frame, t: [frame.t], force, peak: [frame.peak], energy: [kinetic, potential, dissipated, work, total] };
    for (const [key, width] of Object.entries(this.widths)) this.rows[key].set(given[key], end * width);
    // Neighbouring quaternions without a jump of sign can be mixed.
    if (this.count) alignTurns(this.rows.poses, end * this.widths.poses, this.widths.poses);
    this.touching.push({ points: frame.contacts, normals: frame.contactNormals, bodies: frame.contactBody, met: frame.met });
    if (this.count === this.kept) {
      this.from += 1;
      this.touching.shift();
    } else {
      this.count += 1;
    }
    this.show();
  }

  // What readers of a motion read: views of the frames that are kept.
  show() {
    for (const [key, width] of Object.entries(this.widths)) this[key] = this.rows[key].subarray(this.from * width, (this.from + this.count) * width);
    this.sane = this.count;
    this.duration = this.count ? this.t[this.count - 1] : 0;
  }

  // The contacts of one frame in the layout of a recording: overlays ask for one frame at a time.
  at(frame) {
    const k = this.nearest(frame);
    this.contacts = this.touching[k]?.points || [];
    this.normals = this.touching[k]?.normals || [];
    this.contactBody = this.touching[k]?.bodies || [];
    this.contactStart = { [k]: 0, [k + 1]: this.contacts.length / 6 };
    this.met = this.touching[k]?.met || [];
    this.metStart = { [k]: 0, [k + 1]: this.met.length / 9 };
    return super.at(frame);
  }
}
