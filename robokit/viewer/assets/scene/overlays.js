// What can be laid over the robot: frames, names, centre of mass and trail, contacts, momentum.
// Each is built when it is first switched on; `update(k)` moves those that depend on the frame.

// A robot larger than this many of its median bodies is a long chain: its marks are smaller than its size says.
const BODIES = 9;

// Whether single contacts are known, and not only the ground's force on the robot.
const hasPoints = (motion) => Boolean(motion.contacts || motion.met);

class Overlays {
  constructor(stage, data, motion) {
    this.stage = stage;
    this.data = data;
    this.motion = motion;
    this.built = {};
    this.on = {};
    this.frame = 0;
    this.size = data.robot.size;
    // Marks are for the whole robot and for one body alike: on a long chain they would hide its links.
    this.mark = Math.sqrt(this.size * Math.min(this.size, BODIES * stage.framing.bodySize()));
  }

  // Key, label, colour, whether it starts switched on, and what there is to say, for those that this page can show.
  list() {
    const { roles } = this.stage;
    const massive = this.data.robot.mass > 0;
    // A pose moves, and touches, where physics runs in the page.
    const live = Boolean(this.data.live), moving = this.motion.count > 1 || live, pairs = this.data.live?.stepper?.sizes.find(([name]) => name === "n_candidates")?.[1];
    const touches = Boolean(pairs || this.motion.met);
    return [
      ["visual", "Robot", "var(--accent)", true, true],
      ["collision", "Collisions", "#f08c00", false, roles.collision.length > 0],
      ["inertia", "Inertia", "#5f3dc4", Boolean(this.data.check), roles.inertia.length > 0],
      ["axis", "Joint axes", "#c2255c", false, roles.axis.length > 0],
      ["frames", "Frames", "#2b8a3e", false, true],
      ["com", "CoM", "var(--text)", moving && massive, massive],
      ["contacts", "Contacts", "#e03131", moving, touches || Boolean(this.motion.contacts || this.motion.force), "Contact forces; between two bodies, the force on each"],
      ["contactFrames", "Contact frames", "#1971c2", false, touches || Boolean(this.motion.contacts && (this.motion.normals || this.data.ground?.plane)), "Normal (blue) and tangents of each contact; ⊥ normal force and ∥ friction force of the twelve largest"],
      ["ties", this.tiesLabel(), "#e8590c", true, this.data.ties.length > 0],
      ["momentum", "Momentum", "#0b7285", false, Boolean((this.motion.momentum || live) && massive)],
      ["names", "Names", "#868e96", false, true],
    ].filter((entry) => entry[4]);
  }

  show(key, on) {
    this.on[key] = on;
    if (key in this.stage.roles) {
      this.stage.show(key, on);
      this.stage.glass(Boolean(this.on.inertia || this.on.collision));
      return;
    }
    if (on && !this.built[key]) this.built[key] = this[key]();
    if (this.built[key]) this.built[key].visible = on;
    if (key === "contacts" && this.scale) this.scale.show(on);
    this.update(this.frame);
  }

  // From now on overlays show another motion: those that were built for the old one are built afresh.
  use(motion) {
    const points = hasPoints(this.motion) && hasPoints(motion);
    this.motion = motion;
    this.frame = Math.min(this.frame, Math.max(motion.count - 1, 0));
    const old = ["com", "contacts", "momentum"].filter((key) => this.built[key] && !(key === "contacts" && points));
    for (const key of old) {
      this.stage.world.remove(this.built[key]);
      delete this.built[key];
    }
    for (const key of old) if (this.on[key]) this.show(key, true);
  }

  update(frame, pose = null) {
    this.frame = frame;
    for (const [key, group] of Object.entries(this.built)) {
      if (group.visible && group.move) group.move(frame, pose);
      if (group.needsMotion) group.visible = this.on[key] && !pose;
    }
    this.stage.dirty();
  }

  frames() {
    const group = new THREE.Group();
    const length = 0.16 * this.mark, width = 0.0045 * this.mark;
    const rod = new THREE.CylinderGeometry(width, width, length, 8).translate(0, length / 2, 0);
    const tints = [0xe03131, 0x2b8a3e, 0x1971c2].map((color) => new THREE.MeshBasicMaterial({ color: ink(color), depthTest: false, transparent: true }));
    group.triads = this.data.links.map((link) => {
      const triad = new THREE.Group();
      [[0, 0, -Math.PI / 2], [0, 0, 0], [Math.PI / 2, 0, 0]].forEach((turn, k) => {
        const bar = new THREE.Mesh(rod, tints[k]);
        bar.rotation.set(...turn);
        bar.renderOrder = 7;
        triad.add(bar);
      });
      triad.position.fromArray(link.pose);
      triad.quaternion.fromArray(link.pose, 3);
      this.stage.bodies[link.body].add(triad);
      return triad;
    });
    return this.many(group, group.triads);
  }

  names() {
    const labels = new Labels(this.stage, this.data);
    this.stage.placed.push(labels);
    return labels;
  }

  // A group whose members hang on bodies: switching it switches them.
  many(group, members) {
    Object.defineProperty(group, "visible", {
      get: () => members.length > 0 && members[0].visible,
      set: (on) => members.forEach((member) => { member.visible = on; }),
    });
    return group;
  }

  com() {
    const group = new THREE.Group();
    const ball = new THREE.Mesh(new THREE.SphereGeometry(0.055 * this.mark, 32, 20), new THREE.MeshBasicMaterial({ map: checker(), depthTest: false, transparent: true }));
    ball.renderOrder = 9;
    group.add(ball);
    const path = [];
    const { com } = this.motion;
    for (let k = 0; k < this.motion.sane; k++) path.push(new THREE.Vector3().fromArray(com, 3 * k));
    const length = path.reduce((sum, p, k) => sum + (k ? p.distanceTo(path[k - 1]) : 0), 0);
    let trail = null, rings = 0;
    if (length > 0.01 * this.size) {
      rings = Math.min(path.length - 1, 600);
      const spline = new THREE.CatmullRomCurve3(path);
      // The tube's rings stand at frames, not at equal lengths, so that the trail ends at the ball.
      spline.getPointAt = spline.getPoint;
      spline.getTangentAt = spline.getTangent;
      trail = new THREE.Mesh(new THREE.TubeGeometry(spline, rings, 0.008 * this.mark, 6), new THREE.MeshBasicMaterial({ color: ink(0x1c7ed6), depthTest: false, transparent: true, opacity: 0.8 }));
      trail.renderOrder = 8;
      trail.frustumCulled = false;
      group.add(trail);
    }
    group.move = (frame, pose) => {
      if (trail) trail.visible = !pose;
      ball.visible = !pose;
      ball.position.copy(this.motion.vector(this.motion.com, frame));
      if (trail) trail.geometry.setDrawRange(0, 36 * Math.floor(rings * Math.min(frame / Math.max(this.motion.sane - 1, 1), 1)));
    };
    this.stage.world.add(group);
    return group;
  }

  contacts() {
    const group = new THREE.Group();
    group.needsMotion = true;
    this.stage.world.add(group);
    if (!hasPoints(this.motion) && !this.motion.force) return group;
    const thick = 0.014 * this.mark;
    this.scale = new ForceScale(this.stage, this.size, this.data.robot.mass * 9.81, this.motion.largestForce());
    if (!hasPoints(this.motion)) {
      const arrow = new Arrow(0xe03131, 1.4 * thick);
      group.add(arrow);
      group.move = (frame) => {
        const from = this.motion.vector(this.motion.com, frame).clone();
        if (this.data.ground !== null && this.data.ground.plane) from.z = planeHeight(this.data.ground, from.x, from.y);
        arrow.point(from, this.scale.arrow(this.motion.vector(this.motion.force, frame)));
      };
      return group;
    }
    let arrows = null;
    group.move = (frame) => {
      const found = this.motion.contactsAt(frame);
      if (!arrows || arrows.capacity < 2 * found.length) {
        if (arrows) group.remove(arrows);
        arrows = new Arrows(0xe03131, thick, 4 * found.length + 8);
        group.add(arrows);
      }
      arrows.clear();
      for (const { place, force, between } of found) {
        const along = this.scale.arrow(force);
        arrows.push(place, along);
        if (between) arrows.push(place, along.clone().negate());
      }
    };
    return group;
  }

  contactFrames() { return new ContactFrames(this); }

  tiesLabel() {
    const { ties } = this.data;
    if (ties.every(({ spring }) => spring)) return "Springs";
    return ties.some(({ spring }) => spring) ? "Springs, rods" : "Rods";
  }

  // Springs as coils, rods that close loops as rods, between their ends.
  ties() {
    const group = new THREE.Group();
    const radius = 0.035 * this.mark, wire = 0.007 * this.mark, { ties } = this.data, { bodies } = this.stage;
    const coil = new THREE.Curve();
    coil.getPoint = (t, target = new THREE.Vector3()) => {
      const wide = radius * Math.min(1, 12 * t, 12 * (1 - t));
      return target.set(wide * Math.cos(24 * Math.PI * t), wide * Math.sin(24 * Math.PI * t), t);
    };
    const shapes = [new THREE.CylinderGeometry(wire, wire, 1, 10).rotateX(Math.PI / 2).translate(0, 0, 0.5), new THREE.TubeGeometry(coil, 300, wire, 6)];
    const tints = [0x495057, 0xe8590c].map((color) => new THREE.MeshLambertMaterial({ color: ink(color) }));
    for (const { spring } of ties) {
      const line = new THREE.Mesh(shapes[Number(spring)], tints[Number(spring)]);
      line.frustumCulled = false;
      group.add(line);
    }
    const up = new THREE.Vector3(0, 0, 1);
    // Bodies are where they are shown: in a recording, a live run or a pose.
    group.move = () => group.children.forEach((line, k) => {
      const [from, to] = ties[k].ends.map(({ body, pose }) => new THREE.Vector3().fromArray(pose).applyQuaternion(bodies[body].quaternion).add(bodies[body].position));
      const along = to.sub(from), length = Math.max(along.length(), 1e-9);
      line.position.copy(from);
      line.quaternion.setFromUnitVectors(up, along.divideScalar(length));
      line.scale.z = length;
    });
    this.stage.world.add(group);
    return group;
  }

  momentum() {
    const group = new THREE.Group();
    group.needsMotion = true;
    if (!this.motion.momentum) return group;
    const linear = new Arrow(0x0b7285, 0.016 * this.mark), angular = new Arrow(0x9c36b5, 0.016 * this.mark);
    group.add(linear, angular);
    const largest = this.motion.largestMomenta();
    const full = 0.9 * this.size;
    group.move = (frame) => {
      const from = this.motion.vector(this.motion.com, frame);
      const both = this.motion.mixed(this.motion.momentum, 6, frame);
      angular.point(from, new THREE.Vector3().fromArray(both, 0).multiplyScalar(full / Math.max(largest[0], 1e-9)));
      linear.point(from, new THREE.Vector3().fromArray(both, 3).multiplyScalar(full / Math.max(largest[1], 1e-9)));
    };
    this.stage.world.add(group);
    return group;
  }
}

// The sign of a centre of mass: quarters in black and white.
function checker() {
  const canvas = element("canvas", { width: 4, height: 2 });
  const pen = canvas.getContext("2d");
  for (let k = 0; k < 8; k++) {
    pen.fillStyle = (k + (k >> 2)) % 2 ? "#ffffff" : "#1b2333";
    pen.fillRect(k % 4, k >> 2, 1, 1);
  }
  const texture = new THREE.CanvasTexture(canvas);
  texture.encoding = THREE.sRGBEncoding;
  texture.magFilter = texture.minFilter = THREE.NearestFilter;
  return texture;
}
