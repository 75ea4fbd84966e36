// The frame of every contact: its normal and tangents, and how large the normal force and the friction are.

// Numbers stand at this many contacts, those with the largest forces: more would hide one another.
const MOST_NUMBERS = 12;
const NUMBER_FONT = "600 24px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"; // twice as large as shown
const NUMBER_SIZE = [150, 18]; // [px]
// Tangents and normal; forces are red.
const FRAME_TINTS = [0xf08c00, 0x2b8a3e, 0x1971c2];
// Steps [px] by which a number gives way to those of larger forces.
const WAYS = [0, -18, 18, -36, 36, -54, 54, -72, 72];

// Two unit vectors, right-handed with the unit vector n, as the simulator chooses them (robokit/collision/support.py).
function tangentsOf(n) {
  const sign = n.z < -0.9 ? -1 : 1, a = -1 / (sign + n.z), b = n.x * n.y * a;
  return [new THREE.Vector3(1 + sign * n.x * n.x * a, sign * b, -sign * n.x), new THREE.Vector3(b, sign + n.y * n.y * a, -n.y)];
}

class ContactFrames extends THREE.Group {
  constructor(overlays) {
    super();
    this.overlays = overlays;
    this.stage = overlays.stage;
    this.length = 0.12 * overlays.mark;
    this.needsMotion = true;
    this.bars = [];
    this.numbers = [];
    this.stage.world.add(this);
    this.stage.placed.push(this);
  }

  // The contacts of a frame: { place, normal, along: the normal force, across: size of the friction } each.
  contacts(frame) {
    const { motion, data } = this.overlays;
    return motion.contactsAt(frame, data.ground?.normal).map(({ place, normal, force }) => {
      const along = force.dot(normal);
      return { place, normal, along, across: force.addScaledVector(normal, -along).length() };
    });
  }

  move(frame) {
    const found = this.contacts(frame);
    if (!this.bars.length || this.bars[0].capacity < found.length) {
      this.remove(...this.bars);
      this.bars = FRAME_TINTS.map((tint) => new Arrows(tint, 0.05 * this.length, 2 * found.length + 8));
      this.add(...this.bars);
    }
    for (const bars of this.bars) bars.clear();
    for (const { place, normal } of found) [...tangentsOf(normal), normal].forEach((axis, k) => this.bars[k].push(place, axis.clone().multiplyScalar(this.length)));
    this.shown = found.sort((a, b) => Math.hypot(b.along, b.across) - Math.hypot(a.along, a.across)).slice(0, MOST_NUMBERS);
  }

  // Before every picture: the numbers beside their contacts, clear of one another.
  place() {
    const { camera, controls } = this.stage.viewer, { host } = this.stage;
    camera.updateMatrixWorld();
    const [wide, high] = [host.clientWidth, host.clientHeight], { top, foot } = this.stage.framing.insets(high), low = high - foot - 0.5 * NUMBER_SIZE[1], depth = controls.target.clone().project(camera).z;
    const perPixel = (2 * Math.tan((camera.fov * Math.PI) / 360)) / high, taken = [];
    for (const { sprite } of this.numbers) sprite.visible = false;
    (this.shown || []).forEach(({ place, along, across }) => {
      const at = yUp(place).project(camera), x = Math.min(0.5 * (1 + at.x) * wide + 10, wide - NUMBER_SIZE[0]), y = Math.min(0.5 * (1 - at.y) * high, low);
      const way = WAYS.find((step) => y + step <= low && y + step > top && taken.every((one) => Math.abs(one.x - x) > NUMBER_SIZE[0] || Math.abs(one.y - y - step) >= NUMBER_SIZE[1]));
      if (Math.abs(at.x) > 1 || Math.abs(at.y) > 1 || Math.abs(at.z) > 1 || way === undefined) return;
      taken.push({ x, y: y + way });
      const number = this.number(taken.length - 1, `⊥ ${forceText(along)}  ∥ ${forceText(across)}`);
      const middle = new THREE.Vector3((2 * (x + 0.5 * NUMBER_SIZE[0])) / wide - 1, 1 - (2 * (y + way)) / high, depth);
      number.sprite.position.copy(zUp(middle.unproject(camera)));
      number.sprite.scale.set(NUMBER_SIZE[0] * perPixel, NUMBER_SIZE[1] * perPixel, 1);
      number.sprite.visible = true;
    });
  }

  number(k, text) {
    const made = (this.numbers[k] ??= this.makeNumber()), { pen, map } = made, [wide, high] = NUMBER_SIZE;
    const tint = colour("text");
    if (made.text === text && made.tint === tint) return made;
    Object.assign(made, { text, tint });
    pen.clearRect(0, 0, 2 * wide, 2 * high);
    pen.font = NUMBER_FONT;
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 6;
    pen.strokeStyle = colour("sky");
    pen.fillStyle = tint;
    pen.strokeText(text, 4, high + 1);
    pen.fillText(text, 4, high + 1);
    map.needsUpdate = true;
    return made;
  }

  makeNumber() {
    const canvas = element("canvas", { width: 2 * NUMBER_SIZE[0], height: 2 * NUMBER_SIZE[1] });
    const map = new THREE.CanvasTexture(canvas);
    map.encoding = THREE.sRGBEncoding;
    map.minFilter = THREE.LinearFilter;
    map.generateMipmaps = false;
    const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, depthTest: false, transparent: true, sizeAttenuation: false }));
    sprite.renderOrder = 12;
    this.add(sprite);
    return { sprite, map, pen: canvas.getContext("2d") };
  }
}
