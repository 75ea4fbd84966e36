// What the algorithms are given: the state that the scene shows, with what the ground does to it.

class WalkInputs {
  static async open(page) {
    const { walk } = page.data;
    return new WalkInputs(page, walk.touched ? await wholeNumbers(walk.touched) : []);
  }

  // `contactBody`: of each point of the recording's contacts.
  constructor(page, contactBody) {
    this.page = page;
    this.contactBody = contactBody;
    this.gravity = [...page.data.walk.gravity];
    this.dof = page.data.robot.dof;
    this.bodies = page.data.bodies.name.length;
  }

  // The frame that the scene shows, with a fraction: after a motion blew up, its last sound one.
  frame() { return Math.max(0, Math.min(this.page.frame(), this.page.motion.sane - 1)); }

  // { time, flat }: of the frame [s], null where nothing moves; and all numbers in the order of the program's inputs.
  now() {
    const { page, dof } = this, { motion } = page, still = new Array(dof).fill(0);
    const own = (q) => upright(page.data.joints, q);
    if (page.posed || !motion.v) return { time: null, flat: [...this.gravity, ...own(page.configuration()), ...still, ...still] };
    const frame = this.frame();
    const tau = motion.tau ? motion.mixed(motion.tau, dof, frame) : still;
    const gravity = motion.gravity ? motion.mixed(motion.gravity, 3, Math.round(frame)) : this.gravity;
    return { time: motion.mixed(motion.t, 1, frame)[0], flat: [...gravity, ...own(motion.coordinates(frame)), ...motion.mixed(motion.v, dof, frame), ...tau, ...this.forces(frame)] };
  }

  // Of the ground on bodies 0..N about their origins, in their coordinates: moment, force. The points are those that
  // the scene draws, of the nearest frame.
  forces(frame) {
    const { motion } = this.page, found = new Float64Array(6 * this.bodies);
    const k = motion.nearest(frame), start = motion.contactStart?.[k];
    if (!motion.contacts || start === undefined) return found;
    const bodies = motion.contactBody ?? this.contactBody; // a live run has its own
    for (let i = start; i < motion.contactStart[k + 1]; i++) {
      const body = bodies[i];
      if (!body) continue;
      const at = 7 * (body - 1 + k * motion.bodies), rows = rotationRows(motion.poses, at);
      const [x, y, z, ...force] = motion.contacts.slice(6 * i, 6 * i + 6);
      const moment = cross3([x, y, z].map((one, c) => one - motion.poses[at + c]), force);
      for (let c = 0; c < 3; c++) {
        for (let r = 0; r < 3; r++) {
          found[6 * body + c] += rows[r][c] * moment[r];
          found[6 * body + 3 + c] += rows[r][c] * force[r];
        }
      }
    }
    return found;
  }
}
