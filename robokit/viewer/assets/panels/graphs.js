// What plots can show: the curves of the run as they were stored, and those made here of frames, by joint or link.

const MOST_LINES = 6;
// Begins the keys of curves of the caller's own (viewer/motion_data.py).
const OWN = "own ";
const LINK_PARTS = {
  position: { label: "position", words: "Position", unit: "m" },
  linear: { label: "velocity", words: "Velocity", unit: "m/s" },
  orientation: { label: "orientation", words: "Roll, pitch and yaw", unit: "rad", names: ["roll", "pitch", "yaw"] },
  angular: { label: "angular velocity", words: "Angular velocity", unit: "rad/s" },
};
const FREE_NAMES = { 7: ["w", "x", "y", "z", "px", "py", "pz"], 6: ["ωx", "ωy", "ωz", "vx", "vy", "vz"], 4: ["w", "x", "y", "z"] };

class Graphs {
  constructor(data, motion) {
    this.data = data;
    this.motion = motion;
    this.t = Array.from(motion.t);
    this.stored = new Map(data.curves.map((curve) => [curve.key, {
      title: curve.title, unit: curve.unit, x: Array.from(floats(curve.t)),
      lines: curve.series.map((series) => ({ name: series.name, y: Array.from(floats(series.y)), hold: curve.hold, gaps: curve.key.startsWith(OWN) })),
    }]));
    const { link_forces } = data;
    this.forces = link_forces.map((linkForce) => ({ name: linkForce.link, x: Array.from(floats(linkForce.t)), y: Array.from(floats(linkForce.y)), hold: linkForce.hold }));
    this.moving = new LinkMotion(data, motion);
    this.peaks = new Map();
    const { peaks } = data.frames;
    for (const peak of peaks) this.peaks.set(`${peak.line} ${peak.index}`, { x: floats(peak.t), y: floats(peak.y) });
  }

  // A graph of the run: {title, unit, x, lines}.
  run(key) {
    const graph = this.stored.get(key);
    return { ...graph, lines: graph.lines.map((line) => ({ ...line })) };
  }

  // The links with the largest forces, and the one that is selected.
  links(selected) {
    const shown = this.forces.filter((line, k) => k < MOST_LINES || line.name === selected);
    return { title: "Ground force on each link", unit: "N", x: this.t, lines: shown.map((line) => ({ ...line })) };
  }

  // One line of frames: column `index` of q, v or tau, with the peaks between frames.
  column(line, index) {
    const { motion } = this;
    const values = motion[line], width = values.length / motion.count;
    const y = Array.from({ length: motion.count }, (_, k) => values[k * width + index]);
    const more = this.peaks.get(`${line} ${index}`);
    if (!more) return { x: this.t, y };
    const both = [...this.t.map((t, k) => [t, y[k]]), ...Array.from(more.x, (t, k) => [t, more.y[k]])];
    both.sort((a, b) => a[0] - b[0]);
    const sound = both.filter(([t], k) => !k || t > both[k - 1][0]);
    return { x: sound.map(([t]) => t), y: sound.map(([, value]) => value) };
  }

  // Position ("q"), velocity ("v") or force ("tau") of several joints, with their limits.
  joints(list, line) {
    const names = { q: "Position", v: "Velocity", tau: "Force" };
    const units = new Set();
    const lines = list.flatMap((joint) => {
      const metre = joint.kind === "prismatic";
      const [first, end] = line === "q" ? joint.q : joint.v;
      units.add({ q: metre ? "m" : "rad", v: metre ? "m/s" : "rad/s", tau: metre ? "N" : "N m" }[line]);
      const reach = { v: joint.velocity, tau: joint.effort }[line];
      const limits = line === "q" ? { low: joint.lower ?? undefined, high: joint.upper ?? undefined } : reach ? { low: -reach, high: reach } : {};
      return Array.from({ length: end - first }, (_, k) => {
        const part = end - first > 1 ? ` ${(FREE_NAMES[end - first] || [1, 2, 3])[k]}` : "";
        return { name: joint.name + part, ...this.column(line, first + k), ...(part ? {} : limits) };
      });
    });
    return { title: `${names[line]} of joints`, unit: [...units].join(", "), x: this.t, lines };
  }

  // The bodies with the largest kinetic energies, and the one that is selected.
  bodies(selected) {
    this.energies ??= this.moving.energies();
    const lines = this.energies.map((y, k) => ({ body: k + 1, name: this.data.bodies.name[k + 1], y, most: y.reduce((most, one) => (one > most ? one : most), 0) }));
    lines.sort((one, other) => other.most - one.most);
    const shown = lines.filter(({ body, most }, k) => (k < MOST_LINES && most > 0) || body === selected);
    return { title: "Kinetic energy of each body, without rotors", unit: "J", x: this.t, lines: shown.map(({ name, y }) => ({ name, y })) };
  }

  // Place, orientation or velocity of a point of a link, in world axes.
  link(name, point, part) {
    const { words, unit, names = ["x", "y", "z"] } = LINK_PARTS[part];
    const key = [name, ...point].join(" ");
    if (this.linkKey !== key) this.linkLines = this.moving.link(name, point);
    this.linkKey = key;
    const values = this.linkLines[part];
    const lines = names.map((axis, k) => ({ name: axis, y: values[k] }));
    if (part === "linear" || part === "angular") lines.unshift({ name: "size", y: values[0].map((_, k) => Math.hypot(...values.map((one) => one[k]))) });
    return { title: `${words} of ${name}, world axes`, unit, x: this.t, lines };
  }
}
