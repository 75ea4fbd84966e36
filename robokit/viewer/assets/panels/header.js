// The header: the robot, the figures of its run, and why the run stopped.

const LABELS = {
  steps_per_second: ["steps / s", (x) => (x >= 1e6 ? `${figure(x / 1e6)} M` : x >= 1e4 ? `${figure(x / 1e3)} k` : figure(x))],
  energy_balance: ["energy balance", (x) => `${figure(x)} J`],
  momentum_balance_linear: ["momentum balance", (x) => `${figure(x)} N s`],
  deepest_penetration: ["deepest contact", (x) => `${figure(1000 * x)} mm`],
};

function drawHeader(data) {
  const { robot } = data;
  $("name").textContent = robot.name;
  $("name").title = robot.name;
  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  // A world of several robots stands still; those in it may float.
  const { parent } = data.bodies;
  const floating = robot.base === "fixed" ? data.joints.filter((joint) => joint.kind === "floating" && parent[joint.body] === 0).length : 0;
  const base = floating ? count(floating, "floating base") : `${robot.base} base`;
  // A fixed root may have a mass too, which the dynamics never sees.
  const standing = robot.total_mass - robot.mass > 1e-6 * robot.total_mass;
  const masses = standing ? [`${figure(robot.total_mass)} kg in total`, `${figure(robot.mass)} kg moving`] : robot.mass > 0 ? [`${figure(robot.mass)} kg`] : [];
  $("facts").textContent = [...masses, `${robot.dof} dof`, count(robot.joints, "joint"), base].join("  ·  ");
  const given = new Map(data.summary.map(({ key, value }) => [key, value]));
  const beside = new Map((data.ghost?.summary || []).map(({ key, value }) => [key, value]));
  const second = (key, text) => (typeof beside.get(key) === "number" ? [element("span", { class: "beside" }, ` ${text(beside.get(key))}`)] : []);
  const known = Object.keys(LABELS).filter((key) => typeof given.get(key) === "number");
  $("strip").replaceChildren(...known.map((key) => {
    const [label, text] = LABELS[key];
    return element("div", {}, element("dt", {}, label), element("dd", {}, text(given.get(key)), ...second(key, text)));
  }));
  $("strip").title = data.summary.map(({ key, value }) => `${key.replace(/_/g, " ")}: ${typeof value === "number" ? figure(value, 4) : value}`).join("\n");
}

// A run that ended before its time says when, why and what to do.
function drawBanner(data) {
  const { stopped } = data;
  if (!stopped) return;
  const when = element("b", {}, `Stopped at ${figure(stopped.time)} s.`);
  $("banner").replaceChildren(when, ` ${stopped.reason} `, element("span", {}, stopped.remedy));
  $("banner").hidden = false;
}
