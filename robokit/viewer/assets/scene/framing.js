// Where the camera stands: the motion fills the view, clear of the buttons over it. A robot that travels far
// would be a dot in the picture of its whole way: then the camera goes with it, and its own extent counts. What it goes
// with is the centre of mass, or a link.

// The camera goes with the robot where the whole way would show it this many times smaller.
const FAR = 1.6;
const FIELD_OF_VIEW = 30;

// Of the robot's size: a spring that is longer is drawn, but the view is not fitted to it.
const LONG = 6;

class Framing {
  constructor(stage, data, motion) {
    this.stage = stage;
    this.motion = motion;
    this.data = data;
    this.massive = data.robot.mass > 0;
    this.touched = false;
    this.following = false;
    // The link whose frame the camera goes with; null for the centre of mass.
    this.link = this.massive ? null : data.links[0] ?? null;
    this.canFollow = (motion.count > 1 || Boolean(data.live)) && (this.massive || this.link !== null);
    const boxes = stage.boxes((node) => node.body);
    this.boxes = stage.bodies.map((_, body) => boxes.get(body) ?? new THREE.Box3());
    this.size = data.robot.size;
    const box = new THREE.Box3(new THREE.Vector3(...data.bounds[0]), new THREE.Vector3(...data.bounds[1]));
    const size = box.getSize(new THREE.Vector3());
    this.middle = yUp(box.getCenter(new THREE.Vector3()));
    this.whole = this.extremes(false);
    this.near = this.canFollow ? this.extremes(true) : this.whole;
    this.angles = [((size.x >= size.y ? -58 : -32) * Math.PI) / 180, (17 * Math.PI) / 180];
    if (!this.whole.length) this.whole.push(yUp(box.min), yUp(box.max));
    this.following = this.canFollow && this.massive && this.travel() > extent(this.near) && extent(this.whole) > FAR * extent(this.near);
    this.local = this.following;
    // The length that shadows and the ground's lines are made for.
    this.reach = Math.max(extent(this.following ? this.near : this.whole), 0.05);
    // Nobody knows where a pose goes by physics.
    if (motion.count === 1 && data.live) this.following = this.massive;
  }

  // Half the diagonal of a body's box, the median of all that show something [m].
  bodySize() {
    const sizes = this.boxes.filter((box) => !box.isEmpty()).map((box) => 0.5 * box.min.distanceTo(box.max)).sort((a, b) => a - b);
    return sizes.length ? sizes[sizes.length >> 1] : Infinity;
  }

  // What the camera goes with: the name of a link, or null for the centre of mass.
  followLink(name) {
    const link = this.data.links.find((link) => link.name === name) ?? null;
    this.link = link ?? (this.massive ? null : this.link);
    this.near = this.extremes(true);
  }

  // Corners of every body's box at some forty instants (y up); relative to what the camera goes with, or in the world.
  extremes(relative, motion = this.motion) {
    const corners = [], { boxes } = this, { sane } = motion;
    const place = new THREE.Matrix4(), turn = new THREE.Quaternion(), one = new THREE.Vector3(1, 1, 1), at = new THREE.Vector3();
    for (let f = 0; f < sane; f += Math.max(1, Math.ceil(sane / 40))) {
      const centre = relative ? this.centre(f) : null;
      boxes.forEach((box, i) => {
        if (box.isEmpty() || (i === 0 && (f > 0 || relative))) return;
        const offset = 7 * (f * (boxes.length - 1) + i - 1);
        if (i > 0) place.compose(at.fromArray(motion.poses, offset), turn.fromArray(motion.poses, offset + 3), one);
        else place.identity();
        for (let k = 0; k < 8; k++) {
          const corner = yUp(at.set(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y, k & 4 ? box.max.z : box.min.z).applyMatrix4(place));
          corners.push(centre ? corner.sub(centre) : corner);
        }
      });
      this.tied(f, motion).forEach((end) => corners.push(centre ? end.sub(centre) : end));
    }
    return corners;
  }

  // Ends of springs and rods at a frame (y up), but of those that are too long to be looked at with the robot.
  tied(frame, motion) {
    const places = this.data.ties.map(({ ends }) => ends.map((attachment) => yUp(motion.placeOf(attachment, frame))));
    return places.filter(([from, to]) => from.distanceTo(to) < LONG * this.size).flat();
  }

  // How far what the camera goes with gets from where it was first [m].
  travel() {
    const start = this.centre(0);
    let most = 0;
    for (let f = 0; f < this.motion.sane; f++) most = Math.max(most, this.centre(f).distanceTo(start));
    return most;
  }

  // The centre of mass, or the link's frame, at a frame, no later than the last one that can be trusted (y up).
  centre(frame, motion = this.motion) {
    const { link } = this, held = Math.min(frame, motion.sane - 1);
    return yUp(link === null ? motion.vector(motion.com, held) : motion.placeOf(link, held));
  }

  // Looks from where it looked last, or from the side on which the motion is longest.
  fit(frame = 0, motion = this.motion) {
    this.touched = false;
    this.look(...this.angles, frame, motion);
  }

  // azimuth, elevation [rad] of the camera seen from the robot; frame: where the robot is.
  look(azimuth, elevation, frame = 0, motion = this.motion) {
    const { viewer, host } = this.stage, { camera, controls } = viewer;
    this.last = [azimuth, elevation];
    camera.fov = FIELD_OF_VIEW;
    camera.up.set(0, 1, 0);
    const away = yUp(new THREE.Vector3(Math.cos(azimuth) * Math.cos(elevation), Math.sin(azimuth) * Math.cos(elevation), Math.sin(elevation)));
    const right = new THREE.Vector3().crossVectors(camera.up, away).normalize();
    if (right.lengthSq() < 0.5) right.set(1, 0, 0);
    const upward = new THREE.Vector3().crossVectors(away, right);
    const shift = this.following && motion.count ? this.centre(frame, motion) : new THREE.Vector3();
    const corners = this.following ? this.near : this.whole;
    const [wide, high] = [Math.max(host.clientWidth, 1), Math.max(host.clientHeight, 1)];
    const { top, foot } = this.insets(high);
    const half = Math.tan((FIELD_OF_VIEW * Math.PI) / 360);
    const sides = (half * wide * 0.92) / high;
    // The free part of the view, in tangents above and below its axis.
    const above = half * (1 - (2 * top) / high), below = half * (1 - (2 * foot) / high);
    const target = this.following ? new THREE.Vector3() : this.middle.clone();
    let distance = 0;
    for (let pass = 0; pass < 6; pass++) {
      const span = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
      distance = 0;
      for (const corner of corners) {
        const d = corner.clone().sub(target), up = d.dot(upward);
        distance = Math.max(distance, d.dot(away) + Math.max(Math.abs(d.dot(right)) / sides, up > 0 ? up / above : -up / below));
      }
      distance = Math.max(distance, 0.05);
      for (const corner of corners) {
        const d = corner.clone().sub(target);
        const depth = distance - d.dot(away);
        span.left = Math.min(span.left, d.dot(right) / depth); span.right = Math.max(span.right, d.dot(right) / depth);
        span.low = Math.min(span.low, d.dot(upward) / depth); span.high = Math.max(span.high, d.dot(upward) / depth);
      }
      target.addScaledVector(right, 0.5 * (span.left + span.right) * distance);
      target.addScaledVector(upward, 0.5 * (span.low + span.high - above + below) * distance);
    }
    target.add(shift);
    camera.near = 0.01 * this.reach;
    camera.far = 60 * Math.max(this.reach, extent(this.whole));
    camera.position.copy(target).addScaledVector(away, distance);
    controls.target.copy(target);
    controls.maxDistance = 12 * Math.max(this.reach, extent(this.whole));
    controls.update();
    this.stage.dirty();
  }

  // A camera where somebody put it: its place and what it looks at, in the world.
  place(numbers) {
    const { camera, controls } = this.stage.viewer;
    camera.position.copy(yUp(new THREE.Vector3().fromArray(numbers)));
    controls.target.copy(yUp(new THREE.Vector3().fromArray(numbers, 3)));
    controls.update();
    this.touched = true;
    this.stage.dirty();
  }

  // Pixels over and under the free part of the view: buttons stand there.
  insets(high) {
    const most = 0.25 * high;
    const room = (box) => (box ? Math.min(box.offsetHeight + 20, most) : 0);
    const opener = $("layers"); // in small views it stands for the switches
    return { top: room(opener.offsetHeight ? opener : $("switches")), foot: room($("cameras")) };
  }
}

// Length of the diagonal of the box round points.
function extent(points) {
  return new THREE.Box3().setFromPoints(points).getSize(new THREE.Vector3()).length() || 0;
}
