// What the algorithms cost: counted operations beside the growth that the textbooks state.

const ALGORITHM_NAMES = { rnea: ["RNEA", "inverse dynamics"], crba: ["CRBA", "the mass matrix H"], ltdl: ["LTDL", "H = LᵀDL on the tree"], aba: ["ABA", "forward dynamics"] };

const grouped = (x) => (x === null ? "–" : x.toLocaleString("en-US").replace(/,/g, " "));

function operationsTable(data) {
  const { costs } = data.structure;
  const head = ["", "mul", "add", "div", "sin, cos", "growth"];
  const table = element("table", { class: "operations" }, element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))));
  const body = element("tbody");
  for (const cost of costs) {
    const [name, what] = ALGORITHM_NAMES[cost.algorithm] || [cost.algorithm, ""];
    const numbers = [cost.mul, cost.add, cost.div, cost.sincos].map((x) => element("td", {}, grouped(x)));
    const row = element("tr", {}, element("th", { scope: "row", title: what }, name), ...numbers, element("td", {}, cost.growth.replace(/\^2/g, "²").replace(/\^3/g, "³")));
    if (cost.note) row.title = cost.note;
    body.append(row);
  }
  table.append(body);
  return table;
}

// Zeros, factorisation and solve of H by formula, for the matrix shown.
function matrixFigures(data, kind) {
  const { counts } = data.structure;
  const row = (label, text) => element("div", {}, element("dt", {}, label), element("dd", {}, text));
  const times = (a, b) => (b ? `${figure(a / b, 2)}×` : "–");
  const rows = {
    H: () => [row("zeros in H", `${Math.round(100 * counts.zeros_share)} %  (${grouped(counts.zeros)} of ${grouped(counts.entries)})`), row("factorise, tree / dense", `${grouped(counts.factorise)} / ${grouped(counts.factorise_dense)}`), row("fewer multiply-adds", times(counts.factorise_dense, counts.factorise)), row("solve, tree / dense", `${grouped(counts.solve)} / ${grouped(counts.solve_dense)}`), row("fewer multiply-adds", times(counts.solve_dense, counts.solve))],
    ltdl: () => [row("fill-in", "none"), row("factorise", grouped(counts.factorise)), row("solve", grouped(counts.solve)), row("against dense", times(counts.factorise_dense, counts.factorise))],
    cholesky: () => [row("fill-in", `${grouped(counts.fill)} entries`), row("factorise", grouped(counts.cholesky_factorise)), row("solve", grouped(counts.cholesky_solve)), row("LᵀDL instead", `${times(counts.cholesky_factorise, counts.factorise)} fewer`)],
  };
  return rows[kind]();
}
