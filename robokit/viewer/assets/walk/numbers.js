// Values of an algorithm as a page of a book would print them: symbols, blocks of numbers, units.

// Beside the largest of its neighbours, what rounding left of a zero is shown as one, with the number as its title.
const four = (x, largest = 0) => (Number.isNaN(x) ? "–" : x && Math.abs(x) < 1e-12 * largest ? "≈ 0" : figure(x, 4));

const largestOf = (numbers) => numbers.reduce((top, x) => Math.max(top, Math.abs(x)), 0);

// "I^A" or "S^T U" with a subscript.
function symbolOf(letter) {
  const [, base, above, after] = letter.symbol.match(/^([^^]+)(?:\^(\S+))?(?: (.+))?$/);
  const parts = [element("i", {}, base)];
  if (above) parts.push(element("sup", {}, above));
  if (after) parts.push(element("i", {}, after));
  if (letter.below) parts.push(element("sub", {}, letter.below));
  return element("span", { class: "symbol" }, ...parts);
}

// Rows of numbers under one another; `lines` are drawn before these columns and rows.
function numberGrid(rows, lines = 0) {
  const table = element("table", { class: "grid" }), top = largestOf(rows.flat());
  rows.forEach((row, i) => {
    const cells = row.map((x, j) => element("td", { class: lines && j && j % lines === 0 ? "after" : "", title: String(x) }, four(x, top)));
    table.append(element("tr", { class: lines && i && i % lines === 0 ? "below" : "" }, ...cells));
  });
  return table;
}

const labelled = (label, content, unit = "") => element("div", { class: "value-part" }, element("span", { class: "tag" }, label), content, element("span", { class: "unit" }, unit));

const inThrees = (numbers) => Array.from({ length: numbers.length / 3 }, (_, k) => [...numbers.slice(3 * k, 3 * k + 3)]);

// Entries xx yy zz xy xz yz as rows.
const symmetric = ([a, b, c, d, e, f]) => [[a, d, e], [d, b, f], [e, f, c]];

function sixBySix(x) {
  const [A, B, M] = [symmetric(x.slice(0, 6)), inThrees(x.slice(6, 15)), symmetric(x.slice(15))];
  return [...A.map((row, i) => [...row, ...B[i]]), ...M.map((row, i) => [B[0][i], B[1][i], B[2][i], ...row])];
}

function columnsOf(numbers) {
  const k = numbers.length / 6;
  return Array.from({ length: 6 }, (_, i) => Array.from({ length: k }, (_, j) => numbers[6 * j + i]));
}

// The blocks of a value; `units` are those of its angular and its linear part, or a single one.
function valueBlocks(kind, numbers, units) {
  const x = [...numbers];
  const unit = units.length > 1 ? "" : units[0];
  switch (kind) {
    case "motion": return [labelled("ang", numberGrid([x.slice(0, 3)]), units[0]), labelled("lin", numberGrid([x.slice(3)]), units[1] ?? "")];
    case "force": return [labelled("n", numberGrid([x.slice(0, 3)]), units[0]), labelled("f", numberGrid([x.slice(3)]), units[1])];
    case "motions": case "forces": {
      if (x.length === 6) return valueBlocks(kind.slice(0, -1), x, units);
      return [labelled("", numberGrid(columnsOf(x), 3), units.join("; "))];
    }
    case "transform": return [labelled("E", numberGrid(inThrees(x.slice(0, 9)))), labelled("r", numberGrid([x.slice(9)]), "m")];
    case "rigid": return [labelled("m", numberGrid([[x[0]]]), "kg"), labelled("h", numberGrid([x.slice(1, 4)]), "kg m"), labelled("Ī", numberGrid(symmetric(x.slice(4))), "kg m²")];
    case "articulated": return [labelled("", numberGrid(sixBySix(x), 3)), element("span", { class: "unit" }, "blocks in kg m², kg m; kg m, kg")];
    case "matrix": {
      const n = Math.round(Math.sqrt(x.length));
      if (n > 8) return [labelled("", element("span", { class: "soft" }, `${n} × ${n} numbers: in the picture`))];
      return [labelled("", numberGrid(Array.from({ length: n }, (_, i) => x.slice(n * i, n * i + n))), unit)];
    }
    case "vector":
      if (x.length > 8) return [labelled("", element("span", { class: "soft" }, `${x.length} numbers${unit ? ` in ${unit}` : ""}`))];
      return [labelled("", numberGrid([x]), units.join("; "))];
    default: return [labelled("", numberGrid([x]), unit)];
  }
}

// Whether each degree of freedom turns or shifts.
function turning(joint) {
  const n = joint.v[1] - joint.v[0];
  const turns = { prismatic: 0, cylindrical: 1, planar: 1, floating: 3 }[joint.kind] ?? n;
  return Array.from({ length: n }, (_, k) => k < turns);
}

// The unit of a value: alternatives stand for what turns and what shifts ("rad | m"), or, of an entry, for both
// turning, one of each, both shifting ("kg m² | kg m | kg").
function unitsOf(letter, one, rows, joints) {
  const kinds = letter.unit.split(" | ");
  if (kinds.length === 1) return letter.unit.split("; ");
  if (one.cell) return [one.cell[1] >= rows.length ? letter.unit : kinds[one.cell.filter((row) => !rows[row]).length]];
  const joint = joints.get(one.body);
  if (!joint) return [letter.unit];
  const turns = turning(joint);
  if (one.kind === "vector" && joint.kind === "floating" && one.numbers.length === 7) return ["quaternion w x y z; m"];
  if (joint.kind === "spherical" && one.numbers.length === 4) return ["quaternion w x y z"];
  if (one.kind === "matrix") return turns.every(Boolean) ? [kinds[0]] : turns.some(Boolean) ? [letter.unit] : [kinds[2] ?? kinds[1]];
  return turns.every(Boolean) ? [kinds[0]] : turns.some(Boolean) ? [`${kinds[0]}; ${kinds[1]}`] : [kinds[1]];
}

// Entries of a matrix that a line wrote together, as the block that they are; rows are counted from 0 or 1.
function entryBlock(entries, from) {
  const is = [...new Set(entries.map(({ cell }) => cell[0]))], js = [...new Set(entries.map(({ cell }) => cell[1]))];
  const at = new Map(entries.map(({ cell, numbers }) => [cell.join(), numbers[0]]));
  const span = (list) => (list.length > 1 ? `${list[0] + from}…${list[list.length - 1] + from}` : `${list[0] + from}`);
  const { letter } = entries[0];
  return element("div", { class: "value-of out forces" },
    element("div", { class: "value-head" }, symbolOf(letter), element("span", { class: "whose" }, `(${span(is)}, ${span(js)})`), element("span", { class: "soft" }, `${letter.meaning}, a block`)),
    element("div", { class: "value-parts" }, numberGrid(is.map((i) => js.map((j) => at.get(`${i},${j}`) ?? NaN)))));
}
