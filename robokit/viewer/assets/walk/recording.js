// An algorithm as it ran: its steps, one a line at work, and the values that each read and wrote.

async function inflated(text, kind) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new kind(await new Response(stream).arrayBuffer());
}

class Recording {
  static async open(walk, algorithm) {
    const [steps, shapes, values] = await Promise.all([
      inflated(algorithm.steps, Uint16Array), inflated(algorithm.shapes, Uint16Array), inflated(algorithm.values, Float32Array)]);
    return new Recording(walk, algorithm, steps, shapes, values);
  }

  constructor(walk, algorithm, steps, shapes, values) {
    this.algorithm = algorithm;
    this.rows = [...walk.rows];
    this.kinds = [...walk.kinds];
    // Rows are counted as the text counts: degrees of freedom from 0; elsewhere from 1, as on the rest of the page.
    this.from = algorithm.by_dof ? 0 : 1;
    this.steps = steps;
    this.values = values;
    this.forms = algorithm.forms.map((form) => ({ ...form, letters: [...form.letters] }));
    this.letters = algorithm.letters.map((letter) => ({ ...letter }));
    this.width = algorithm.indices.length;
    this.starts = [];
    for (let at = 0; at < steps.length; at += 1 + this.width + 2 * this.forms[steps[at]].letters.length) this.starts.push(at);
    this.count = this.starts.length;
    // Of each value: its kind, and where its numbers stand among those of an instant.
    this.shapes = shapes;
    this.places = [0];
    for (let k = 1; k < shapes.length; k += 2) this.places.push(this.places[this.places.length - 1] + shapes[k]);
    this.perInstant = this.places[this.places.length - 1];
    this.findBodies();
  }

  form(step) { return this.forms[this.steps[this.starts[step]]]; }

  // Values of the indices; null where the line does not speak of one.
  indices(step) {
    const at = this.starts[step] + 1;
    return Array.from({ length: this.width }, (_, k) => (this.steps[at + k] ? this.steps[at + k] - 1 : null));
  }

  // The bodies of the indices, in their order.
  bodies(step) {
    return this.indices(step).map((index) => (index !== null && this.from === 0 ? this.rows[index] : index));
  }

  numbers(value, instant) {
    const at = instant * this.perInstant;
    return this.values.subarray(at + this.places[value], at + this.places[value + 1]);
  }

  // What the step read and wrote: { letter, body, cell, kind, numbers } each.
  seen(step, instant) {
    const first = this.starts[step] + 1 + this.width;
    return this.form(step).letters.map((place, k) => {
      const letter = this.letters[place];
      const where = this.steps[first + 2 * k] - 1, value = this.steps[first + 2 * k + 1];
      const n = this.rows.length + 1;
      return { letter, value, body: letter.entry || where < 0 ? null : where, cell: letter.entry ? [Math.floor(where / n), where % n] : null,
        kind: this.kinds[this.shapes[2 * value]], numbers: this.numbers(value, instant) };
    });
  }

  // Where the work on a body begins, step by step; and the first step of each body in each pass.
  findBodies() {
    const { algorithm } = this;
    this.begins = [];
    this.first = algorithm.sweeps.map((sweep) => new Map());
    this.sweepStart = algorithm.sweeps.map((sweep) => null);
    let before = null;
    for (let step = 0; step < this.count; step++) {
      const number = this.form(step).sweep, index = this.indices(step)[0];
      if (number < 0 || index === null) continue;
      const key = `${number} ${index}`;
      const body = this.bodies(step)[0];
      if (key !== before) this.begins.push(step);
      before = key;
      this.sweepStart[number] ??= step;
      if (!this.first[number].has(body)) this.first[number].set(body, step);
    }
  }

  // The step at which the work on the body before or after begins.
  neighbour(step, way) {
    if (way > 0) return this.begins.find((begin) => begin > step) ?? this.count - 1;
    return [...this.begins].reverse().find((begin) => begin < step) ?? 0;
  }

  // The step at which the work on a body begins, in this pass or the next that comes to it.
  of(body, step) {
    const number = Math.max(this.form(step).sweep, 0);
    for (let k = 0; k < this.first.length; k++) {
      const found = this.first[(number + k) % this.first.length].get(body);
      if (found !== undefined) return found;
    }
    return null;
  }
}
