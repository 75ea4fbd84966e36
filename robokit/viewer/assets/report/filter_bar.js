// How many rows are chosen, and a chip for each filter, which lifts it.

function drawFilterBar(rows) {
  const { report } = rows;
  const draw = () => {
    const whole = report.held === report.rows;
    const of = whole ? grouped(rows.count) : `${grouped(rows.count)} on this page`;
    $("chosen-rows").textContent = rows.filters.size ? `${countOf(rows.left, "row")} of ${of}` : `All ${countOf(rows.count, "row")}${whole ? "" : ` on this page, of ${grouped(report.rows)}`}`;
    const chips = [...rows.filters].map(([column, wanted]) => {
      const text = wanted.labels ? [...wanted.labels].map((k) => column.labels[k]).join(", ") || "none" : `${column.text(wanted.low)} to ${column.text(wanted.high, true)}`;
      const label = `${column.title}: ${text}`;
      return element("button", { type: "button", class: "chip plain filter-chip", "aria-label": `Remove the filter ${label}`, title: "Remove this filter", onclick: () => rows.filter(column, null) },
        element("span", {}, label), element("span", { "aria-hidden": "true" }, "×"));
    });
    if (chips.length > 1) chips.push(element("button", { type: "button", class: "small", onclick: () => rows.clear() }, "Remove all"));
    if (!chips.length) chips.push(element("span", { class: "hint" }, "Drag over a histogram or the scatter plot to select rows."));
    $("filter-chips").replaceChildren(...chips);
  };
  rows.onFilter(draw);
  draw();
}
