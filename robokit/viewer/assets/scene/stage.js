// The 3D stage: meshcat's viewer with our light, ground and camera, and one group for each body.
// World z points up; meshcat turns its scene so, and its camera stands outside that turn (y up).

class Stage {
  constructor(host, data, motion) {
    this.host = host;
    this.data = data;
    this.motion = motion;
    this.viewer = new MeshCat.Viewer(host, false);
    for (const path of ["/Lights", "/Grid", "/Axes"]) this.viewer.handle_command({ type: "delete", path });
    this.viewer.gui.domElement.remove();
    this.viewer.hide_background();
    this.viewer.renderer.outputEncoding = THREE.sRGBEncoding;
    this.viewer.renderer.setClearAlpha(0);
    this.sharp = Math.min(window.devicePixelRatio || 1, 2);
    this.viewer.renderer.setPixelRatio(this.sharp);
    // meshcat sizes its canvas by the window; ours is a part of the page.
    const fit = this.viewer.set_3d_pane_size.bind(this.viewer);
    this.viewer.set_3d_pane_size = () => fit(Math.max(host.clientWidth, 1), Math.max(host.clientHeight, 1));
    this.viewer.set_3d_pane_size();

    this.world = new THREE.Group();
    this.viewer.scene.add(this.world);
    this.box = new THREE.Box3(new THREE.Vector3(...data.bounds[0]), new THREE.Vector3(...data.bounds[1]));
    this.reach = Math.max(this.box.getSize(new THREE.Vector3()).length(), 0.1);
    this.materials = [];
    this.roles = { visual: [], collision: [], inertia: [], axis: [] };
    this.addBodies();
    this.addLights();
    if (data.ground !== null) this.addGround(data.ground);
    this.frameMotion();
    new ResizeObserver(() => this.viewer.set_3d_pane_size()).observe(host);
  }

  dirty() { this.viewer.set_dirty(); }

  // Fewer pixels and no new shadows, for machines that draw in software.
  coarse(on) {
    if (on === Boolean(this.isCoarse)) return;
    this.isCoarse = on;
    this.viewer.renderer.setPixelRatio(on ? 0.6 * this.sharp : this.sharp);
    this.key.castShadow = !on;
    this.viewer.set_3d_pane_size();
  }

  render() { if (this.viewer.needs_render) this.viewer.render(); }

  addBodies() {
    this.bodies = this.data.bodies.name.map(() => new THREE.Group());
    this.world.add(...this.bodies);
    const shapes = this.data.geometries.map((shape) => buildGeometry(shape, this.data.robot.size));
    for (const node of this.data.nodes) {
      const solid = new THREE.Mesh(shapes[node.geometry], this.material(node, this.data.geometries[node.geometry]));
      solid.position.fromArray(node.pose);
      solid.quaternion.fromArray(node.pose, 3);
      solid.userData = node;
      const seen = node.role === "visual";
      solid.castShadow = solid.receiveShadow = seen && node.rgba[3] > 0.5;
      solid.visible = seen;
      if (!seen) solid.renderOrder = node.role === "axis" ? 6 : 2;
      this.bodies[node.body].add(solid);
      this.roles[node.role].push(solid);
    }
  }

  material(node, shape) {
    const mesh = shape.type === "mesh";
    const painted = Boolean(shape.colours) && node.role === "visual";
    const key = [node.body, node.role, mesh, painted, node.picture, ...node.rgba].join();
    const known = this.materials.find((entry) => entry.key === key);
    if (known) return known.material;
    const seen = node.role === "visual";
    const clear = node.rgba[3] < 1;
    const material = node.role === "axis" && !seen
      ? new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9 })
      : new THREE.MeshStandardMaterial({ roughness: 0.58, metalness: 0.06, emissiveIntensity: 0, transparent: clear, opacity: node.rgba[3] });
    material.color = ink(new THREE.Color(...node.rgba.slice(0, 3)));
    if (clear) material.depthWrite = false;
    if (mesh) material.side = THREE.DoubleSide;
    material.vertexColors = painted;
    if (node.picture !== null) material.map = this.picture(node.picture);
    this.materials.push({ key, body: node.body, role: node.role, material, alpha: node.rgba[3] });
    return material;
  }

  picture(index) {
    this.pictures ||= this.data.pictures.map((source) => {
      const map = new THREE.TextureLoader().load(source, () => this.dirty());
      map.encoding = THREE.sRGBEncoding;
      map.wrapS = map.wrapT = THREE.RepeatWrapping;
      map.anisotropy = 4;
      return map;
    });
    return this.pictures[index];
  }

  addLights() {
    const centre = this.box.getCenter(new THREE.Vector3());
    const sky = new THREE.HemisphereLight(0xffffff, 0x7d8798, 0.6);
    sky.position.set(0, 0, 1);
    const key = new THREE.DirectionalLight(0xfffaf2, 0.68);
    key.position.set(0.45, -0.75, 1.5).multiplyScalar(this.reach).add(centre);
    key.target.position.copy(centre);
    key.castShadow = true;
    this.key = key;
    key.shadow.mapSize.set(2048, 2048);
    const half = 0.62 * this.reach;
    Object.assign(key.shadow.camera, { left: -half, right: half, top: half, bottom: -half, near: 0.1 * this.reach, far: 4 * this.reach });
    key.shadow.bias = -0.0004;
    key.shadow.normalBias = 0.004 * this.reach;
    key.shadow.radius = 3;
    const fill = new THREE.DirectionalLight(0xdce7ff, 0.26);
    fill.position.set(-1.2, 0.9, 0.6).multiplyScalar(this.reach).add(centre);
    fill.target.position.copy(centre);
    this.world.add(sky, key, key.target, fill, fill.target);
  }

  addGround(ground) {
    if (ground.plane) this.addPlane(ground);
    for (const node of ground.nodes) {
      const shape = this.data.geometries[node.geometry];
      const solid = new THREE.Mesh(buildGeometry(shape, 0.2), this.material(node, shape));
      solid.position.fromArray(node.pose);
      solid.quaternion.fromArray(node.pose, 3);
      solid.castShadow = solid.receiveShadow = true;
      this.world.add(solid);
    }
  }

  // A plane that takes the shadow and a grid that fades out: fine lines at a round length, strong ones at ten.
  addPlane(ground) {
    const centre = this.box.getCenter(new THREE.Vector3());
    const radius = Math.max(2.2 * this.reach, 1.5);
    this.ground = new THREE.Group();
    this.ground.position.set(0, 0, ground.height);
    this.ground.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), new THREE.Vector3(...ground.normal));
    centre.sub(this.ground.position).applyQuaternion(this.ground.quaternion.clone().conjugate());
    const shade = new THREE.Mesh(new THREE.CircleGeometry(radius, 64), new THREE.ShadowMaterial({ opacity: 0.24 }));
    shade.position.set(centre.x, centre.y, 0);
    shade.receiveShadow = true;
    const floor = new THREE.Mesh(new THREE.CircleGeometry(radius, 64), new THREE.MeshBasicMaterial({ map: fade(), transparent: true, depthWrite: false }));
    floor.position.set(centre.x, centre.y, -0.0005 * this.reach);
    floor.renderOrder = -2;
    this.floor = floor;
    const step = 10 ** Math.round(Math.log10(0.14 * this.reach));
    this.ground.add(floor, shade, gridLines(centre, radius, step, 0.24), gridLines(centre, radius, 10 * step, 0.4));
    this.world.add(this.ground);
  }

  // The whole motion in view, seen from the side on which it is longest.
  frameMotion() {
    const size = this.box.getSize(new THREE.Vector3());
    const along = size.x >= size.y ? -58 : -32;
    this.look((along * Math.PI) / 180, (17 * Math.PI) / 180);
  }

  // Corners of every body's box at some forty instants: what the camera must hold (world axes, y up).
  extremes() {
    if (this.corners) return this.corners;
    this.corners = [];
    const { count } = this.motion;
    const boxes = this.bodies.map((group) => {
      const box = new THREE.Box3(), own = new THREE.Box3();
      for (const solid of group.children) {
        if (!solid.userData || solid.userData.role !== "visual") continue;
        solid.updateMatrix();
        solid.geometry.computeBoundingBox();
        box.union(own.copy(solid.geometry.boundingBox).applyMatrix4(solid.matrix));
      }
      return box;
    });
    const place = new THREE.Matrix4(), turn = new THREE.Quaternion(), one = new THREE.Vector3(1, 1, 1), at = new THREE.Vector3();
    for (let f = 0; f < count; f += Math.max(1, Math.ceil(count / 40))) {
      boxes.forEach((box, i) => {
        if (box.isEmpty() || (i === 0 && f > 0)) return;
        const offset = 7 * (f * (boxes.length - 1) + i - 1);
        if (i > 0) place.compose(at.fromArray(this.motion.poses, offset), turn.fromArray(this.motion.poses, offset + 3), one);
        else place.identity();
        for (let k = 0; k < 8; k++) {
          const corner = new THREE.Vector3(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y, k & 4 ? box.max.z : box.min.z);
          this.corners.push(yUp(corner.applyMatrix4(place)));
        }
      });
    }
    if (!this.corners.length) this.corners.push(yUp(this.box.min), yUp(this.box.max));
    return this.corners;
  }

  look(azimuth, elevation) {
    const camera = this.viewer.camera;
    camera.fov = 30;
    camera.up.set(0, 1, 0);
    const away = yUp(new THREE.Vector3(Math.cos(azimuth) * Math.cos(elevation), Math.sin(azimuth) * Math.cos(elevation), Math.sin(elevation)));
    const right = new THREE.Vector3().crossVectors(camera.up, away).normalize();
    if (right.lengthSq() < 0.5) right.set(1, 0, 0);
    const upward = new THREE.Vector3().crossVectors(away, right);
    const corners = this.extremes();
    // Switches stand over the top of the view, buttons at its foot: keep the robot clear of both.
    const tall = Math.tan((camera.fov * Math.PI) / 360) * 0.78;
    const wide = Math.tan((camera.fov * Math.PI) / 360) * (this.host.clientWidth / Math.max(this.host.clientHeight, 1)) * 0.9;
    const target = yUp(this.box.getCenter(new THREE.Vector3()));
    let distance = 0;
    for (let pass = 0; pass < 4; pass++) {
      const span = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
      distance = 0;
      for (const corner of corners) {
        const d = corner.clone().sub(target);
        distance = Math.max(distance, d.dot(away) + Math.max(Math.abs(d.dot(right)) / wide, Math.abs(d.dot(upward)) / tall));
      }
      for (const corner of corners) {
        const d = corner.clone().sub(target);
        const depth = distance - d.dot(away);
        span.left = Math.min(span.left, d.dot(right) / depth); span.right = Math.max(span.right, d.dot(right) / depth);
        span.low = Math.min(span.low, d.dot(upward) / depth); span.high = Math.max(span.high, d.dot(upward) / depth);
      }
      target.addScaledVector(right, 0.5 * (span.left + span.right) * distance).addScaledVector(upward, 0.5 * (span.low + span.high) * distance);
    }
    camera.near = 0.01 * this.reach;
    camera.far = 60 * this.reach;
    camera.position.copy(target).addScaledVector(away, Math.max(distance, 0.05));
    const controls = this.viewer.controls;
    controls.target.copy(target);
    controls.maxDistance = 12 * this.reach;
    controls.update();
    this.dirty();
  }

  // Body poses for one instant: seven numbers each, position then quaternion xyzw, body 1 first.
  pose(numbers, offset = 0) {
    for (let i = 1; i < this.bodies.length; i++, offset += 7) {
      this.bodies[i].position.fromArray(numbers, offset);
      this.bodies[i].quaternion.fromArray(numbers, offset + 3);
    }
    this.dirty();
  }

  show(role, on) {
    for (const solid of this.roles[role]) solid.visible = on;
    this.dirty();
  }

  // The robot as glass, so that what lies inside it shows.
  glass(on) {
    for (const { role, material, alpha } of this.materials) {
      if (role !== "visual") continue;
      material.opacity = on ? 0.28 * alpha : alpha;
      material.transparent = on || alpha < 1;
      material.depthWrite = !material.transparent;
      material.needsUpdate = true;
    }
    this.dirty();
  }

  dark(on) {
    if (this.floor) this.floor.material.opacity = on ? 0.16 : 1;
    this.dirty();
  }

  // Lights a set of bodies, the strong ones more; an empty set puts the light out.
  light(bodies, strong = bodies, tint = 0x2f6bff) {
    for (const { body, role, material } of this.materials) {
      if (role !== "visual" || !material.emissive) continue;
      const on = bodies.has(body);
      material.emissive = ink(on ? tint : 0);
      material.emissiveIntensity = on ? (strong.has(body) ? 0.8 : 0.3) : 0;
    }
    this.dirty();
  }

  // The node under a point of the page, or null.
  nodeAt(x, y) {
    const edge = this.host.getBoundingClientRect();
    const at = new THREE.Vector2((2 * (x - edge.left)) / edge.width - 1, 1 - (2 * (y - edge.top)) / edge.height);
    const ray = new THREE.Raycaster();
    ray.setFromCamera(at, this.viewer.camera);
    const shown = Object.values(this.roles).flat().filter((solid) => solid.visible);
    const hit = ray.intersectObjects(shown, false)[0];
    return hit ? hit.object.userData : null;
  }
}

// Colours are given as screens show them; three.js computes with linear ones.
const ink = (tint) => new THREE.Color(tint).convertSRGBToLinear();

const planeHeight = (ground, x, y) => ground.height - (ground.normal[0] * x + ground.normal[1] * y) / ground.normal[2];

const yUp = (v) => new THREE.Vector3(v.x, v.z, -v.y);

function fade() {
  const canvas = element("canvas", { width: 256, height: 256 });
  const pen = canvas.getContext("2d");
  const glow = pen.createRadialGradient(128, 128, 10, 128, 128, 128);
  glow.addColorStop(0, "rgba(255,255,255,0.75)");
  glow.addColorStop(0.5, "rgba(255,255,255,0.35)");
  glow.addColorStop(1, "rgba(255,255,255,0)");
  pen.fillStyle = glow;
  pen.fillRect(0, 0, 256, 256);
  return new THREE.CanvasTexture(canvas);
}

// Lines parallel to x and y in short pieces whose alpha falls off with the distance from the middle.
function gridLines(centre, radius, step, strength) {
  const positions = [], colours = [];
  const alpha = (x, y) => strength * Math.max(0, 1 - Math.hypot(x - centre.x, y - centre.y) / radius) ** 1.5;
  const piece = radius / 12;
  const line = (fixed, from, to, swap) => {
    for (let s = from; s < to - 1e-9; s += piece) {
      for (const end of [s, Math.min(s + piece, to)]) {
        const [x, y] = swap ? [fixed, end] : [end, fixed];
        positions.push(x, y, 0);
        colours.push(0.13, 0.16, 0.23, alpha(x, y));
      }
    }
  };
  for (let k = Math.ceil((centre.y - radius) / step); k * step < centre.y + radius; k++) line(k * step, centre.x - radius, centre.x + radius, false);
  for (let k = Math.ceil((centre.x - radius) / step); k * step < centre.x + radius; k++) line(k * step, centre.y - radius, centre.y + radius, true);
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 4));
  const lines = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }));
  lines.renderOrder = -1;
  return lines;
}
