// How the hand looks: a spring from the link to the pointer with its force beside it, and pushes that fade.

class Spring {
  constructor(stage, size) {
    this.stage = stage;
    this.size = size;
    this.group = new THREE.Group();
    this.group.visible = false;
    const paint = (tint) => new THREE.MeshBasicMaterial({ color: ink(tint), depthTest: false, transparent: true, opacity: 0.95 });
    const solid = (geometry) => {
      const made = new THREE.Mesh(geometry, paint(0xf08c00));
      made.renderOrder = 9;
      made.frustumCulled = false;
      this.group.add(made);
      return made;
    };
    this.coil = solid(coil(0.018 * size, 0.0036 * size));
    this.ends = [solid(new THREE.SphereGeometry(0.02 * size, 16, 12)), solid(new THREE.SphereGeometry(0.013 * size, 16, 12))];
    this.label = handLabel("live-force");
    stage.world.add(this.group);
    this.pushes = [];
  }

  // From the point of the link to the pointer, both in the world, with the force [N] of the spring.
  show(from, to, force) {
    this.group.visible = true;
    const way = to.clone().sub(from), length = way.length();
    this.ends[0].position.copy(from);
    this.ends[1].position.copy(to);
    this.coil.visible = length > 1e-4 * this.size;
    if (this.coil.visible) {
      this.coil.position.copy(from);
      this.coil.quaternion.setFromUnitVectors(Arrow.z, way.divideScalar(length));
      this.coil.scale.z = length;
    }
    this.write(this.label, to, `${figure(force)} N`);
    this.stage.dirty();
  }

  hide() {
    this.group.visible = false;
    this.label.hidden = true;
    this.stage.dirty();
  }

  // An impulse [N s] at a point of the world: an arrow that ends there and fades within a second.
  push(at, impulse) {
    const arrow = new Arrow(0xf08c00, 0.014 * this.size), size = impulse.length();
    const way = impulse.clone().multiplyScalar((0.45 * this.size) / size);
    arrow.point(at.clone().sub(way), way);
    this.stage.world.add(arrow);
    const label = handLabel("live-push");
    this.write(label, at.clone().sub(way), `${figure(size)} N s`);
    this.pushes.push({ arrow, label, left: 1.4 });
    this.stage.dirty();
  }

  fade(seconds) {
    for (const one of this.pushes) {
      one.left -= seconds;
      const strength = Math.min(1, Math.max(0, 2 * one.left));
      one.arrow.shaft.material.opacity = 0.92 * strength;
      one.label.style.opacity = String(strength);
      if (one.left > 0) continue;
      this.stage.world.remove(one.arrow);
      one.label.remove();
    }
    if (this.pushes.length) this.stage.dirty();
    this.pushes = this.pushes.filter((one) => one.left > 0);
  }

  write(label, point, text) {
    const { camera } = this.stage.viewer, { host } = this.stage;
    this.stage.world.updateWorldMatrix(true, false);
    const seen = this.stage.world.localToWorld(point.clone()).project(camera);
    label.hidden = false;
    label.textContent = text;
    const x = 0.5 * (1 + seen.x) * host.clientWidth + 14, y = 0.5 * (1 - seen.y) * host.clientHeight - 11;
    label.style.left = `${Math.min(Math.max(x, 4), host.clientWidth - label.offsetWidth - 4)}px`;
    label.style.top = `${Math.min(Math.max(y, 4), host.clientHeight - label.offsetHeight - 4)}px`;
  }
}

function handLabel(kind) {
  const label = element("div", { class: `live-label ${kind}` });
  label.hidden = true;
  $("view").append(label);
  return label;
}

// A coil along z of unit length with straight ends, to be stretched.
function coil(radius, wire) {
  const turns = 11, points = [];
  for (let k = 0; k <= 24 * turns; k++) {
    const s = k / (24 * turns), wide = radius * Math.min(1, 12 * s, 12 * (1 - s)), angle = 2 * Math.PI * turns * s;
    points.push(new THREE.Vector3(wide * Math.cos(angle), wide * Math.sin(angle), s));
  }
  // Tubes are swept where the coil is as long as it usually is, so that the wire keeps its thickness.
  const usual = 18 * radius;
  points.forEach((point) => { point.z *= usual; });
  return new THREE.TubeGeometry(new THREE.CatmullRomCurve3(points), 16 * turns, wire, 6).scale(1, 1, 1 / usual);
}
