// The tree's sets (lambda, mu, nu, kappa), and which body and joint a row of H belongs to.

class Branches {
  constructor(data) {
    this.data = data;
    const { parent } = data.bodies;
    this.parent = parent;
    this.joints = new Map(data.joints.map((joint) => [joint.body, joint]));
    this.children = parent.map(() => []);
    this.under = parent.map((_, i) => [i]);
    for (let i = parent.length - 1; i > 0; i--) {
      this.children[parent[i]].unshift(i);
      this.under[parent[i]].push(...this.under[i]);
    }
    this.under.forEach((set) => set.sort((a, b) => a - b));
    this.depth = parent.map(() => 0);
    for (let i = 1; i < parent.length; i++) this.depth[i] = this.depth[parent[i]] + 1;
    // The body that each degree of freedom moves.
    this.owner = new Int32Array(data.structure.n);
    for (const joint of data.joints) for (let k = joint.v[0]; k < joint.v[1]; k++) this.owner[k] = joint.body;
  }

  // The joints between a body and the root, the root's first.
  support(body) {
    const path = [];
    for (let b = body; b > 0; b = this.parent[b]) path.unshift(b);
    return path;
  }

  // The last body that two bodies hang on together.
  meet(a, b) {
    while (a !== b) {
      if (this.depth[a] >= this.depth[b]) a = this.parent[a];
      else b = this.parent[b];
    }
    return a;
  }

  // The bodies that make H(i, j) what it is: the way between two joints; a joint alone for itself.
  between(a, b) {
    const top = this.meet(a, b);
    const way = [...this.support(a), ...this.support(b)].filter((body) => this.depth[body] > this.depth[top]);
    return new Set(top === a || top === b ? [...way, top] : way);
  }

  // One number for a joint everywhere: that of the body that it moves; with the part of a joint of several.
  dofNumber(k) { return `${this.owner[k]}${this.part(k)}`; }

  dofName(k) { return `${this.joints.get(this.owner[k]).name}${this.part(k)}`; }

  part(k) {
    const joint = this.joints.get(this.owner[k]), at = k - joint.v[0];
    if (joint.v[1] - joint.v[0] === 1) return "";
    const names = { floating: ["ωx", "ωy", "ωz", "vx", "vy", "vz"], spherical: ["ωx", "ωy", "ωz"], planar: ["ω", "v1", "v2"], cylindrical: ["ω", "v"] };
    return ` ${names[joint.kind]?.[at] ?? at + 1}`;
  }

  // Whether a degree of freedom is a shift [m] and not an angle [rad].
  slides(k) {
    const joint = this.joints.get(this.owner[k]), at = k - joint.v[0];
    return joint.kind === "prismatic" || (joint.kind === "floating" && at > 2) || (joint.kind !== "spherical" && joint.kind !== "floating" && at > 0);
  }

  unit(i, j) { return ["kg m²", "kg m", "kg"][this.slides(i) + this.slides(j)]; }
}

// 3, 4, 5, 9 as "3–5, 9"
function ranges(numbers) {
  const parts = [];
  for (let k = 0; k < numbers.length; ) {
    let end = k;
    while (end + 1 < numbers.length && numbers[end + 1] === numbers[end] + 1) end++;
    parts.push(end > k + 1 ? `${numbers[k]}–${numbers[end]}` : numbers.slice(k, end + 1).join(", "));
    k = end + 1;
  }
  return parts.join(", ");
}

const setText = (members) => (members.length ? `{${ranges(members)}}` : "{}");

// For every cell the number of its block, -1 for an entry: cells whose joints part at the same two branches are one.
function zeroBlocks(pattern, n) {
  const parent = Array.from({ length: n }, (_, i) => {
    for (let j = i - 1; j >= 0; j--) if (pattern[i * n + j]) return j;
    return -1;
  });
  // The last of k's line upwards that is not on the line of another.
  const branch = (k, other) => {
    while (parent[k] >= 0 && !pattern[parent[k] * n + other]) k = parent[k];
    return k;
  };
  return Int32Array.from({ length: n * n }, (_, k) => {
    const i = Math.floor(k / n), j = k % n;
    return pattern[k] ? -1 : branch(i, j) * n + branch(j, i);
  });
}

// "left_knee_joint" as "left_knee": the room is small.
const shortName = (name) => name.replace(/(?<=.)[_-]?joint$/i, "");
