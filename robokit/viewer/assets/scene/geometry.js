// Shapes of the payload as three.js geometries. Cylinders and capsules lie along z, as in a URDF.

const { THREE } = MeshCat;

// Round shapes get as many sides as can be seen: `size` is the robot's.
function buildGeometry(shape, size) {
  const sides = 2 * Math.round(Math.min(16, 7 + (70 * (shape.radius || 0)) / size));
  switch (shape.type) {
    case "box": return new THREE.BoxGeometry(...shape.size);
    case "sphere": return new THREE.SphereGeometry(shape.radius, sides, sides / 2);
    case "cylinder": return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, sides).rotateX(Math.PI / 2);
    case "capsule": return capsule(shape.radius, shape.length, sides);
    default: return mesh(shape);
  }
}

function capsule(radius, length, sides) {
  const profile = [], rings = 2 * Math.ceil(sides / 4);
  for (let k = 0; k <= rings; k++) {
    const angle = -Math.PI / 2 + (Math.PI * k) / rings;
    const end = (k < rings / 2 ? -0.5 : 0.5) * length;
    if (k === rings / 2) profile.push(new THREE.Vector2(radius, -0.5 * length));
    profile.push(new THREE.Vector2(Math.max(0, radius * Math.cos(angle)), end + radius * Math.sin(angle)));
  }
  return new THREE.LatheGeometry(profile, sides).rotateX(Math.PI / 2);
}

function mesh(shape) {
  const corners = new Uint16Array(bytes(shape.vertices).buffer);
  const raw = bytes(shape.faces).buffer;
  const faces = shape.wide ? new Uint32Array(raw) : new Uint16Array(raw);
  const points = new Float32Array(corners.length);
  for (let i = 0; i < corners.length; i++) points[i] = shape.low[i % 3] + shape.step[i % 3] * corners[i];
  const built = creased(points, faces, Math.cos((38 * Math.PI) / 180));
  if (shape.uv) built.setAttribute("uv", new THREE.BufferAttribute(floats(shape.uv), 2));
  if (shape.colours) {
    const given = bytes(shape.colours), colours = new Float32Array(3 * faces.length);
    const channel = (v, k) => given[3 * v + k] / 255;
    faces.forEach((v, k) => ink(new THREE.Color(channel(v, 0), channel(v, 1), channel(v, 2))).toArray(colours, 3 * k));
    built.setAttribute("color", new THREE.BufferAttribute(colours, 3));
  }
  return built;
}

// Normals smoothed over faces that meet at less than an angle: machined edges stay sharp, round parts round.
function creased(points, faces, cosine) {
  const count = faces.length / 3;
  const normal = new Float32Array(faces.length);
  const around = new Map();
  const a = new THREE.Vector3(), b = new THREE.Vector3(), c = new THREE.Vector3();
  for (let f = 0; f < count; f++) {
    a.fromArray(points, 3 * faces[3 * f]);
    b.fromArray(points, 3 * faces[3 * f + 1]).sub(a);
    c.fromArray(points, 3 * faces[3 * f + 2]).sub(a);
    b.cross(c).toArray(normal, 3 * f);
    for (let k = 0; k < 3; k++) {
      const v = faces[3 * f + k];
      if (around.has(v)) around.get(v).push(f);
      else around.set(v, [f]);
    }
  }
  const position = new Float32Array(9 * count), normals = new Float32Array(9 * count);
  for (let f = 0; f < count; f++) {
    a.fromArray(normal, 3 * f);
    const length = a.length();
    for (let k = 0; k < 3; k++) {
      const v = faces[3 * f + k];
      c.set(0, 0, 0);
      for (const g of around.get(v)) {
        b.fromArray(normal, 3 * g);
        if (g === f || a.dot(b) > cosine * length * b.length()) c.add(b);
      }
      const at = 9 * f + 3 * k;
      position.set(points.subarray(3 * v, 3 * v + 3), at);
      c.normalize().toArray(normals, at);
    }
  }
  const built = new THREE.BufferGeometry();
  built.setAttribute("position", new THREE.BufferAttribute(position, 3));
  built.setAttribute("normal", new THREE.BufferAttribute(normals, 3));
  return built;
}

// An arrow along z of unit length, drawn through everything; `point(from, vector)` places it.
class Arrow extends THREE.Group {
  constructor(tint, radius) {
    super();
    const material = new THREE.MeshBasicMaterial({ color: ink(tint), depthTest: false, transparent: true, opacity: 0.92 });
    this.shaft = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 14).translate(0, 0.5, 0).rotateX(Math.PI / 2), material);
    this.head = new THREE.Mesh(new THREE.ConeGeometry(1, 1, 18).translate(0, 0.5, 0).rotateX(Math.PI / 2), material);
    this.radius = radius;
    this.renderOrder = 8;
    this.shaft.renderOrder = this.head.renderOrder = 8;
    this.add(this.shaft, this.head);
  }

  point(from, vector) {
    const length = vector.length();
    this.visible = length > 1e-6;
    if (!this.visible) return;
    const tip = Math.min(5 * this.radius, 0.5 * length);
    this.position.copy(from);
    this.quaternion.setFromUnitVectors(Arrow.z, vector.clone().divideScalar(length));
    this.shaft.scale.set(this.radius, this.radius, Math.max(length - tip, 1e-6));
    this.head.scale.set(0.45 * tip, 0.45 * tip, tip);
    this.head.position.z = length - tip;
  }
}
Arrow.z = new THREE.Vector3(0, 0, 1);

// Many such arrows, each with a dot where it begins, in three draw calls.
class Arrows extends THREE.Group {
  constructor(tint, radius, capacity) {
    super();
    const material = new THREE.MeshBasicMaterial({ color: ink(tint), depthTest: false, transparent: true, opacity: 0.92 });
    const shapes = [new THREE.CylinderGeometry(1, 1, 1, 14).translate(0, 0.5, 0).rotateX(Math.PI / 2), new THREE.ConeGeometry(1, 1, 18).translate(0, 0.5, 0).rotateX(Math.PI / 2), new THREE.SphereGeometry(1.5 * radius, 12, 8)];
    this.drawn = shapes.map((shape) => {
      const many = new THREE.InstancedMesh(shape, material, Math.max(capacity, 1));
      many.frustumCulled = false;
      many.renderOrder = 8;
      return many;
    });
    this.add(...this.drawn);
    this.pattern = new Arrow(tint, radius);
    this.clear();
  }

  get capacity() { return this.drawn[0].instanceMatrix.count; }

  clear() { for (const many of this.drawn) many.count = 0; }

  // One more arrow; the dot is there even where the vector is too short to be drawn.
  push(from, vector) {
    const { pattern } = this, [shafts, heads, dots] = this.drawn;
    dots.setMatrixAt(dots.count++, new THREE.Matrix4().setPosition(from));
    pattern.point(from, vector);
    if (pattern.visible) {
      pattern.updateMatrixWorld(true);
      shafts.setMatrixAt(shafts.count++, pattern.shaft.matrixWorld);
      heads.setMatrixAt(heads.count++, pattern.head.matrixWorld);
    }
    for (const many of this.drawn) many.instanceMatrix.needsUpdate = true;
  }
}
