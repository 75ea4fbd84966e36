// Links at the frames, in world axes: place, orientation and velocity of a point of a link; kinetic energy by body.

// Pose of a link's frame moved to a point of the link, in its body: seven numbers.
function pointOfLink(link, point) {
  const place = new THREE.Vector3(...point).applyQuaternion(new THREE.Quaternion().fromArray(link.pose, 3)).add(new THREE.Vector3().fromArray(link.pose));
  return [place.x, place.y, place.z, ...link.pose.slice(3)];
}

// Rows of the rotation from a link's axes to the world's, and where a point of it is, at the pose of its body.
function placed(poses, at, fixed) {
  if (at < 0) return { rows: rotationRows(fixed, 0), arm: [0, 0, 0], place: fixed.slice(0, 3) };
  const body = rotationRows(poses, at), own = rotationRows(fixed, 0);
  const arm = body.map((row) => dot3(row, fixed));
  return { rows: body.map((row) => [0, 1, 2].map((c) => row[0] * own[0][c] + row[1] * own[1][c] + row[2] * own[2][c])), arm, place: arm.map((part, c) => part + poses[at + c]) };
}

// Roll, pitch and yaw about the fixed axes x, y, z, as URDF has them, of the rotation with these rows.
function rollPitchYaw([[xx, xy], [yx, yy], [zx, zy, zz]]) {
  const level = Math.hypot(zy, zz);
  // Looking straight up or down only roll and yaw together are known: all of it is yaw.
  if (level < 1e-9) return [0, Math.atan2(-zx, level), Math.atan2(-xy, yy)];
  return [Math.atan2(zy, zz), Math.atan2(-zx, level), Math.atan2(yx, xx)];
}

class LinkMotion {
  constructor(data, motion) {
    this.data = data;
    this.motion = motion;
    this.width = data.robot.dof;
    this.now = new Float64Array(6 * data.bodies.name.length);
    this.joints = data.joints.map((joint) => ({ joint, columns: jointColumns(joint), leading: this.leading(joint) }));
  }

  // For a coupled mimic joint the dof that it follows, else null.
  leading(joint) {
    if (!joint.follows) return null;
    const at = joint.follows[0];
    return this.data.joints.filter((joint) => joint.q[0] === at && joint.q[1] > at).map((joint) => joint.v[0])[0] ?? null;
  }

  // Rate of a joint's dof k in the row of v that begins at `row`.
  rate({ joint, leading }, row, k) {
    if (joint.follows) return leading === null ? 0 : joint.follows[1] * this.motion.v[row + leading];
    return this.motion.v[row + joint.v[0] + k];
  }

  // Angular velocity and velocity of the origin of bodies 0..N, six numbers each, at a frame.
  at(frame) {
    const { now, motion, data } = this;
    const { poses } = motion;
    now.fill(0);
    for (const one of this.joints) {
      const i = one.joint.body, above = data.bodies.parent[i];
      const here = 7 * (i - 1 + frame * motion.bodies), there = 7 * (above - 1 + frame * motion.bodies);
      const arm = [0, 1, 2].map((k) => poses[here + k] - (above ? poses[there + k] : 0));
      const spin = [0, 0, 0], slide = [0, 0, 0];
      one.columns.forEach(([angular, linear], k) => {
        const rate = this.rate(one, frame * this.width, k);
        for (let c = 0; c < 3; c++) { spin[c] += rate * angular[c]; slide[c] += rate * linear[c]; }
      });
      const carried = now.subarray(6 * above, 6 * above + 6), moved = cross3(carried, arm);
      rotationRows(poses, here).forEach((row, c) => {
        now[6 * i + c] = carried[c] + dot3(row, spin);
        now[6 * i + 3 + c] = carried[3 + c] + moved[c] + dot3(row, slide);
      });
    }
    return now;
  }

  // {position [m], orientation [rad]} and, where velocities are known, {linear [m/s], angular [rad/s]}: three lines over the
  // frames each, of a point of a link given in the link's axes [m].
  link(name, point = [0, 0, 0]) {
    const { motion } = this;
    const link = this.data.links.find((link) => link.name === name), fixed = pointOfLink(link, point);
    const lines = { position: [[], [], []], orientation: [[], [], []] };
    if (motion.v) Object.assign(lines, { linear: [[], [], []], angular: [[], [], []] });
    for (let frame = 0; frame < motion.count; frame++) {
      const { rows, arm, place } = placed(motion.poses, link.body ? 7 * (link.body - 1 + frame * motion.bodies) : -1, fixed);
      place.forEach((part, c) => lines.position[c].push(part));
      // Angles go on beyond a half turn.
      rollPitchYaw(rows).forEach((angle, c) => {
        const before = lines.orientation[c][frame - 1] ?? angle;
        lines.orientation[c].push(angle - 2 * Math.PI * Math.round((angle - before) / (2 * Math.PI)));
      });
      if (!motion.v) continue;
      const own = this.at(frame).subarray(6 * link.body, 6 * link.body + 6), moved = cross3(own, arm);
      for (let c = 0; c < 3; c++) {
        lines.angular[c].push(own[c]);
        lines.linear[c].push(own[3 + c] + moved[c]);
      }
    }
    return lines;
  }

  // Kinetic energy of bodies 1..N over the frames [J], without that of rotors.
  energies() {
    const { motion } = this;
    const { inertial } = this.data.bodies;
    const lines = Array.from({ length: motion.bodies }, () => new Array(motion.count));
    for (let frame = 0; frame < motion.count; frame++) {
      const now = this.at(frame);
      for (let i = 1; i <= motion.bodies; i++) {
        const rows = rotationRows(motion.poses, 7 * (i - 1 + frame * motion.bodies));
        const own = [0, 3].map((first) => [0, 1, 2].map((c) => rows[0][c] * now[6 * i + first] + rows[1][c] * now[6 * i + first + 1] + rows[2][c] * now[6 * i + first + 2]));
        const [w, v] = own;
        const [m, mx, my, mz, xx, xy, yy, xz, yz, zz] = inertial[i];
        const turned = [xx * w[0] + xy * w[1] + xz * w[2], xy * w[0] + yy * w[1] + yz * w[2], xz * w[0] + yz * w[1] + zz * w[2]];
        lines[i - 1][frame] = 0.5 * m * dot3(v, v) + dot3([mx, my, mz], cross3(v, w)) + 0.5 * dot3(w, turned);
      }
    }
    return lines;
  }
}
