// The names of the links, in columns beside the robot, each with a line to the middle of its link: text over the
// robot would hide it. They have the same size on the screen however far the camera is.

const LABEL_PITCH = 15; // [px] from line to line
const LABEL_GAP = 16; // [px] between the robot and the columns
const LABEL_FONT = "500 24px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"; // twice as large as shown
const LONGEST_LABEL = 32; // letters

class Labels extends THREE.Group {
  constructor(stage, data) {
    super();
    this.stage = stage;
    this.names = data.links.map((link) => link.name);
    this.anchors = this.middles(data);
    this.bodies = data.links.map((link) => link.body);
    this.made = new Map();
    this.sides = new Map();
    const corners = new THREE.BufferGeometry();
    this.ends = new THREE.BufferAttribute(new Float32Array(6 * this.names.length), 3);
    corners.setAttribute("position", this.ends);
    this.lines = new THREE.LineSegments(corners, new THREE.LineBasicMaterial({ depthTest: false, transparent: true, opacity: 0.55 }));
    this.lines.frustumCulled = false;
    this.lines.renderOrder = 10;
    this.add(this.lines);
    stage.world.add(this);
    whenThemeChanges(() => this.paint());
    this.paint();
  }

  // The middle of what each link shows, in the frame of its body; of a link without shapes its origin.
  middles(data) {
    const boxes = this.stage.boxes((node) => node.link);
    return data.links.map((link) => boxes.get(link.name)?.getCenter(new THREE.Vector3()) ?? new THREE.Vector3().fromArray(link.pose));
  }

  paint() {
    const tint = ink(colour("text"));
    this.lines.material.color = tint;
    for (const { material } of this.made.values()) material.color = tint;
    this.stage.dirty();
  }

  // Before every picture: where the columns are follows from where the robot is on the screen.
  place() {
    const { camera, controls } = this.stage.viewer, { host, framing } = this.stage;
    camera.updateMatrixWorld();
    const [wide, high] = [host.clientWidth, host.clientHeight], { top, foot } = framing.insets(high);
    const onScreen = (point) => {
      const at = yUp(point).project(camera);
      return { x: 0.5 * (1 + at.x) * wide, y: 0.5 * (1 - at.y) * high };
    };
    const moved = (point, body) => point.clone().applyQuaternion(this.stage.bodies[body].quaternion).add(this.stage.bodies[body].position);
    const covered = this.outline((point, body) => onScreen(moved(point, body)));
    const spots = this.anchors.map((point, k) => onScreen(moved(point, this.bodies[k])));
    const columns = this.columns(spots, covered, { wide, low: high - foot, top });
    // On the screen everything is in one plane, through what the camera looks at.
    const depth = controls.target.clone().project(camera).z;
    const inPlane = (x, y) => zUp(new THREE.Vector3((2 * x) / wide - 1, 1 - (2 * y) / high, depth).unproject(camera));
    const perPixel = (2 * Math.tan((camera.fov * Math.PI) / 360)) / high;
    for (const sprite of this.made.values()) sprite.visible = false;
    let used = 0;
    for (const { k, x, y, right } of columns) {
      const sprite = this.label(k), length = sprite.extent.wide;
      sprite.visible = true;
      sprite.position.copy(inPlane(right ? x + 0.5 * length : x - 0.5 * length, y));
      sprite.scale.set(length * perPixel, sprite.extent.high * perPixel, 1);
      for (const end of [inPlane(right ? x - 3 : x + 3, y), inPlane(spots[k].x, spots[k].y)]) this.ends.setXYZ(used++, end.x, end.y, end.z);
    }
    this.lines.geometry.setDrawRange(0, used);
    this.ends.needsUpdate = true;
  }

  // What the robot covers on the screen.
  outline(onScreen) {
    const found = { left: Infinity, right: -Infinity, top: Infinity }, corner = new THREE.Vector3();
    const { boxes } = this.stage.framing, step = Math.ceil(boxes.length / 200);
    boxes.forEach((box, body) => {
      if (box.isEmpty() || body === 0 || body % step) return;
      for (let c = 0; c < 8; c++) {
        const { x, y } = onScreen(corner.set(c & 1 ? box.max.x : box.min.x, c & 2 ? box.max.y : box.min.y, c & 4 ? box.max.z : box.min.z), body);
        found.left = Math.min(found.left, x);
        found.right = Math.max(found.right, x);
        found.top = Math.min(found.top, y);
      }
    });
    return found.left < found.right ? found : { left: 0, right: 0, top: 0 };
  }

  // Which names are shown and where: [{ k, x, y, right }]. Where there is no room beside the robot, above it.
  columns(spots, covered, view) {
    const middle = 0.5 * (covered.left + covered.right), { wide, top } = view;
    const all = spots.map((_, k) => k);
    for (const k of all) {
      // A link changes its side only when it is clearly on the other one.
      if (!this.sides.has(k) || Math.abs(spots[k].x - middle) > LABEL_GAP) this.sides.set(k, spots[k].x > middle);
    }
    let both = [false, true].map((right) => {
      const rows = all.filter((k) => this.sides.get(k) === right), longest = Math.max(0, ...rows.slice(0, 200).map((k) => this.length(k)));
      const edge = right ? Math.min(covered.right + LABEL_GAP, wide - longest - 6) : Math.max(covered.left - LABEL_GAP, longest + 6);
      return { right, rows, edge, beside: right ? edge > covered.right : edge < covered.left };
    });
    // Where only one of them has room beside the robot, all names stand there.
    if (both[0].beside !== both[1].beside) both = both.filter(({ beside }) => beside).map((one) => ({ ...one, rows: all }));
    return both.flatMap(({ right, rows, edge, beside }) => {
      const low = beside ? view.low : Math.max(covered.top - LABEL_GAP, top + 6 * LABEL_PITCH);
      const from = right ? top : Math.max(top, this.below()), room = Math.max(1, Math.floor((low - from) / LABEL_PITCH)), every = Math.ceil(rows.length / room);
      const shown = rows.filter((_, n) => n % every === 0).sort((a, b) => spots[a].y - spots[b].y);
      // From the top each as low as its link, with room between them; then those that went too far come back.
      const ys = shown.map((k) => spots[k].y);
      ys.forEach((y, n) => { ys[n] = Math.max(y, n ? ys[n - 1] + LABEL_PITCH : from + 0.5 * LABEL_PITCH); });
      for (let n = ys.length - 1, most = low - 0.5 * LABEL_PITCH; n >= 0; n--, most -= LABEL_PITCH) ys[n] = Math.min(ys[n], most);
      return shown.map((k, n) => ({ k, x: edge, y: ys[n], right }));
    });
  }

  // Under the card of what is selected, where that stands over the left column [px].
  below() {
    const card = $("selected");
    return card?.offsetParent && card.offsetLeft < 40 ? card.offsetTop + card.offsetHeight + 4 : 0;
  }

  text(k) { return this.names[k].length > LONGEST_LABEL ? `${this.names[k].slice(0, LONGEST_LABEL - 1)}…` : this.names[k]; }

  length(k) {
    this.pen ??= element("canvas").getContext("2d");
    this.pen.font = LABEL_FONT;
    return 0.5 * Math.ceil(this.pen.measureText(this.text(k)).width);
  }

  label(k) {
    if (this.made.has(k)) return this.made.get(k);
    const wide = this.length(k), high = 16, canvas = element("canvas", { width: 2 * wide, height: 2 * high }), pen = canvas.getContext("2d");
    pen.font = LABEL_FONT;
    pen.fillStyle = "#fff";
    pen.textBaseline = "middle";
    pen.fillText(this.text(k), 0, high + 1);
    const map = new THREE.CanvasTexture(canvas);
    map.minFilter = THREE.LinearFilter;
    map.generateMipmaps = false;
    const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, color: ink(colour("text")), depthTest: false, transparent: true, sizeAttenuation: false }));
    sprite.extent = { wide, high };
    sprite.renderOrder = 11;
    this.made.set(k, sprite);
    this.add(sprite);
    return sprite;
  }
}
