// The report of a sweep: its rows at the left, a scatter of them and the falls at the right.

const report = JSON.parse($("robokit-data").textContent);
const theme = new Theme($("theme"));
drawReportHeader(report);

const shortcuts = new Shortcuts($("shortcuts"), $("keys"));
const left = new Panels($("left-tabs"), $("left")), right = new Panels($("right-tabs"), $("right"));

// Narrow windows show one side after the other: what was asked for comes into view.
function comeIntoView(id) {
  if (matchMedia("(max-width: 820px)").matches) $(id).scrollIntoView({ block: "start" });
}

Rows.load(report).then((rows) => {
  const parts = { report, rows, theme };
  const scatterHost = right.add("scatter", "Scatter", () => parts.scatter?.draw());
  const fallHost = right.add("fall", "Fall");
  const fall = new Fall(fallHost, rows, () => {
    right.open("fall");
    comeIntoView("right");
  });
  fall.theme = theme;
  const distributions = left.add("distributions", "Distributions");
  const table = new RowTable(left.add("rows", "Rows", () => parts.table?.draw()), rows, fall);
  drawFailures(left.add("failures", report.reasons.length ? `Failures (${grouped(report.reasons.reduce((sum, reasonData) => sum + reasonData.count, 0))})` : "Failures"), rows, fall);
  drawRecipe(left.add("recipe", "Recipe"), report);
  fall.table = table;
  Object.assign(parts, { fall, table });
  left.open("distributions");
  right.open("scatter");
  parts.scatter = new Scatter(scatterHost, rows, fall);
  drawDistributions(distributions, rows);
  drawFilterBar(rows);
  rows.onFilter(() => { $("said").textContent = $("chosen-rows").textContent; });
  for (const [key, text, side, panel] of [["d", "Distributions", left, "distributions"], ["t", "Table of rows", left, "rows"], ["s", "Scatter", right, "scatter"], ["f", "Fall", right, "fall"]]) {
    shortcuts.add(key, text, () => side.open(panel));
  }
  shortcuts.add("n", "Next row in the table", () => fall.step(1));
  shortcuts.add("p", "Previous row in the table", () => fall.step(-1));
  shortcuts.add("c", "Remove all filters", () => rows.clear());
  theme.onChange(() => {
    for (const listener of rows.listeners) listener();
    fall.paint();
  });
  // For tests.
  window.report = parts;
}).catch((error) => {
  $("chosen-rows").textContent = `This browser cannot read the report: ${error.message}`;
});
