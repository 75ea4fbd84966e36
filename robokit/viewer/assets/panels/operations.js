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

// How many times fewer operations than with a dense matrix.
const fewerTimes = (dense, tree) => (dense === tree ? "as many" : tree ? `${figure(dense / tree, 2)}× fewer` : "none left");

// Zeros, factorisation and solve of H by formula, for the matrix shown: [label, figure, what it compares].
function matrixFigures(data, kind) {
  const { counts } = data.structure;
  const both = (tree, dense) => `${grouped(tree)}, dense ${grouped(dense)}`;
  const rows = {
    H: [["zeros in H", `${Math.round(100 * counts.zeros_share)} %`, `${grouped(counts.zeros)} of ${grouped(counts.entries)}`], ["factorise", fewerTimes(counts.factorise_dense, counts.factorise), both(counts.factorise, counts.factorise_dense)], ["solve", fewerTimes(counts.solve_dense, counts.solve), both(counts.solve, counts.solve_dense)]],
    ltdl: [["fill-in", "none", ""], ["factorise", grouped(counts.factorise), `dense ${grouped(counts.factorise_dense)}`], ["solve", grouped(counts.solve), `dense ${grouped(counts.solve_dense)}`]],
    cholesky: [["fill-in", `${grouped(counts.fill)} entries`, ""], ["factorise", grouped(counts.cholesky_factorise), `LᵀDL ${grouped(counts.factorise)}`], ["solve", grouped(counts.cholesky_solve), `LᵀDL ${grouped(counts.solve)}`]],
  };
  return rows[kind].map(([label, text, more]) => {
    const detail = element("small", {}, more);
    return element("div", { title: "multiply-adds" }, element("dt", {}, label), element("dd", {}, text, detail));
  });
}
