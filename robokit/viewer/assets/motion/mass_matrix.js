// The mass matrix H at a configuration, by composite rigid bodies (RBDA table 6.2), here in world axes about the
// origin of body 1: H(k, l) = s_l . I^c s_k for every l on the way from k to the root.

class MassMatrix {
  constructor(data) {
    this.data = data;
    this.n = data.structure.n;
    this.columns = data.bodies.name.map(() => []);
    for (const joint of data.joints) {
      const { follows } = joint;
      const leader = follows && data.joints.find((joint) => joint.q[0] <= follows[0] && follows[0] < joint.q[1]);
      jointColumns(joint).forEach(([angular, linear], k) => {
        // A coupled joint moves by a multiple of the one it follows, or not at all: H = Gᵀ H_full G.
        const dof = !follows ? joint.v[0] + k : leader ? leader.v[0] + follows[0] - leader.q[0] : -1;
        if (dof >= 0) this.columns[joint.body].push({ dof, factor: follows ? follows[1] : 1, angular, linear, rotor: joint.rotor[k] || 0 });
      });
    }
  }

  // poses: of bodies 1..N in the world, seven numbers each, as forwardKinematics gives them. Returns n x n numbers.
  at(poses) {
    const { n } = this, { parent, inertial } = this.data.bodies;
    const H = new Float64Array(n * n);
    const origin = Array.from(poses.slice(0, 3));
    const carried = inertial.map((row, i) => (i ? movedInertia(row, poses, 7 * (i - 1), origin) : null));
    const moved = this.columns.map((columns, i) => columns.map((column) => ({ ...column, ...movedColumn(column, poses, 7 * (i - 1), origin) })));
    const add = (a, b, value) => { H[a.dof * n + b.dof] += a.factor * b.factor * value; };
    for (let i = inertial.length - 1; i > 0; i--) {
      if (parent[i] > 0) for (let k = 0; k < 10; k++) carried[parent[i]][k] += carried[i][k];
      moved[i].forEach((column, k) => {
        const force = timesInertia(carried[i], column);
        add(column, column, dot3(column.w, force.angular) + dot3(column.v, force.linear) + column.rotor);
        const others = moved[i].slice(0, k);
        for (let j = parent[i]; j > 0; j = parent[j]) others.push(...moved[j]);
        for (const other of others) {
          const value = dot3(other.w, force.angular) + dot3(other.v, force.linear);
          add(column, other, value);
          add(other, column, value);
        }
      });
    }
    return H;
  }
}

const dot3 = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross3 = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

// Columns of S in the coordinates of the moved body, [angular, linear] each.
function jointColumns(joint) {
  const { axis } = joint, zero = [0, 0, 0], unit = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  const spins = unit.map((e) => [e, zero]), slides = unit.map((e) => [zero, e]);
  switch (joint.kind) {
    case "revolute": case "continuous": return [[axis, zero]];
    case "prismatic": return [[zero, axis]];
    case "helical": return [[axis, axis.map((x) => x * joint.pitch)]];
    case "cylindrical": return [[axis, zero], [zero, axis]];
    case "planar": return [[axis, zero], ...planeAxes(new THREE.Vector3(...axis)).map((one) => [zero, one.toArray()])];
    case "spherical": return spins;
    case "floating": return [...spins, ...slides];
    default: return [];
  }
}

// The rows of the rotation matrix of a unit quaternion x y z w.
function rotationRows(poses, at) {
  const [x, y, z, w] = [poses[at + 3], poses[at + 4], poses[at + 5], poses[at + 6]];
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ];
}

// A motion (w, v) of a body's coordinates in world axes about the origin given.
function movedColumn({ angular, linear }, poses, at, origin) {
  const R = rotationRows(poses, at);
  const d = [poses[at] - origin[0], poses[at + 1] - origin[1], poses[at + 2] - origin[2]];
  const w = R.map((row) => dot3(row, angular)), lever = cross3(d, w);
  return { w, v: R.map((row, k) => dot3(row, linear) + lever[k]) };
}

// The inertia m, m c, I of a body, in world axes about the origin given: m, m c, I (xx, xy, yy, xz, yz, zz).
function movedInertia([m, hx, hy, hz, xx, xy, yy, xz, yz, zz], poses, at, origin) {
  const R = rotationRows(poses, at);
  const d = [poses[at] - origin[0], poses[at + 1] - origin[1], poses[at + 2] - origin[2]];
  const h = R.map((row) => dot3(row, [hx, hy, hz]));
  const turned = R.map((row) => [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]].map((column) => dot3(column, row)));
  const trace = m * dot3(d, d) + 2 * dot3(d, h);
  const entry = (i, j) => dot3(R[i], turned[j]) + (i === j ? trace : 0) - m * d[i] * d[j] - d[i] * h[j] - h[i] * d[j];
  return [m, h[0] + m * d[0], h[1] + m * d[1], h[2] + m * d[2], entry(0, 0), entry(0, 1), entry(1, 1), entry(0, 2), entry(1, 2), entry(2, 2)];
}

function timesInertia([m, hx, hy, hz, xx, xy, yy, xz, yz, zz], { w, v }) {
  const h = [hx, hy, hz], lever = cross3(h, v), turn = cross3(w, h);
  return {
    angular: [xx * w[0] + xy * w[1] + xz * w[2] + lever[0], xy * w[0] + yy * w[1] + yz * w[2] + lever[1], xz * w[0] + yz * w[1] + zz * w[2] + lever[2]],
    linear: [m * v[0] + turn[0], m * v[1] + turn[1], m * v[2] + turn[2]],
  };
}
