// The page: reads its data, builds the parts and lets each hear of the others.

const data = JSON.parse($("robokit-data").textContent);
const motion = new Motion(data.frames, data.bodies.name.length - 1);
const moving = motion.count > 1;
const stage = new Stage($("canvas"), data, motion);
const overlays = new Overlays(stage, data, motion);
const timeline = moving ? new Timeline(motion) : null;
let posed = null; // the configuration that sliders made, while they rule
let following = false;

const LABELS = {
  steps_per_second: ["steps / s", (x) => (x >= 1e6 ? `${figure(x / 1e6)} M` : x >= 1e4 ? `${figure(x / 1e3)} k` : figure(x))],
  energy_balance: ["energy balance", (x) => `${figure(x)} J`],
  momentum_balance_linear: ["momentum balance", (x) => `${figure(x)} N s`],
  deepest_penetration: ["deepest contact", (x) => `${figure(1000 * x)} mm`],
};

function drawHeader() {
  const { robot } = data;
  $("name").textContent = robot.name;
  $("name").title = robot.name;
  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  // A fixed root may have a mass too, which the dynamics never sees.
  const standing = robot.total_mass - robot.mass > 1e-6 * robot.total_mass;
  const masses = standing ? [`${figure(robot.total_mass)} kg in total`, `${figure(robot.mass)} kg moving`] : robot.mass > 0 ? [`${figure(robot.mass)} kg`] : [];
  $("facts").textContent = [...masses, `${robot.dof} dof`, count(robot.joints, "joint"), `${robot.base} base`].join("  ·  ");
  const given = new Map(data.summary.map(({ key, value }) => [key, value]));
  const known = Object.keys(LABELS).filter((key) => typeof given.get(key) === "number");
  $("strip").replaceChildren(...known.map((key) => {
    const [label, text] = LABELS[key];
    return element("div", {}, element("dt", {}, label), element("dd", {}, text(given.get(key))));
  }));
  $("strip").title = data.summary.map(({ key, value }) => `${key.replace(/_/g, " ")}: ${typeof value === "number" ? figure(value, 4) : value}`).join("\n");
}

// A run that ended before its time says when, why and what to do.
function drawBanner() {
  const { stopped } = data;
  if (!stopped) return;
  const when = element("b", {}, `Stopped at ${figure(stopped.time)} s.`);
  $("banner").replaceChildren(when, ` ${stopped.reason} `, element("span", {}, stopped.remedy));
  $("banner").hidden = false;
}

// ---- panels ----------------------------------------------------------------------------------

const seek = (time) => { timeline.pause(); timeline.seek(time); };
const plots = [];
let chosenJoint = data.joints.find((joint) => joint.q[1] - joint.q[0] === 1) || null;
let secondPlot = null;

function addCurves() {
  const [energy, ...others] = data.curves.map((curve) => ({
    key: curve.key, title: curve.title, unit: curve.unit, x: Array.from(floats(curve.t)),
    lines: curve.series.map((series) => ({ name: series.name, y: Array.from(floats(series.y)) })),
  }));
  const names = { force: "Force", linear: "Linear", angular: "Angular", drift: "Balance" };
  const host = $("panel-curves");
  const first = new Plot(host, seek), second = new Plot(host, seek);
  first.header.replaceChildren(element("h2", {}, energy.title), element("span", { class: "unit" }, energy.unit));
  first.draw(energy);
  const tabs = others.map((graph) => [graph.key, names[graph.key] || graph.title]);
  if (chosenJoint) tabs.push(["joint", "Joint"]);
  const unit = element("span", { class: "unit" });
  const show = (key) => {
    second.key = key;
    const graph = key === "joint" ? jointGraph(chosenJoint) : others.find((one) => one.key === key);
    unit.textContent = graph.unit;
    unit.title = graph.title;
    second.draw(graph);
  };
  const tabbed = choice(tabs, tabs[0][0], show);
  second.header.append(tabbed.group, unit);
  secondPlot = { plot: second, select: tabbed.select };
  show(tabs[0][0]);
  plots.push(first, second);
  const pick = (force) => force ? force.lines[0].y.map((_, k) => Math.hypot(...force.lines.map((one) => one.y[k]))) : energy.lines[0].y;
  const profile = () => timeline.drawProfile(pick(others.find((one) => one.key === "force")), energy.x);
  profile();
  new ResizeObserver(profile).observe($("profile"));
  return () => { first.draw(energy); show(second.key); profile(); };
}

function jointGraph(joint) {
  const column = (values, width, at) => Array.from({ length: motion.count }, (_, k) => values[k * width + at]);
  const metre = joint.kind === "prismatic";
  const lines = [{ name: "q", y: column(motion.q, motion.nq, joint.q[0]) }];
  const width = motion.v ? motion.v.length / motion.count : 0;
  if (motion.v) lines.push({ name: "v", y: column(motion.v, width, joint.v[0]) });
  if (motion.tau) lines.push({ name: "tau", y: column(motion.tau, width, joint.v[0]) });
  return { title: joint.name, unit: `${joint.name} [${metre ? "m, m/s" : "rad, rad/s"}${motion.tau ? (metre ? ", N" : ", N m") : ""}]`, x: Array.from(motion.t), lines };
}

const hover = (body) => {
  structure.highlight(body);
  joints.light(new Set(body === null ? [] : [body]));
  stage.light(new Set(body === null ? [] : structure.under[body]));
};
const joints = new JointPanel($("panel-joints"), data, {
  hover,
  set: (at, value) => { posed = posed || currentQ(); posed[at] = value; if (timeline) timeline.pause(); drawPosed(); },
  reset: () => { posed = null; if (timeline) timeline.seek(timeline.time); else drawStill(); },
  choose: (joint) => { if (joint.q[1] - joint.q[0] === 1) { chosenJoint = joint; if (secondPlot && secondPlot.plot.key === "joint") secondPlot.select("joint"); } },
});
const structure = new Structure($("panel-structure"), data, { hover, light: (bodies) => stage.light(bodies) });
if (data.check) new FindingPanel($("panel-check"), data, stage, { hover, shown: () => Boolean(overlays.on.inertia) });

function addTabs() {
  const panels = [["check", "Check"], ["curves", "Curves"], ["joints", "Joints"], ["structure", "Structure"]].filter(([key]) => (key !== "curves" || moving) && (key !== "check" || data.check));
  const open = (key) => {
    for (const other of ["check", "curves", "joints", "structure"]) $(`panel-${other}`).hidden = other !== key;
    for (const button of $("tabs").children) button.setAttribute("aria-selected", String(button.dataset.key === key));
    if (key === "structure") structure.draw();
    if (key === "joints") joints.show(posed || currentQ());
  };
  $("tabs").replaceChildren(...panels.map(([key, label]) => element("button", { type: "button", role: "tab", "data-key": key, onclick: () => open(key) }, label)));
  open(panels[0][0]);
  return open;
}

// ---- drawing one instant ----------------------------------------------------------------------

const frameNow = () => (timeline ? motion.frameAt(timeline.time) : 0);
const currentQ = () => motion.coordinates(frameNow());

function drawTime(time) {
  posed = null;
  const frame = motion.frameAt(time);
  stage.pose(motion.at(frame));
  if (following) follow(frame);
  overlays.update(frame);
  for (const plot of plots) plot.setTime(time);
  if (!$("panel-joints").hidden) joints.show(motion.coordinates(frame));
}

function drawPosed() {
  stage.pose(forwardKinematics(data, posed));
  overlays.update(frameNow(), posed);
  joints.show(posed);
}

function drawStill() {
  stage.pose(motion.at(0));
  overlays.update(0);
  joints.show(currentQ());
}

let lastCentre = null;
function follow(frame) {
  const centre = yUp(motion.vector(motion.com, frame));
  if (lastCentre) {
    const shift = centre.clone().sub(lastCentre);
    stage.viewer.camera.position.add(shift);
    stage.viewer.controls.target.add(shift);
  }
  lastCentre = centre;
}

// ---- switches, camera, picking, theme ------------------------------------------------------------

function addSwitches() {
  for (const [key, label, tint, on] of overlays.list()) {
    const button = toggle(label, on, (now) => overlays.show(key, now), { colour: tint });
    button.dataset.key = key;
    $("switches").append(button);
    overlays.show(key, on);
  }
  const view = (label, title, azimuth, elevation) => element("button", { class: "chip plain", type: "button", title, onclick: () => stage.look(azimuth, elevation) }, label);
  $("cameras").append(
    view("Front", "From the front, along x", 0, 0.03),
    view("Side", "From the right side, along y", -Math.PI / 2, 0.03),
    view("Top", "From above", -Math.PI / 2, Math.PI / 2 - 0.001),
    element("button", { class: "chip plain", type: "button", title: "The whole motion (F)", onclick: () => stage.frameMotion() }, "Fit"),
  );
  if (moving && data.robot.mass > 0) {
    $("cameras").append(toggle("Follow", false, (on) => { following = on; lastCentre = on ? yUp(motion.vector(motion.com, frameNow())) : null; }, { title: "The camera goes with the centre of mass" }));
  }
  document.addEventListener("keydown", (event) => { if (event.key === "f" && !event.ctrlKey && !event.metaKey) stage.frameMotion(); });
}

function addPicking() {
  const label = $("pick");
  let waiting = null;
  const look = () => {
    const { x, y } = waiting;
    waiting = null;
    const node = stage.nodeAt(x, y);
    label.hidden = !node;
    if (!node) return;
    label.textContent = node.link;
    const edge = $("view").getBoundingClientRect();
    label.style.left = `${Math.min(x - edge.left + 14, edge.width - label.offsetWidth - 8)}px`;
    label.style.top = `${Math.min(y - edge.top + 16, edge.height - label.offsetHeight - 8)}px`;
  };
  $("canvas").addEventListener("pointermove", (event) => {
    if (event.buttons) { label.hidden = true; return; }
    if (!waiting) setTimeout(look, 40);
    waiting = { x: event.clientX, y: event.clientY };
  });
  $("canvas").addEventListener("pointerleave", () => { label.hidden = true; });
}

drawHeader();
drawBanner();
const redrawCurves = moving ? addCurves() : () => {};
const openTab = addTabs();
addSwitches();
addPicking();
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  redrawCurves();
  structure.draw();
  stage.dark(root.dataset.theme === "dark");
});
if (timeline) {
  timeline.onChange(drawTime);
  drawTime(0);
} else {
  drawStill();
}

let before = performance.now();
let interval = 16;
function loop(now) {
  requestAnimationFrame(loop);
  const playing = Boolean(timeline && timeline.playing);
  if (playing) {
    interval += 0.1 * (Math.min(now - before, 500) - interval);
    timeline.tick(Math.min((now - before) / 1000, 0.5));
  }
  // While a slow machine plays, smooth motion is worth more than sharp edges; a still picture is sharp again.
  stage.coarse(playing && (stage.isCoarse || interval > 90));
  before = now;
  stage.render();
}
requestAnimationFrame(loop);

// For tests and for pages that embed this one.
window.robokit = { data, motion, stage, overlays, timeline, structure, plots, openTab, forwardKinematics: (q) => forwardKinematics(data, q) };
