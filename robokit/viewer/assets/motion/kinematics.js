// Motion between stored frames, and forward kinematics in the page for the joint sliders.

class Motion {
  constructor(frames, bodies) {
    this.count = frames.count;
    this.sane = frames.sane ?? Infinity;
    this.bodies = bodies;
    this.t = floats(frames.t);
    this.poses = floats(frames.poses);
    this.q = floats(frames.q);
    this.nq = this.q.length / Math.max(this.count, 1);
    this.v = frames.v ? floats(frames.v) : null;
    this.tau = frames.tau ? floats(frames.tau) : null;
    this.com = floats(frames.com);
    this.momentum = frames.momentum ? floats(frames.momentum) : null;
    this.force = frames.force ? floats(frames.force) : null;
    this.contacts = frames.contacts ? floats(frames.contacts) : null;
    this.normals = frames.contact_normals ? floats(frames.contact_normals) : null;
    // Between bodies: place, force on the second, normal out of the first.
    this.met = frames.met ? floats(frames.met) : null;
    const starts = (count) => floats(count).reduce((found, n, k) => [...found, found[k] + n], [0]);
    if (this.contacts) this.contactStart = starts(frames.contact_count);
    if (this.met) this.metStart = starts(frames.met_count);
    this.current = new Float32Array(7 * bodies);
    this.duration = this.count ? this.t[this.count - 1] : 0;
  }

  // Frame number at a time, with a fraction.
  frameAt(time) {
    let low = 0, high = this.count - 1;
    if (time <= this.t[0]) return 0;
    if (time >= this.t[high]) return high;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.t[middle] <= time) low = middle;
      else high = middle;
    }
    return low + (time - this.t[low]) / (this.t[high] - this.t[low]);
  }

  // The frame whose contacts are shown: an event lies in the middle of its step, whose force belongs to its end.
  nearest(frame) { return Math.min(Math.round(frame + 0.01), this.count - 1); }

  // Poses at a fractional frame. Neighbouring quaternions have no jump of sign, so mixing them is sound.
  // After a motion blew up, its last sound pose stays.
  at(frame) {
    const held = Math.min(frame, this.sane - 1);
    const k = Math.min(Math.floor(held), this.count - 1), rest = held - k;
    const width = 7 * this.bodies, here = k * width, next = rest > 0 ? here + width : here;
    for (let i = 0; i < width; i++) this.current[i] = this.poses[here + i] + rest * (this.poses[next + i] - this.poses[here + i]);
    for (let i = 3; i < width; i += 7) {
      const c = this.current;
      const n = 1 / Math.hypot(c[i], c[i + 1], c[i + 2], c[i + 3]);
      c[i] *= n; c[i + 1] *= n; c[i + 2] *= n; c[i + 3] *= n;
    }
    return this.current;
  }

  mixed(values, width, frame) {
    const k = Math.min(Math.floor(frame), this.count - 1), rest = frame - k;
    const next = rest > 0 ? k + 1 : k;
    return Array.from({ length: width }, (_, i) => values[k * width + i] + rest * (values[next * width + i] - values[k * width + i]));
  }

  vector(values, frame) { return new THREE.Vector3().fromArray(this.mixed(values, 3, frame)); }

  // Where the frame of a link, or a point of a body, is at a fractional frame.
  placeOf(link, frame) {
    const place = new THREE.Vector3().fromArray(link.pose);
    if (link.body === 0) return place;
    const k = Math.min(Math.floor(frame), this.count - 1), rest = frame - k, width = 7 * this.bodies;
    const at = (one) => {
      const from = one * width + 7 * (link.body - 1);
      return place.clone().applyQuaternion(new THREE.Quaternion().fromArray(this.poses, from + 3)).add(new THREE.Vector3().fromArray(this.poses, from));
    };
    return rest > 0 ? at(k).lerp(at(k + 1), rest) : at(k);
  }

  // The largest angular and linear momentum, which their arrows are scaled by.
  largestMomenta() {
    const h = this.momentum, largest = [0, 0];
    for (let k = 0; k < this.count; k++) {
      largest[0] = Math.max(largest[0], Math.hypot(h[6 * k], h[6 * k + 1], h[6 * k + 2]));
      largest[1] = Math.max(largest[1], Math.hypot(h[6 * k + 3], h[6 * k + 4], h[6 * k + 5]));
    }
    return largest;
  }

  // Of a single point, or of the ground as a whole where points are not known [N].
  largestForce() {
    let most = 0;
    for (const [values, width, first] of [this.contacts ? [this.contacts, 6, 3] : [this.force || [], 3, 0], [this.met || [], 9, 3]]) {
      for (let k = first; k < values.length; k += width) most = Math.max(most, Math.hypot(values[k], values[k + 1], values[k + 2]));
    }
    return most;
  }

  // The contacts of a frame, { place, force, normal } each, with `up` where normals are not stored; then those between
  // bodies, of which the force is that on the second.
  contactsAt(frame, up = [0, 0, 1]) {
    const { contacts, contactStart, normals, met, metStart } = this, k = this.nearest(frame);
    const vector = (values, at) => new THREE.Vector3().fromArray(values, at);
    const rows = (start, make) => Array.from({ length: start ? start[k + 1] - start[k] : 0 }, (_, i) => make(start[k] + i));
    const normal = (i) => (normals?.length ? vector(normals, 3 * i) : vector(up, 0));
    return [
      ...rows(contactStart, (i) => ({ place: vector(contacts, 6 * i), force: vector(contacts, 6 * i + 3), normal: normal(i) })),
      ...rows(metStart, (i) => ({ place: vector(met, 9 * i), force: vector(met, 9 * i + 3), normal: vector(met, 9 * i + 6), between: true })),
    ];
  }

  coordinates(frame) { return this.mixed(this.q, this.nq, frame); }
}

// Body poses of a configuration, seven numbers a body, body 1 first: X_parent * placement * X_J(q).
function forwardKinematics(data, q) {
  const places = data.bodies.name.map(() => null);
  places[0] = { p: new THREE.Vector3(), r: new THREE.Quaternion() };
  for (const joint of data.joints) {
    const above = places[data.bodies.parent[joint.body]];
    const fixed = { p: new THREE.Vector3().fromArray(joint.placement), r: new THREE.Quaternion().fromArray(joint.placement, 3) };
    // A coupled mimic joint has no coordinate; its placement holds the offset already.
    const own = joint.follows ? [joint.follows[1] * (q[joint.follows[0]] || 0)] : q.slice(...joint.q);
    places[joint.body] = chain(chain(above, fixed), jointPose(joint, own));
  }
  return places.slice(1).flatMap(({ p, r }) => [p.x, p.y, p.z, r.x, r.y, r.z, r.w]);
}

function chain(a, b) {
  return { p: b.p.clone().applyQuaternion(a.r).add(a.p), r: a.r.clone().multiply(b.r) };
}

function jointPose(joint, q) {
  const axis = new THREE.Vector3(...joint.axis);
  const turn = (angle) => new THREE.Quaternion().setFromAxisAngle(axis, angle);
  const still = () => new THREE.Quaternion();
  const wxyz = (a) => new THREE.Quaternion(a[1], a[2], a[3], a[0]);
  switch (joint.kind) {
    case "revolute": case "continuous": return { p: new THREE.Vector3(), r: turn(q[0]) };
    case "prismatic": return { p: axis.multiplyScalar(q[0]), r: still() };
    case "helical": { const r = turn(q[0]); return { p: axis.multiplyScalar(joint.pitch * q[0]), r }; }
    case "cylindrical": { const r = turn(q[0]); return { p: axis.multiplyScalar(q[1]), r }; }
    case "planar": {
      const [one, two] = planeAxes(axis);
      return { p: one.multiplyScalar(q[1]).addScaledVector(two, q[2]), r: turn(q[0]) };
    }
    case "spherical": return { p: new THREE.Vector3(), r: wxyz(q) };
    case "floating": return { p: new THREE.Vector3(q[4], q[5], q[6]), r: wxyz(q) };
    default: return { p: new THREE.Vector3(), r: still() };
  }
}

// The in-plane axes of a planar joint: the coordinate axis after the normal's largest one, made perpendicular.
function planeAxes(n) {
  const parts = n.toArray().map(Math.abs);
  const e = new THREE.Vector3().setComponent((parts.indexOf(Math.max(...parts)) + 1) % 3, 1);
  const one = e.clone().addScaledVector(n, -n.dot(e)).normalize();
  return [one, n.clone().cross(one)];
}
