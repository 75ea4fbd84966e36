// What a row hands to the step: put together from what its robot's rows share and what is its own.

class RowInputs {
  static async load(rerunData) {
    const made = new RowInputs();
    made.places = await inflated(rerunData.places, Uint32Array);
    made.factors = await Promise.all(rerunData.factors.map((text) => planes(text, Float64Array)));
    made.inputs = await Promise.all(rerunData.inputs.map((inputData) => RowInputs.input(inputData)));
    made.hashes = rerunData.hashes ? await planes(rerunData.hashes, BigUint64Array) : null;
    return made;
  }

  static async input(inputData) {
    const base = await inflated(inputData.base, Float64Array);
    return { name: inputData.name, base, parts: await Promise.all(inputData.parts.map((partData) => RowInputs.part(partData))) };
  }

  static async part(partData) {
    const kind = { 1: Int8Array, 2: Int16Array, 8: Float64Array }[partData.bytes];
    return { entries: partData.entries, factor: partData.factor, values: await planes(partData.values, kind), whole: partData.bytes === 8 };
  }

  // Which of the robot's rows stands at a place of the page.
  find(place) { return this.places.indexOf(place); }

  // Its inputs by name, every bit of them.
  of(k) {
    const made = {};
    for (const { name, base, parts } of this.inputs) {
      const values = base.slice(), words = new BigInt64Array(values.buffer);
      for (const part of parts) {
        part.entries.forEach((entry, j) => {
          const kept = part.values[k * part.entries.length + j];
          if (part.whole) {
            values[entry] = kept;
            return;
          }
          if (part.factor >= 0) values[entry] *= this.factors[part.factor][k];
          words[entry] += BigInt(kept);
        });
      }
      made[name] = values;
    }
    return made;
  }
}

// As state_hash of robokit.sweeps.recipe has it.
function stateHash(q, v) {
  let h = 0xcbf29ce484222325n;
  for (const values of [q, v]) {
    for (const word of new BigUint64Array(values.slice().buffer)) {
      h = BigInt.asUintN(64, (h ^ word) * 0x100000001b3n);
      h ^= h >> 32n;
    }
  }
  return h;
}
