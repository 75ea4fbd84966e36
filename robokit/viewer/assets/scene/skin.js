// All bodies of the robot in a few draw calls, however many there are: shapes with the same kind of surface are
// one geometry, whose vertices know their body. A small texture holds the pose and the glow of every body.

const POSES_ACROSS = 64;

const POSE_OF_BODY = `
attribute float body;
uniform sampler2D bodyTable;
uniform vec2 bodyTableSize;
varying vec3 vGlow;
vec4 bodyRow(float k) {
  float row = floor((body + 0.5) / ${POSES_ACROSS}.0);
  return texture2D(bodyTable, (vec2(4.0 * (body - ${POSES_ACROSS}.0 * row) + k, row) + 0.5) / bodyTableSize);
}`;

class Skin {
  // nodes: those to draw; geometries: of the page's shapes; bodies: the groups that move; picture: texture by number.
  constructor(nodes, geometries, bodies, picture) {
    this.bodies = bodies;
    const rows = Math.ceil(bodies.length / POSES_ACROSS);
    this.numbers = new Float32Array(16 * POSES_ACROSS * rows);
    this.table = new THREE.DataTexture(this.numbers, 4 * POSES_ACROSS, rows, THREE.RGBAFormat, THREE.FloatType);
    this.uniforms = { bodyTable: { value: this.table }, bodyTableSize: { value: new THREE.Vector2(4 * POSES_ACROSS, rows) } };
    const kinds = new Map();
    for (const node of nodes) {
      const geometry = geometries[node.geometry];
      const key = [node.rgba[3], node.picture, geometry.type === "BufferGeometry"].join();
      if (!kinds.has(key)) kinds.set(key, []);
      kinds.get(key).push(node);
    }
    this.alphas = [...kinds.values()].map(([node]) => node.rgba[3]);
    this.parts = [...kinds.values()].map((alike) => this.part(alike, geometries, picture));
    this.move();
  }

  part(nodes, geometries, picture) {
    const [first] = nodes, alpha = first.rgba[3];
    const material = this.posed(new THREE.MeshStandardMaterial({ roughness: 0.58, metalness: 0.06, vertexColors: true, transparent: alpha < 1, opacity: alpha, depthWrite: alpha === 1 }));
    // Mesh files may be open, or have their faces turned.
    if (geometries[first.geometry].type === "BufferGeometry") material.side = THREE.DoubleSide;
    if (first.picture !== null) material.map = picture(first.picture);
    const solid = new THREE.Mesh(joined(nodes, geometries), material);
    solid.customDepthMaterial = this.posed(new THREE.MeshDepthMaterial({ depthPacking: THREE.RGBADepthPacking }));
    solid.castShadow = solid.receiveShadow = alpha > 0.5;
    solid.frustumCulled = false;
    return solid;
  }

  // A material whose vertices move with their bodies.
  posed(material) {
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, this.uniforms);
      shader.vertexShader = shader.vertexShader
        .replace("#include <common>", `#include <common>\n${POSE_OF_BODY}`)
        .replace("void main() {", "void main() {\nvec4 rowX = bodyRow(0.0), rowY = bodyRow(1.0), rowZ = bodyRow(2.0);\nvGlow = bodyRow(3.0).rgb;")
        .replace("#include <beginnormal_vertex>", "#include <beginnormal_vertex>\nobjectNormal = vec3(dot(rowX.xyz, objectNormal), dot(rowY.xyz, objectNormal), dot(rowZ.xyz, objectNormal));")
        .replace("#include <begin_vertex>", "#include <begin_vertex>\nvec4 inBody = vec4(transformed, 1.0);\ntransformed = vec3(dot(rowX, inBody), dot(rowY, inBody), dot(rowZ, inBody));");
      shader.fragmentShader = shader.fragmentShader
        .replace("#include <common>", "#include <common>\nvarying vec3 vGlow;")
        .replace("#include <emissivemap_fragment>", "#include <emissivemap_fragment>\ntotalEmissiveRadiance += vGlow;");
    };
    return material;
  }

  // Where the bodies' groups stand.
  move() {
    this.bodies.forEach((group, k) => {
      group.updateMatrix();
      const m = group.matrix.elements;
      for (let row = 0; row < 3; row++) for (let column = 0; column < 4; column++) this.numbers[16 * k + 4 * row + column] = m[4 * column + row];
    });
    this.table.needsUpdate = true;
  }

  // How strongly each body shines, in one colour: red, green and blue.
  glow(strength, tint) { this.shine((k) => tint.map((part) => part * strength(k))); }

  // The light that each body gives: red, green and blue.
  shine(light) {
    this.bodies.forEach((_, k) => this.numbers.set(light(k), 16 * k + 12));
    this.table.needsUpdate = true;
  }

  // So much of its opacity, from 0 to 1; what lies inside shows.
  fade(share) {
    this.parts.forEach(({ material }, k) => {
      material.opacity = share * this.alphas[k];
      material.transparent = material.opacity < 1;
      material.depthWrite = !material.transparent;
      material.needsUpdate = true;
    });
  }
}

// One geometry of the shapes of many nodes, in the frames of their bodies; colours are those of node and mesh.
function joined(nodes, geometries) {
  const parts = nodes.map((node) => {
    const geometry = geometries[node.geometry];
    return { node, geometry, flat: geometry.index ? geometry.toNonIndexed() : geometry };
  });
  const count = parts.reduce((sum, { flat }) => sum + flat.attributes.position.count, 0);
  const place = new THREE.Matrix4(), turn = new THREE.Matrix3(), one = new THREE.Vector3(1, 1, 1), v = new THREE.Vector3();
  const made = { position: new Float32Array(3 * count), normal: new Float32Array(3 * count), color: new Float32Array(3 * count), uv: new Float32Array(2 * count), body: new Float32Array(count) };
  let at = 0;
  for (const { node, flat } of parts) {
    const { position, normal, color, uv } = flat.attributes;
    place.compose(new THREE.Vector3().fromArray(node.pose), new THREE.Quaternion().fromArray(node.pose, 3), one);
    turn.setFromMatrix4(place);
    const paint = ink(new THREE.Color(...node.rgba.slice(0, 3)));
    for (let k = 0; k < position.count; k++, at++) {
      v.fromBufferAttribute(position, k).applyMatrix4(place).toArray(made.position, 3 * at);
      v.fromBufferAttribute(normal, k).applyMatrix3(turn).toArray(made.normal, 3 * at);
      v.set(paint.r, paint.g, paint.b);
      if (color) { v.x *= color.getX(k); v.y *= color.getY(k); v.z *= color.getZ(k); }
      v.toArray(made.color, 3 * at);
      if (uv) { made.uv[2 * at] = uv.getX(k); made.uv[2 * at + 1] = uv.getY(k); }
      made.body[at] = node.body;
    }
  }
  const geometry = new THREE.BufferGeometry();
  const widths = { position: 3, normal: 3, color: 3, uv: 2, body: 1 };
  for (const [name, width] of Object.entries(widths)) geometry.setAttribute(name, new THREE.BufferAttribute(made[name], width));
  return geometry;
}
