// The rows that the page holds, as columns, and which of them the filter lets through.

// Numbers whose lowest bytes stand first, then all second ones and so on.
async function planes(text, kind) {
  const packed = await inflated(text), size = kind.BYTES_PER_ELEMENT, count = packed.length / size;
  const out = new Uint8Array(packed.length);
  for (let byte = 0; byte < size; byte++) {
    for (let k = 0, at = byte; k < count; k++, at += size) out[at] = packed[byte * count + k];
  }
  return new kind(out.buffer);
}

const grouped = (count) => count.toLocaleString("en-US").replace(/,/g, " ");
const countOf = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

// A column with its values.
class Column {
  static async load(columnData, place) {
    const column = new Column();
    const { name, title, unit, about, role, labels, low, high, counts, missing, whole } = columnData;
    Object.assign(column, { place, name, title, unit, about, role, labels, low, high, counts, missing, whole });
    column.values = await planes(columnData.values, Float32Array);
    return column;
  }

  // Whether it is about one link or joint.
  get byPart() { return this.name.includes("/"); }

  get heading() { return this.unit ? `${this.title} [${this.unit}]` : this.title; }

  // A value in words; with its unit where asked for.
  text(value, unit = false) {
    if (!Number.isFinite(value)) return "–";
    if (this.labels) return this.labels[value] ?? "–";
    const number = this.whole && Math.abs(value) < 1e7 ? grouped(value).replace("-", "−") : figure(value);
    return unit && this.unit ? `${number}${this.unit.startsWith("°") ? "" : " "}${this.unit}` : number;
  }
}

// Rows of the page by place; a filter is a range of a column, or some of its labels.
class Rows {
  static async load(report) {
    const rows = new Rows();
    rows.report = report;
    rows.numbers = await inflated(report.numbers, Uint32Array);
    rows.columns = await Promise.all(report.columns.map((columnData, k) => Column.load(columnData, k)));
    rows.count = rows.numbers.length;
    rows.kept = new Uint8Array(rows.count).fill(1);
    rows.left = rows.count;
    rows.filters = new Map();
    rows.listeners = [];
    return rows;
  }

  onFilter(listener) { this.listeners.push(listener); }

  column(name) { return this.columns.find((column) => column.name === name); }

  // Keep rows of a column within [low, high], or with one of the labels; null lifts the filter.
  filter(column, wanted) {
    if (wanted) this.filters.set(column, wanted);
    else this.filters.delete(column);
    this.apply();
  }

  clear() {
    this.filters.clear();
    this.apply();
  }

  apply() {
    this.kept.fill(1);
    for (const [column, wanted] of this.filters) {
      const { values } = column;
      if (wanted.labels) for (let k = 0; k < this.count; k++) this.kept[k] &= wanted.labels.has(values[k]) ? 1 : 0;
      else for (let k = 0; k < this.count; k++) this.kept[k] &= values[k] >= wanted.low && values[k] <= wanted.high ? 1 : 0;
    }
    this.left = 0;
    for (let k = 0; k < this.count; k++) this.left += this.kept[k];
    for (const listener of this.listeners) listener();
  }

  // Rows in each bin of a column that the filter keeps.
  counts(column, bins) {
    const out = new Uint32Array(bins), { values, low, high } = column;
    const scale = column.labels ? 1 : high > low ? bins / (high - low) : 0;
    for (let k = 0; k < this.count; k++) {
      if (!this.kept[k] || Number.isNaN(values[k])) continue;
      const bin = column.labels ? values[k] : Math.floor((values[k] - low) * scale);
      out[Math.min(Math.max(bin, 0), bins - 1)] += 1;
    }
    return out;
  }

  // Places of the kept rows, by a column; rows without a value come last. Equal ones stay in order of their numbers.
  sorted(column, falling) {
    const places = new Uint32Array(this.left), sign = falling ? -1 : 1;
    for (let k = 0, at = 0; k < this.count; k++) if (this.kept[k]) places[at++] = k;
    if (!column) return falling ? places.reverse() : places;
    const values = column.values;
    const key = (k) => (Number.isNaN(values[k]) ? Infinity : sign * values[k]);
    return places.sort((a, b) => {
      const p = key(a), q = key(b);
      return p < q ? -1 : p > q ? 1 : a - b;
    });
  }
}
