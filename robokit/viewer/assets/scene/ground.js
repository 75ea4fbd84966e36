// The plane that the robot falls on: a floor that takes the shadow, and lines that fade out with the distance.

class Plane {
  // centre: of what is looked at, in the world; reach: its extent [m].
  constructor(ground, centre, reach) {
    this.group = new THREE.Group();
    this.group.position.set(0, 0, ground.height);
    this.group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), new THREE.Vector3(...ground.normal));
    this.back = this.group.quaternion.clone().conjugate();
    const radius = Math.max(2.2 * reach, 1.5), wide = 2.5 * radius;
    this.step = 10 ** Math.round(Math.log10(0.14 * reach));
    const disc = (material) => new THREE.Mesh(new THREE.CircleGeometry(radius, 64), material);
    this.shade = disc(new THREE.ShadowMaterial({ opacity: 0.24 }));
    this.shade.receiveShadow = true;
    this.floor = disc(new THREE.MeshBasicMaterial({ map: fade(), transparent: true, depthWrite: false }));
    this.floor.position.z = -0.0005 * reach;
    this.floor.renderOrder = -2;
    this.fine = gridLines(radius, this.step, 0.24);
    this.strong = gridLines(wide, 10 * this.step, 0.4);
    this.group.add(this.floor, this.shade, this.fine, this.strong);
    this.centre(centre);
  }

  // The floor goes with what is looked at; its lines keep their places in the world.
  centre(point) {
    const at = point.clone().sub(this.group.position).applyQuaternion(this.back);
    const snapped = (x, step) => step * Math.round(x / step);
    for (const disc of [this.shade, this.floor]) disc.position.set(at.x, at.y, disc.position.z);
    this.fine.position.set(snapped(at.x, this.step), snapped(at.y, this.step), 0);
    this.strong.position.set(snapped(at.x, 10 * this.step), snapped(at.y, 10 * this.step), 0);
  }
}

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
function gridLines(radius, step, strength) {
  const positions = [], colours = [];
  const alpha = (x, y) => strength * Math.max(0, 1 - Math.hypot(x, y) / radius) ** 1.5;
  const piece = radius / 12;
  const line = (fixed, swap) => {
    for (let s = -radius; s < radius - 1e-9; s += piece) {
      for (const end of [s, Math.min(s + piece, radius)]) {
        const [x, y] = swap ? [fixed, end] : [end, fixed];
        positions.push(x, y, 0);
        colours.push(0.13, 0.16, 0.23, alpha(x, y));
      }
    }
  };
  for (let k = Math.ceil(-radius / step); k * step < radius; k++) {
    line(k * step, false);
    line(k * step, true);
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 4));
  const lines = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }));
  lines.renderOrder = -1;
  return lines;
}
