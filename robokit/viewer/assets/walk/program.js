// What all lines of the algorithms read and wrote, as one list of operations on the state: taken afresh for each
// state that the scene shows.

// By their names in robokit/engine/trace/ops.py, whose values in Python they equal. Truths are 1 and 0.
const WALK_OPERATIONS = {
  "product": (a, b) => a * b,
  "sum": (a, b) => a + b,
  "difference": (a, b) => a - b,
  "quotient": (a, b) => a / b,
  "square root": Math.sqrt,
  "sine": Math.sin,
  "cosine": Math.cos,
  "negative": (a) => -a,
  "absolute value": Math.abs,
  "choice": (c, a, b) => (c ? a : b),
  "guarded choice": (c, a, b) => (c ? a : b),
  "floor": Math.floor,
  "less": (a, b) => a < b,
  "less or equal": (a, b) => a <= b,
  "equal": (a, b) => a === b,
  "and": (a, b) => a && b,
  "or": (a, b) => a || b,
  "not": (a) => !a,
};

// Whole numbers as deflated_whole packs them: 2 n, or -2 n - 1 below 0; all lowest bytes first, then the second ones.
async function wholeNumbers(text) {
  const packed = await inflated(text), count = packed.length / 4;
  return Int32Array.from({ length: count }, (_, k) => {
    const code = (packed[k] | (packed[k + count] << 8) | (packed[k + 2 * count] << 16) | (packed[k + 3 * count] << 24)) >>> 0;
    return code & 1 ? -(code >>> 1) - 1 : code >>> 1;
  });
}

// Sums of differences, in place.
function summed(differences) {
  for (let k = 1; k < differences.length; k++) differences[k] += differences[k - 1];
  return differences;
}

class WalkProgram {
  static operations = WALK_OPERATIONS;

  static async open(program) {
    const operations = [...program.operations].map((name) => WALK_OPERATIONS[name]);
    const [codes, constants, inputs, ...operands] = await Promise.all([inflated(program.codes),
      inflated(program.constants, Float64Array), wholeNumbers(program.inputs), ...[...program.operands].map(wholeNumbers)]);
    return new WalkProgram(operations, codes, constants, inputs, operands);
  }

  // Slots: the constants, then the inputs, then the operations in order.
  constructor(operations, codes, constants, inputs, operands) {
    this.operations = operations;
    this.codes = codes;
    this.inputs = inputs;
    this.given = constants.length;
    this.first = constants.length + inputs.length;
    this.slots = new Float64Array(this.first + codes.length);
    this.slots.set(constants);
    // Of each operation the slots of its operands; those that it does not have are slot 0.
    this.operands = operands.map(() => new Uint32Array(codes.length));
    const at = operands.map(() => 0), taken = operations.map((operation) => operation.length);
    codes.forEach((code, k) => {
      for (let n = 0; n < taken[code]; n++) {
        const back = operands[n][at[n]++];
        this.operands[n][k] = back > 0 ? this.first + k - back : -1 - back;
      }
    });
  }

  // Fills the slots for a state: gravity, q, v, tau and forces on the bodies, one after another.
  run(state) {
    const { slots, first, given, inputs, codes, operations } = this, [one, two, three] = this.operands;
    for (let k = 0; k < inputs.length; k++) slots[given + k] = state[inputs[k]] ?? 0;
    for (let k = 0; k < codes.length; k++) slots[first + k] = operations[codes[k]](slots[one[k]], slots[two[k]], slots[three[k]]);
  }
}
