// The line round the selected link: its surface once more, from behind, pushed out by a few pixels.

class Outline {
  constructor(stage) {
    this.stage = stage;
    this.hulls = new Map();
    this.material = new THREE.ShaderMaterial({
      side: THREE.BackSide,
      uniforms: { tint: { value: new THREE.Color() }, reach: { value: new THREE.Vector2() } },
      vertexShader: `uniform vec2 reach;
        void main() {
          vec4 at = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
          vec2 away = (projectionMatrix * vec4(normalMatrix * normal, 0.0)).xy;
          at.xy += normalize(away + 1e-9) * reach * at.w;
          gl_Position = at;
        }`,
      fragmentShader: "uniform vec3 tint; void main() { gl_FragColor = vec4(tint, 1.0); }",
    });
  }

  // The link's visible shapes; those of its whole body where it has none.
  select(body, link) {
    const { stage } = this;
    for (const shell of stage.shells) shell.parent.remove(shell);
    const own = stage.roles.visual.filter((solid) => solid.userData.body === body);
    const named = own.filter((solid) => solid.userData.link === link);
    stage.shells = (body === null ? [] : named.length ? named : own).map((solid) => {
      const shell = new THREE.Mesh(this.hull(solid.geometry), this.material);
      shell.position.copy(solid.position);
      shell.quaternion.copy(solid.quaternion);
      shell.scale.copy(solid.scale);
      shell.visible = solid.visible;
      shell.onBeforeRender = () => this.fit();
      solid.parent.add(shell);
      return shell;
    });
    stage.dirty();
  }

  fit() {
    const { clientWidth, clientHeight } = this.stage.host, pixels = 3;
    this.material.uniforms.reach.value.set((2 * pixels) / Math.max(clientWidth, 1), (2 * pixels) / Math.max(clientHeight, 1));
    this.material.uniforms.tint.value.set(colour("chosen"));
  }

  // The surface with one normal for all corners at the same place, so that no edge tears open.
  hull(geometry) {
    const known = this.hulls.get(geometry);
    if (known) return known;
    const flat = geometry.index ? geometry.toNonIndexed() : geometry;
    const at = flat.attributes.position, sums = new Map();
    const key = (k) => [at.getX(k), at.getY(k), at.getZ(k)].map((x) => Math.round(x * 1e6)).join();
    const a = new THREE.Vector3(), b = new THREE.Vector3(), c = new THREE.Vector3();
    for (let k = 0; k < at.count; k += 3) {
      a.fromBufferAttribute(at, k);
      b.fromBufferAttribute(at, k + 1).sub(a);
      c.fromBufferAttribute(at, k + 2).sub(a);
      b.cross(c).normalize();
      for (let i = k; i < k + 3; i++) {
        const sum = sums.get(key(i));
        if (sum) sum.add(b);
        else sums.set(key(i), b.clone());
      }
    }
    const normals = new Float32Array(3 * at.count);
    for (let k = 0; k < at.count; k++) sums.get(key(k)).clone().normalize().toArray(normals, 3 * k);
    const hull = new THREE.BufferGeometry();
    hull.setAttribute("position", at);
    hull.setAttribute("normal", new THREE.BufferAttribute(normals, 3));
    this.hulls.set(geometry, hull);
    return hull;
  }
}
