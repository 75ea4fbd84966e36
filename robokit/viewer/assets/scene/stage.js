// The 3D stage: meshcat's viewer with our light, ground and camera, and one group for each body.
// World z points up; meshcat turns its scene so, and its camera stands outside that turn (y up).

// The layer of shapes that are not drawn, only pointed at.
const POINTED = 1;
// How opaque the robot is at most where something inside it is shown.
const GLASS = 0.28;

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
    this.materials = [];
    this.roles = { visual: [], collision: [], inertia: [], axis: [] };
    this.lit = new Set();
    // What is placed on the screen before every picture.
    this.placed = [];
    // How opaque the robot is, and whether it is glass whatever that says.
    this.share = 1;
    this.isGlass = false;
    // The frame that is shown, and of which motion.
    this.now = () => [0, motion];
    this.addBodies();
    this.pose(motion.at(0));
    this.framing = new Framing(this, data, motion);
    this.reach = this.framing.reach;
    this.addLights();
    if (data.ground !== null) this.addGround(data.ground);
    this.aim(this.framing.following ? this.framing.centre(0) : this.framing.middle);
    this.frameMotion();
    this.viewer.controls.addEventListener("start", () => { this.framing.touched = true; });
    new ResizeObserver(() => this.resized()).observe(host);
  }

  // A camera that nobody has moved is placed anew.
  resized() {
    this.viewer.set_3d_pane_size();
    if (!this.framing.touched) this.framing.look(...this.framing.last, ...this.now());
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

  render() { if (this.viewer.needs_render) this.draw(); }

  draw() {
    for (const one of this.placed) if (one.visible) one.place();
    this.viewer.render();
  }

  addBodies() {
    this.bodies = this.data.bodies.name.map(() => new THREE.Group());
    this.world.add(...this.bodies);
    this.geometries = this.data.geometries.map((shape) => buildGeometry(shape, this.data.robot.size));
    const unseen = new THREE.MeshBasicMaterial({ side: THREE.DoubleSide });
    for (const node of this.data.nodes) {
      const seen = node.role === "visual";
      const material = seen ? unseen : this.material(node, this.data.geometries[node.geometry]);
      const solid = new THREE.Mesh(this.geometries[node.geometry], material);
      solid.position.fromArray(node.pose);
      solid.quaternion.fromArray(node.pose, 3);
      solid.userData = node;
      solid.visible = seen;
      // What is seen is drawn by the skin; its single shapes are there to be pointed at.
      if (seen) solid.layers.set(POINTED);
      else solid.renderOrder = node.role === "axis" ? 6 : 2;
      this.bodies[node.body].add(solid);
      this.roles[node.role].push(solid);
    }
    // What is drawn round the selected link.
    this.shells = [];
    this.skin = new Skin(this.data.nodes.filter((node) => node.role === "visual"), this.geometries, this.bodies, (index) => this.picture(index));
    for (const part of this.skin.parts) this.world.add(part); // a robot without shapes has none
  }

  material(node, shape) {
    const mesh = shape.type === "mesh";
    const painted = Boolean(shape.colours) && node.role === "ground";
    const key = [node.role, mesh, painted, node.picture, ...node.rgba].join();
    const known = this.materials.find((entry) => entry.key === key);
    if (known) return known.material;
    const clear = node.rgba[3] < 1;
    const material = node.role === "axis"
      ? new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9 })
      : new THREE.MeshStandardMaterial({ roughness: 0.58, metalness: 0.06, emissiveIntensity: 0, transparent: clear, opacity: node.rgba[3] });
    material.color = ink(new THREE.Color(...node.rgba.slice(0, 3)));
    if (clear) material.depthWrite = false;
    if (mesh) material.side = THREE.DoubleSide;
    material.vertexColors = painted;
    if (node.picture !== null) material.map = this.picture(node.picture);
    this.materials.push({ key, material });
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
    const sky = new THREE.HemisphereLight(0xffffff, 0x7d8798, 0.6);
    sky.position.set(0, 0, 1);
    const key = new THREE.DirectionalLight(0xfffaf2, 0.68);
    key.castShadow = true;
    key.shadow.mapSize.set(2048, 2048);
    const half = 0.62 * this.reach;
    Object.assign(key.shadow.camera, { left: -half, right: half, top: half, bottom: -half, near: 0.1 * this.reach, far: 4 * this.reach });
    key.shadow.bias = -0.0004;
    key.shadow.normalBias = 0.004 * this.reach;
    key.shadow.radius = 3;
    const fill = new THREE.DirectionalLight(0xdce7ff, 0.26);
    this.key = key;
    this.fill = fill;
    this.world.add(sky, key, key.target, fill, fill.target);
  }

  // Light and floor go with what is looked at (y up).
  aim(point) {
    const centre = zUp(point);
    this.key.position.set(0.45, -0.75, 1.5).multiplyScalar(this.reach).add(centre);
    this.fill.position.set(-1.2, 0.9, 0.6).multiplyScalar(this.reach).add(centre);
    this.key.target.position.copy(centre);
    this.fill.target.position.copy(centre);
    if (this.plane) this.plane.centre(centre);
    this.dirty();
  }

  addGround(ground) {
    if (ground.plane) {
      this.plane = new Plane(ground, zUp(this.framing.middle), this.reach);
      this.world.add(this.plane.group);
    }
    for (const node of ground.nodes) {
      const shape = this.data.geometries[node.geometry];
      const solid = new THREE.Mesh(buildGeometry(shape, 0.2), this.material(node, shape));
      solid.position.fromArray(node.pose);
      solid.quaternion.fromArray(node.pose, 3);
      solid.castShadow = solid.receiveShadow = true;
      this.world.add(solid);
    }
  }

  // Boxes of what is shown of each body or link, in the frame of the body; by(node) is the body or link of a node.
  boxes(by) {
    const boxes = new Map(), own = new THREE.Box3(), place = new THREE.Matrix4(), one = new THREE.Vector3(1, 1, 1);
    for (const node of this.data.nodes) {
      if (node.role !== "visual") continue;
      const geometry = this.geometries[node.geometry];
      if (!geometry.boundingBox) geometry.computeBoundingBox();
      place.compose(new THREE.Vector3().fromArray(node.pose), new THREE.Quaternion().fromArray(node.pose, 3), one);
      if (!boxes.has(by(node))) boxes.set(by(node), new THREE.Box3());
      boxes.get(by(node)).union(own.copy(geometry.boundingBox).applyMatrix4(place));
    }
    return boxes;
  }

  // The whole motion in view, or the robot alone where it travels far.
  frameMotion() { this.framing.fit(...this.now()); }

  look(azimuth, elevation) { this.framing.look(azimuth, elevation, ...this.now()); }

  // Body poses for one instant, as placeBodies takes them.
  pose(numbers, offset = 0) {
    placeBodies(this.bodies, numbers, offset);
    this.skin.move();
    this.dirty();
  }

  show(role, on) {
    for (const solid of role === "visual" ? [...this.roles.visual, ...this.skin.parts, ...this.shells] : this.roles[role]) solid.visible = on;
    this.dirty();
  }

  // The robot as glass, so that what lies inside it shows.
  glass(on) {
    this.isGlass = on;
    this.opaque(this.share);
  }

  // How opaque it is, from 0 to 1.
  opaque(share) {
    this.share = share;
    this.skin.fade(this.isGlass ? Math.min(share, GLASS) : share);
    this.dirty();
  }

  dark(on) {
    if (this.plane) this.plane.floor.material.opacity = on ? 0.16 : 1;
    this.dirty();
  }

  // Lights a set of bodies, the strong ones more; an empty set puts the light out.
  light(bodies, strong = bodies, tint = 0x2f6bff) {
    this.lit = new Set(bodies);
    this.skin.glow((body) => (bodies.has(body) ? (strong.has(body) ? 0.8 : 0.3) : 0), ink(tint).toArray());
    this.dirty();
  }

  // The node under a point of the page, or null.
  nodeAt(x, y) {
    const shown = Object.values(this.roles).flat().filter((solid) => solid.visible);
    return this.ray(x, y).intersectObjects(shown, false)[0]?.object.userData ?? null;
  }

  // The ray from the camera through a point of the page.
  ray(x, y) {
    const edge = this.host.getBoundingClientRect(), ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2((2 * (x - edge.left)) / edge.width - 1, 1 - (2 * (y - edge.top)) / edge.height), this.viewer.camera);
    ray.layers.enable(POINTED);
    return ray;
  }
}

// Puts bodies to their poses: seven numbers each, position then quaternion xyzw, body 1 first.
function placeBodies(bodies, numbers, offset = 0) {
  for (let i = 1; i < bodies.length; i++, offset += 7) {
    bodies[i].position.fromArray(numbers, offset);
    bodies[i].quaternion.fromArray(numbers, offset + 3);
  }
}

// Colours are given as screens show them; three.js computes with linear ones.
const ink = (tint) => new THREE.Color(tint).convertSRGBToLinear();

const planeHeight = (ground, x, y) => ground.height - (ground.normal[0] * x + ground.normal[1] * y) / ground.normal[2];

const yUp = (v) => new THREE.Vector3(v.x, v.z, -v.y);

const zUp = (v) => new THREE.Vector3(v.x, -v.z, v.y);
