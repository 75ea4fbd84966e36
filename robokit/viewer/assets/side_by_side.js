// The page of several robots side by side: a table of what differs, then tree, patterns and counts of each.

const robots = JSON.parse($("robokit-data").textContent);
const shown = [];

function summaryRow(data) {
  const { robot } = data, { counts, costs } = data.structure;
  const sums = costs.map((cost) => (cost.mul === null ? null : cost.mul + cost.add + cost.div));
  const cells = [robot.base, robot.bodies, robot.dof, `${Math.round(100 * counts.zeros_share)} %`, `${grouped(counts.factorise)}  (${fewerTimes(counts.factorise_dense, counts.factorise)})`, `${grouped(counts.solve)}  (${fewerTimes(counts.solve_dense, counts.solve)})`, grouped(counts.fill), ...sums.map(grouped)];
  return element("tr", {}, element("th", { scope: "row" }, robot.name), ...cells.map((text) => element("td", {}, String(text))));
}

function addRobot(data) {
  const { robot } = data;
  const title = element("header", {}, element("h2", { title: robot.name }, robot.name), element("span", { class: "unit" }, `${robot.base} base`));
  const host = element("article", { class: "robot", "aria-label": robot.name }, title);
  $("robots").append(host);
  const act = {
    hover: (body) => structure.highlight(body),
    choose: (body, dof = null) => structure.select(body, dof),
    light: () => {},
    values: () => null,
  };
  const structure = new Structure(host, data, act);
  shown.push(structure);
}

const heads = ["robot", "base", "bodies", "dof", "zeros in H", "factorise H", "solve", "Cholesky's fill-in", "RNEA", "CRBA", "LTDL", "ABA"];
document.querySelector("#summary table").append(element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...robots.map(summaryRow)));
$("facts").textContent = `${robots.length} robot${robots.length === 1 ? "" : "s"}`;
for (const data of robots) addRobot(data);
const all = choice([["H", "H"], ["ltdl", "L of LᵀDL"], ["cholesky", "L of Cholesky"], ["operations", "Counts"]], "H", (kind) => { for (const one of shown) one.choose(kind); });
$("kinds").append(all.group);
const drawAll = () => { for (const one of shown) one.draw(); };
drawAll();
new ResizeObserver(drawAll).observe($("robots"));
if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  drawAll();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") for (const one of shown) one.select(null); });

// For tests and for pages that embed this one.
window.robokit = { robots, shown };
