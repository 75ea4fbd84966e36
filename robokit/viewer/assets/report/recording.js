// A run of the Worker (rerun.js) as the data of a row's page: frames, curves, forces, events.

// The bytes of an array as base64.
function base64(array) {
  const raw = new Uint8Array(array.buffer, array.byteOffset, array.byteLength), parts = [];
  for (let k = 0; k < raw.length; k += 32768) parts.push(String.fromCharCode(...raw.subarray(k, k + 32768)));
  return btoa(parts.join(""));
}

const singles = (values) => base64(Float32Array.from(values));

// Every so many-th of the rows of a table.
const lineOf = (table, width, k) => Float32Array.from({ length: table.length / width }, (_, row) => table[row * width + k]);

const sizesOf = (table) => Float32Array.from({ length: table.length / 3 }, (_, k) => Math.hypot(table[3 * k], table[3 * k + 1], table[3 * k + 2]));

// Places of the samples that a curve of so many keeps: the smallest and the largest of each bucket.
function thinned(lines, buckets = 600) {
  const count = lines[0].length;
  if (count <= 2 * buckets) return [...lines[0].keys()];
  const width = Math.ceil(count / buckets), found = new Set([0, count - 1]);
  for (const values of lines) {
    for (let from = 0; from < count; from += width) {
      let low = from, high = from;
      for (let k = from; k < Math.min(from + width, count); k++) {
        if (values[k] < values[low]) low = k;
        if (values[k] > values[high]) high = k;
      }
      found.add(low).add(high);
    }
  }
  return [...found].sort((a, b) => a - b);
}

function plotOf(key, title, unit, t, lines, hold = 0) {
  const keep = thinned(Object.values(lines)), pick = (values) => singles(keep.map((k) => values[k]));
  return { key, title, unit, t: pick(t), series: Object.entries(lines).map(([name, y]) => ({ name, y: pick(y) })), hold };
}

function curvesOf(run) {
  const { samples, forces, dt } = run, { t } = samples;
  const energy = ["kinetic", "potential", "dissipated", "work", "total"].map((_, k) => lineOf(samples.energy, 5, k));
  const [kinetic, potential, dissipated, work, total] = energy;
  const parts = { kinetic, potential, dissipated, ...(work.some(Boolean) ? { work } : {}), total };
  const h = [0, 1, 2, 3, 4, 5].map((k) => lineOf(samples.momentum, 6, k));
  const steps = Float32Array.from({ length: forces.length / 3 }, (_, k) => k * dt);
  const found = [plotOf("energy", "Energy", "J", t, parts)];
  if (forces.some(Boolean)) {
    const [x, y, z] = [0, 1, 2].map((k) => lineOf(forces, 3, k));
    found.push(plotOf("force", "Contact force", "N", steps, { size: sizesOf(forces), x, y, z }, dt));
  }
  found.push(plotOf("linear", "Linear momentum", "N s", t, { x: h[3], y: h[4], z: h[5] }));
  found.push(plotOf("angular", "Angular momentum about the CoM", "N m s", t, { x: h[0], y: h[1], z: h[2] }));
  const drift = Float32Array.from({ length: t.length }, (_, k) => samples.energy[5 * k + 4] - samples.energy[4]);
  found.push(plotOf("drift", "Energy balance: change of the total", "J", t, { drift }));
  return found;
}

// Size of the force on each body, the largest first: { body, sizes, first, peak }.
function touchedBodies(run, bodies) {
  const found = [];
  for (let i = 0; i < bodies; i++) {
    const sizes = new Float32Array(run.done + 1);
    let first = -1, peak = 0;
    for (let k = 1; k <= run.done; k++) {
      const at = 3 * (k * bodies + i);
      sizes[k] = Math.hypot(run.byBody[at], run.byBody[at + 1], run.byBody[at + 2]);
      if (sizes[k] > 0 && first < 0) first = k;
      if (sizes[k] > sizes[peak]) peak = k;
    }
    if (first >= 0) found.push({ body: i + 1, sizes, first, peak });
  }
  return found.sort((a, b) => b.sizes[b.peak] - a.sizes[a.peak]);
}

// First contacts and largest forces, and what the sweep knows of the row.
function eventsOf(run, bodies, names, row) {
  const happenings = [], add = (k, kind, body, text, size) => {
    happenings.push({ time: Math.max(0, (k - 0.5) * run.dt), kind, subject: names[body], body, link: names[body], text, size });
  };
  for (const { body, sizes, first, peak } of bodies) {
    add(first, "first contact", body, "touches the ground", "");
    add(peak, "peak force", body, `largest contact force ${figure(sizes[peak])} N`, `${figure(sizes[peak])} N`);
  }
  happenings.sort((a, b) => a.time - b.time);
  const placed = (kind, body) => happenings.findIndex((one) => one.kind === kind && one.body === body);
  const said = (role) => row.filter((one) => one.role === role).map(({ title, text, about }) => ({ label: title, value: text, note: about, event: null, doubtful: false }));
  const inOrder = [...bodies].sort((a, b) => a.first - b.first);
  return {
    happenings, left_out: 0, sampled: "", answers: said("measure"),
    touched: inOrder.map(({ body }) => ({ link: names[body], first: placed("first contact", body), peak: placed("peak force", body), impacts: 0, slid: "" })),
    reached: [], assumed: said("parameter"),
    books: [{ label: "energy", value: `${figure(Math.abs(run.samples.energy.at(-1) - run.samples.energy[4]))} J`, note: "kinetic + potential + dissipated, end minus start", event: null, doubtful: false }],
  };
}

// The row's data: that of its robot, with its motion, its masses and its start.
function rowData(base, run, inputs, inertial, title, row) {
  const names = base.bodies.name, bodies = names.length - 1, pressed = touchedBodies(run, bodies), { pictures } = run;
  const made = structuredClone(base), count = pictures.t.length;
  if (inertial) {
    const before = base.bodies.inertial, { links, live, robot: header } = made;
    made.bodies.inertial = [before[0], ...inertial];
    for (const one of links) {
      const share = one.body && before[one.body][0] ? made.bodies.inertial[one.body][0] / before[one.body][0] : 1;
      one.mass *= share;
      if (one.moments) one.moments = one.moments.map((x) => x * share);
    }
    const rest = header.total_mass - header.mass;
    header.mass = inertial.reduce((sum, [m]) => sum + m, 0);
    header.total_mass = header.mass + rest;
    live.mass = header.mass;
    live.masses = inertial.map(([m]) => m);
  }
  if (inputs.shape_friction && run.grips.length) made.live.grips = run.grips;
  Object.assign(made.live, { q: base64(inputs.q), v: base64(inputs.v) });
  if (inputs.parameters) made.live.parameters = base64(inputs.parameters);
  const shared = ["q", "v", "parameters", "carried", "push_spans"];
  made.live.own = Object.entries(inputs).filter(([name]) => !shared.includes(name)).map(([name, values]) => [name, base64(values)]);
  made.robot.name = title;
  made.frames = {
    count, sane: count, t: singles(pictures.t), poses: singles(alignedPoses(pictures.poses, bodies)), q: singles(pictures.q), v: singles(pictures.v), tau: null,
    com: base64(pictures.com), momentum: base64(pictures.momentum), force: run.forces.some(Boolean) ? base64(pictures.force) : null,
    contact_count: base64(pictures.touching), contacts: base64(pictures.contacts), contact_normals: base64(pictures.normals), met_count: base64(pictures.meeting), met: base64(pictures.met), peaks: [],
  };
  made.curves = curvesOf(run);
  const t = Float32Array.from({ length: run.done + 1 }, (_, k) => k * run.dt);
  made.link_forces = pressed.map(({ body, sizes }) => {
    const keep = thinned([sizes]);
    return { link: names[body], t: singles(keep.map((k) => t[k])), y: singles(keep.map((k) => sizes[k])), hold: run.dt };
  });
  made.events = eventsOf(run, pressed, names, row);
  made.summary = [];
  made.stopped = run.finite ? null : { time: run.done * run.dt, reason: "The state is no longer finite.", remedy: "" };
  return made;
}

// Quaternions of neighbouring frames without jumps of sign.
function alignedPoses(poses, bodies) {
  const width = 7 * bodies;
  for (let at = width; at < poses.length; at += width) alignTurns(poses, at, width);
  return poses;
}
