// An algorithm as it ran: its steps, one a line at work, and the values that each read and wrote. Which lines run is the
// same for all states; the numbers are those of the program, as it was run last.

class Recording {
  static async open(walk, algorithm, program) {
    const tables = await Promise.all([algorithm.steps, algorithm.counters, algorithm.places, algorithm.seen, algorithm.shapes, algorithm.numbers].map(wholeNumbers));
    return new Recording(walk, algorithm, program, ...tables);
  }

  constructor(walk, algorithm, program, steps, counters, places, seen, shapes, numbers) {
    this.algorithm = algorithm;
    this.program = program;
    this.rows = [...walk.rows];
    this.kinds = [...walk.kinds];
    // Rows are counted as the text counts: degrees of freedom from 0; elsewhere from 1, as on the rest of the page.
    this.from = algorithm.by_dof ? 0 : 1;
    this.forms = algorithm.forms.map((form) => ({ ...form, letters: [...form.letters] }));
    this.letters = algorithm.letters.map((letter) => ({ ...letter }));
    this.width = algorithm.indices.length;
    this.steps = steps;
    this.count = steps.length;
    this.counters = counters;
    // Of each value that a step read or wrote: where it belongs and which it is; and where those of each step begin.
    this.places = places;
    this.values = summed(seen);
    this.starts = [0];
    for (const one of steps) this.starts.push(this.starts[this.starts.length - 1] + this.forms[one].letters.length);
    // Of each value: its kind, and where its numbers stand among those of all values.
    this.shapes = shapes;
    this.refs = summed(numbers);
    this.ends = [0];
    for (let k = 1; k < shapes.length; k += 2) this.ends.push(this.ends[this.ends.length - 1] + shapes[k]);
    this.findBodies();
    this.findWritten();
  }

  form(step) { return this.forms[this.steps[step]]; }

  // Values of the indices; null where the line does not speak of one.
  indices(step) {
    return Array.from(this.counters.subarray(step * this.width, (step + 1) * this.width), (index) => (index < 0 ? null : index));
  }

  // The bodies of the indices, in their order.
  bodies(step) {
    return this.indices(step).map((index) => (index !== null && this.from === 0 ? this.rows[index] : index));
  }

  number(at) {
    const ref = this.refs[at], value = this.program.slots[ref >> 1];
    return ref & 1 ? -value : value;
  }

  numbers(value) {
    const first = this.ends[value];
    return Float64Array.from({ length: this.ends[value + 1] - first }, (_, k) => this.number(first + k));
  }

  // What the step read and wrote: { letter, value, body, cell, kind, numbers } each.
  seen(step) {
    const n = this.rows.length + 1;
    return this.form(step).letters.map((place, k) => {
      const letter = this.letters[place], at = this.starts[step] + k, where = this.places[at], value = this.values[at];
      return { letter, value, body: letter.entry || where < 0 ? null : where, cell: letter.entry ? [Math.floor(where / n), where % n] : null,
        kind: this.kinds[this.shapes[2 * value]], numbers: this.numbers(value) };
    });
  }

  // Where the work on a body begins, step by step; and the first step of each body in each pass.
  findBodies() {
    const { algorithm } = this;
    this.begins = [];
    this.first = algorithm.sweeps.map((sweep) => new Map());
    let before = null;
    for (let step = 0; step < this.count; step++) {
      const number = this.form(step).sweep, index = this.indices(step)[0];
      if (number < 0 || index === null) continue;
      const key = `${number} ${index}`;
      const body = this.bodies(step)[0];
      if (key !== before) this.begins.push(step);
      before = key;
      if (!this.first[number].has(body)) this.first[number].set(body, step);
    }
  }

  // What the steps write into the matrix, [step, row, column, where the number stands] each, row -1 for all of it; and,
  // by symbol, the spatial vectors that are read and written.
  findWritten() {
    const { algorithm } = this, { matrix } = algorithm, n = this.rows.length;
    this.entries = [];
    this.vectors = new Map();
    for (let step = 0; step < this.count; step++) {
      this.form(step).letters.forEach((place, k) => {
        const letter = this.letters[place], at = this.starts[step] + k, where = this.places[at], value = this.values[at], first = this.ends[value];
        const kind = this.kinds[this.shapes[2 * value]];
        if (isArrow(kind, this.shapes[2 * value + 1]) && where >= 0 && !algorithm.by_dof) {
          if (!this.vectors.has(letter.symbol)) this.vectors.set(letter.symbol, new Set());
          this.vectors.get(letter.symbol).add(value);
        }
        if (!matrix || !letter.out) return;
        if (!letter.entry) {
          if (letter.written === matrix && kind === "matrix") this.entries.push([step, -1, 0, first]);
          return;
        }
        const row = Math.floor(where / (n + 1)), column = where % (n + 1);
        if (column < n) this.entries.push([step, row, column, first]);
        else for (let j = 0; j < n; j++) this.entries.push([step, row, j, first + j]);
      });
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

// Whether a value is drawn as arrows: a spatial vector, or a single column.
const isArrow = (kind, count) => count === 6 && /^(motion|force)s?$/.test(kind);
