// A whole run at once, for the rows of a sweep: from the very numbers of the row, step after step, with what a page shows
// of it. Part of the Worker (worker.js).

// Frames of a run at most, and samples of its curves.
const RUN_FRAMES = 2400, RUN_SAMPLES = 3000;

// Numbers that grow by rows.
class Grown {
  constructor(kind) {
    this.kind = kind;
    this.rows = [];
  }

  push(row) { this.rows.push(this.kind.from(row)); }

  get whole() {
    const out = new this.kind(this.rows.reduce((sum, row) => sum + row.length, 0));
    let at = 0;
    for (const row of this.rows) {
      out.set(row, at);
      at += row.length;
    }
    return out;
  }
}

// The pushes of a step: nine numbers each, its place, its first step, the one after its last, and the wrench.
function setPushes(pushes, spans, k) {
  pushes.fill(0);
  for (let at = 0; at < spans.length; at += 9) {
    if (k < spans[at + 1] || k >= spans[at + 2]) continue;
    for (let j = 0; j < 6; j++) pushes[6 * spans[at] + j] += spans[at + 3 + j];
  }
}

// inputs: q, v, drives, push_spans and the other arrays of the row, as it has them. Frames are states of 60 a second, samples those of the curves.
function rerun(physics, { inputs, steps }) {
  const { at, model } = physics, bodies = physics.live.masses.length;
  if (inputs.parameters) model.parameters = inputs.parameters;
  model.give(inputs);
  physics.start(0, inputs.q, inputs.v);
  model.give(inputs);
  const pictures = { t: new Grown(Float64Array), q: new Grown(Float64Array), v: new Grown(Float64Array), com: new Grown(Float32Array), momentum: new Grown(Float32Array),
    poses: new Grown(Float32Array), force: new Grown(Float32Array), contacts: new Grown(Float32Array), normals: new Grown(Float32Array), touching: new Grown(Float32Array), met: new Grown(Float32Array), meeting: new Grown(Float32Array) };
  const samples = { t: new Grown(Float64Array), energy: new Grown(Float64Array), momentum: new Grown(Float64Array) };
  const forces = new Float32Array(3 * (steps + 1)), byBody = new Float32Array(3 * bodies * (steps + 1));
  const frameEvery = Math.max(1, Math.round(1 / (60 * physics.dt)), Math.ceil(steps / RUN_FRAMES)), sampleEvery = Math.max(1, Math.ceil(steps / RUN_SAMPLES));
  const note = (k, last) => {
    const frame = last || k % frameEvery === 0;
    if (!frame && k % sampleEvery) return;
    model.see();
    const { figures } = model, { kinetic, potential, dissipated, work, total } = physics.energies();
    samples.t.push([k * physics.dt]);
    samples.energy.push([kinetic, potential, dissipated, work, total]);
    samples.momentum.push(figures.subarray(5));
    if (!frame) return;
    pictures.t.push([k * physics.dt]);
    pictures.q.push(model.q);
    pictures.v.push(model.v);
    pictures.com.push(figures.subarray(0, 3));
    pictures.momentum.push(figures.subarray(5));
    pictures.poses.push(physics.poses());
    pictures.force.push(forces.subarray(3 * k, 3 * k + 3));
    const { contacts, normals, met, bodies: touching } = k ? model.touching() : { contacts: [], normals: [], met: [], bodies: [] };
    pictures.contacts.push(contacts);
    pictures.normals.push(normals);
    pictures.touching.push([touching.length]);
    pictures.met.push(met);
    pictures.meeting.push([met.length / 9]);
  };
  note(0, false);
  let done = 0, finite = true;
  const impulse = at.impulse_fx, before = new Float64Array(3), good = { q: model.q.slice(), v: model.v.slice() };
  while (done < steps) {
    if (inputs.push_spans) setPushes(model.pushes, inputs.push_spans, done);
    before.set(model.ledger.subarray(impulse, impulse + 3));
    if (!physics.take() || !physics.finite) {
      finite = false;
      break;
    }
    done += 1;
    good.q.set(model.q);
    good.v.set(model.v);
    for (let j = 0; j < 3; j++) forces[3 * done + j] = (model.ledger[impulse + j] - before[j]) / physics.dt;
    byBody.set(model.forces(), 3 * bodies * done);
    note(done, done === steps);
  }
  const whole = (tables) => Object.fromEntries(Object.entries(tables).map(([key, grown]) => [key, grown.whole]));
  return { done, finite, pictures: whole(pictures), samples: whole(samples), forces: forces.slice(0, 3 * (done + 1)), byBody: byBody.slice(0, 3 * bodies * (done + 1)),
    q: good.q, v: good.v, dt: physics.dt, grips: model.groundGrips };
}
