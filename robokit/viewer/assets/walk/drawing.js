// What the line at work reads and writes, drawn at its body: velocities, accelerations and forces as arrows, an
// inertia as the box of even density that has it. Written values are solid, read ones pale.

const WALK_TINTS = { ang: 0x9c36b5, lin: 0x0b7285, n: 0xe8590c, f: 0xe03131, box: 0x5f3dc4, body: 0x2f6bff, other: 0xf08c00, subtree: 0x2b8a3e };

class WalkDrawing {
  constructor(stage, data) {
    this.stage = stage;
    this.size = data.robot.size;
    this.arrows = [];
    this.used = 0;
    const faces = new THREE.MeshBasicMaterial({ color: ink(WALK_TINTS.box), transparent: true, opacity: 0.2, depthTest: false });
    const edges = new THREE.LineBasicMaterial({ color: ink(WALK_TINTS.box), transparent: true, opacity: 0.9, depthTest: false });
    const shape = new THREE.BoxGeometry(1, 1, 1);
    this.box = new THREE.Mesh(shape, faces);
    this.box.add(new THREE.LineSegments(new THREE.EdgesGeometry(shape), edges));
    this.box.renderOrder = 7;
    this.box.children[0].renderOrder = 8;
    this.box.visible = false;
    stage.bodies[0].add(this.box);
  }

  clear() {
    for (const arrow of this.arrows) arrow.visible = false;
    this.box.visible = false;
    this.used = 0;
    this.stage.dirty();
  }

  open(recording) { this.recording = recording; }

  // The largest angular and linear part of a symbol at the state shown: what full arrows stand for.
  largest(symbol) {
    const top = [0, 0], { recording } = this;
    for (const value of recording.vectors.get(symbol) ?? []) {
      const x = recording.numbers(value);
      top[0] = Math.max(top[0], Math.hypot(x[0], x[1], x[2]));
      top[1] = Math.max(top[1], Math.hypot(x[3], x[4], x[5]));
    }
    return top;
  }

  // Angular and linear part of a spatial vector, or of a single column; null for anything else.
  parts({ kind, numbers, body }) {
    if (body === null || !isArrow(kind, numbers.length) || !numbers.every(Number.isFinite)) return null;
    return [new THREE.Vector3().fromArray(numbers, 0), new THREE.Vector3().fromArray(numbers, 3)];
  }

  show(seen) {
    this.clear();
    const tops = new Map();
    const inertias = seen.filter((one) => one.kind === "rigid" && one.body !== null);
    const boxed = inertias.find((one) => one.letter.out) || inertias[inertias.length - 1];
    if (boxed) this.drawBox(boxed.body, boxed.numbers);
    for (const one of seen) {
      const parts = this.parts(one);
      if (!parts) continue;
      const { symbol } = one.letter;
      if (!tops.has(symbol)) tops.set(symbol, this.largest(symbol));
      const top = tops.get(symbol);
      const tints = one.kind.startsWith("motion") ? [WALK_TINTS.ang, WALK_TINTS.lin] : [WALK_TINTS.n, WALK_TINTS.f];
      parts.forEach((part, k) => {
        // Square roots keep the light bodies' arrows visible beside the heavy ones'.
        const share = top[k] > 0 ? part.length() / top[k] : 0;
        if (share > 1e-6 && top[k] > 1e-9) this.arrow(one.body, part.normalize().multiplyScalar(0.55 * this.size * Math.sqrt(share)), tints[k], one.letter.out);
      });
    }
  }

  arrow(body, vector, tint, solid) {
    if (this.used === this.arrows.length) this.arrows.push(new Arrow(tint, 1));
    const arrow = this.arrows[this.used++];
    arrow.radius = (solid ? 0.013 : 0.007) * this.size;
    arrow.shaft.material.color = ink(tint);
    arrow.shaft.material.opacity = solid ? 0.95 : 0.4;
    this.stage.bodies[body].add(arrow);
    arrow.point(new THREE.Vector3(), vector);
  }

  drawBox(body, numbers) {
    const [m, hx, hy, hz, xx, yy, zz, xy, xz, yz] = numbers;
    if (!(m > 0)) return;
    const c = [hx / m, hy / m, hz / m], cc = c[0] ** 2 + c[1] ** 2 + c[2] ** 2;
    const about = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]].map((row, i) => row.map((x, j) => x - m * ((i === j ? cc : 0) - c[i] * c[j])));
    const { moments, axes } = principal(about);
    const edges = moments.map((_, k) => Math.sqrt(Math.max((6 / m) * (moments[0] + moments[1] + moments[2] - 2 * moments[k]), 0)));
    const frame = new THREE.Matrix4().makeBasis(...axes.map((axis) => new THREE.Vector3(...axis)));
    this.box.quaternion.setFromRotationMatrix(frame);
    this.box.position.set(...c);
    this.box.scale.set(...edges.map((edge) => Math.max(edge, 0.004 * this.size)));
    this.stage.bodies[body].add(this.box);
    this.box.visible = true;
  }

  // The body at work, the second one, and all that a composite carries.
  light(body, other, subtree) {
    const tints = new Map([...subtree].map((each) => [each, WALK_TINTS.subtree]));
    if (other !== null) tints.set(other, WALK_TINTS.other);
    if (body !== null) tints.set(body, WALK_TINTS.body);
    this.stage.light(new Set(tints.keys()));
    this.stage.skin.shine((each) => {
      const tint = tints.get(each);
      return tint === undefined ? [0, 0, 0] : ink(tint).multiplyScalar(tint === WALK_TINTS.subtree ? 0.35 : 0.85).toArray();
    });
    this.stage.dirty();
  }
}

// Principal moments and axes of a symmetric 3 x 3 matrix, by Jacobi rotations; the axes are right-handed.
function principal(matrix) {
  const a = matrix.map((row) => [...row]), axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let round = 0; round < 30; round++) {
    for (const [p, q] of [[0, 1], [0, 2], [1, 2]]) {
      if (Math.abs(a[p][q]) < 1e-14 * (Math.abs(a[p][p]) + Math.abs(a[q][q]))) continue;
      const angle = 0.5 * Math.atan2(2 * a[p][q], a[q][q] - a[p][p]), c = Math.cos(angle), s = Math.sin(angle);
      for (let k = 0; k < 3; k++) [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
      for (let k = 0; k < 3; k++) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
      [axes[p], axes[q]] = [axes[p].map((x, k) => c * x - s * axes[q][k]), axes[p].map((x, k) => s * x + c * axes[q][k])];
    }
  }
  const [x, y, z] = axes;
  const volume = x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0]) + x[2] * (y[0] * z[1] - y[1] * z[0]);
  if (volume < 0) axes[2] = z.map((v) => -v);
  return { moments: [a[0][0], a[1][1], a[2][2]], axes };
}
