// The rows that failed with their reasons, and the recipe of the sweep in words.

const LISTED = 40;

function drawFailures(host, rows, fall) {
  const { report } = rows, failed = rows.column("failure");
  const total = report.reasons.reduce((sum, reasonData) => sum + reasonData.count, 0);
  if (!total) {
    host.append(element("p", { class: "note" }, "No row failed: every state stayed finite, and no energy was created."));
    return;
  }
  host.append(element("p", { class: "note" }, `${countOf(total, "row")} of ${grouped(report.rows)} failed (${figure((100 * total) / report.rows)} %). A failed row does not stop the others; run it to see its motion up to the failure.`));
  for (const reasonData of report.reasons) {
    const label = failed ? failed.labels.indexOf(reasonData.text) : -1;
    const places = [];
    for (let k = 0; label >= 0 && k < rows.count && places.length < LISTED; k++) if (failed.values[k] === label) places.push(k);
    const only = label < 0 ? [] : [element("button", { type: "button", class: "small", onclick: () => rows.filter(failed, { labels: new Set([label]) }) }, "Select these rows")];
    const list = places.map((place) => element("button", { type: "button", class: "small", "aria-label": `Run row ${rows.numbers[place]}`, onclick: () => fall.show(place) }, grouped(rows.numbers[place])));
    const rest = reasonData.count - places.length;
    host.append(element("section", { class: "card" }, element("header", {}, element("h2", {}, reasonData.text), element("span", { class: "unit" }, countOf(reasonData.count, "row")), ...only),
      element("div", { class: "row-list" }, ...list, ...(rest > 0 ? [element("span", { class: "unit" }, `and ${grouped(rest)} more`)] : []))));
  }
}

function drawRecipe(host, report) {
  const list = (pairs) => element("dl", { class: "recipe" }, ...pairs.flatMap(([label, text]) => [element("dt", {}, label), element("dd", {}, text)]));
  host.append(element("section", { class: "card" }, element("h2", {}, "What was run"), list(report.recipe)));
  if (report.sample) host.append(element("section", { class: "card" }, element("h2", {}, "What this page contains"), element("p", {}, report.sample)));
  if (report.openings.length) host.append(element("section", { class: "card" }, element("h2", {}, "The whole table"), ...report.openings.flatMap(([label, code]) => [element("h3", {}, label), element("pre", { tabindex: "0" }, code)])));
}

function drawReportHeader(report) {
  $("name").textContent = report.title;
  $("name").title = report.title;
  $("facts").textContent = `${countOf(report.rows, "fall")} of ${report.robots}`;
  $("strip").replaceChildren(...report.figures.map(([label, text]) => element("div", {}, element("dt", {}, label), element("dd", {}, text))));
}
