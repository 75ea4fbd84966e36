// Tables of a run as text: comma-separated values, one header row with units, one row for each time.

const ONE = { rad: "rad/s", m: "m/s" }, FORCE = { rad: "N m", m: "N" };

// Names and units of a joint's coordinates, and of its velocities: by its kind.
const COORDINATES = {
  prismatic: [[["", "m"]]],
  cylindrical: [[["angle", "rad"], ["shift", "m"]]],
  planar: [[["angle", "rad"], ["x", "m"], ["y", "m"]]],
  spherical: [[["qw", "1"], ["qx", "1"], ["qy", "1"], ["qz", "1"]], [["x", "rad"], ["y", "rad"], ["z", "rad"]]],
  floating: [
    [["qw", "1"], ["qx", "1"], ["qy", "1"], ["qz", "1"], ["x", "m"], ["y", "m"], ["z", "m"]],
    [["angular x", "rad"], ["angular y", "rad"], ["angular z", "rad"], ["linear x", "m"], ["linear y", "m"], ["linear z", "m"]],
  ],
};

// What was stored at each frame: q, v, joint forces, centre of mass, momentum, contact force.
function stateTable(data, motion) {
  const columns = [["t [s]", motion.t, 1, 0]];
  const add = (letter, values, range, name, parts, unit) => {
    const width = values.length / motion.count;
    parts.forEach(([part, base], k) => columns.push([`${[letter, name, part].filter(Boolean).join(" ")} [${unit[base] || base}]`, values, width, range[0] + k]));
  };
  for (const joint of data.joints) {
    if (joint.q[0] === joint.q[1]) continue; // it follows another joint and has no coordinate
    const [place, rate = place] = COORDINATES[joint.kind] || [[["", "rad"]]];
    add("q", motion.q, joint.q, joint.name, place, {});
    if (motion.v) add("v", motion.v, joint.v, joint.name, rate, ONE);
    if (motion.tau) add("tau", motion.tau, joint.v, joint.name, rate, FORCE);
  }
  const axes = (letter, values, unit, first = 0) => add(letter, values, [first], "", [["x", unit], ["y", unit], ["z", unit]], {});
  axes("com", motion.com, "m");
  if (motion.momentum) {
    axes("angular momentum", motion.momentum, "N m s");
    axes("linear momentum", motion.momentum, "N s", 3);
  }
  if (motion.force) axes("contact force", motion.force, "N");
  const rows = [columns.map(([name]) => csvCell(name)).join(",")];
  for (let k = 0; k < motion.count; k++) rows.push(columns.map(([, values, width, at]) => csvNumber(values[k * width + at])).join(","));
  return `${rows.join("\n")}\n`;
}

// Every curve of the page. Curves may have times of their own: a cell without a value is empty.
function curveTable(data) {
  const names = ["t [s]"], values = new Map();
  let lines = 0;
  for (const curve of data.curves) {
    const times = floats(curve.t);
    for (const series of curve.series) {
      lines += 1;
      names.push(`${curve.title}: ${series.name} [${curve.unit}]`);
      floats(series.y).forEach((y, k) => {
        if (!values.has(times[k])) values.set(times[k], []);
        values.get(times[k])[lines - 1] = y;
      });
    }
  }
  const rows = [...values].sort((one, other) => one[0] - other[0]);
  const text = rows.map(([t, row]) => [csvNumber(t), ...Array.from({ length: lines }, (_, k) => (row[k] === undefined ? "" : csvNumber(row[k])))].join(","));
  return `${[names.map(csvCell).join(","), ...text].join("\n")}\n`;
}

// Quoted; a spreadsheet must not take a name of the robot for a formula.
const csvCell = (text) => `"${text.replace(/^(?=[=+\-@])/, "'").replace(/"/g, '""')}"`;

// The fewest digits that give back the stored number, which has single precision.
function csvNumber(value) {
  if (!Number.isFinite(value)) return "";
  for (let digits = 6; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}
