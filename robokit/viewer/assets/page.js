// The page: reads its data, builds the parts and lets each hear of the others.

const page = { data: JSON.parse($("robokit-data").textContent) };
const { data } = page;
page.motion = new Motion(data.frames, data.bodies.name.length - 1);
page.stage = new Stage($("canvas"), data, page.motion);
page.overlays = new Overlays(page.stage, data, page.motion);
page.timeline = page.motion.count > 1 ? new Timeline(page.motion) : null;
page.selection = new Selection(data);
page.panels = new Panels($("tabs"), $("side"));
// The configuration that sliders made, while they rule; and the frame, with a fraction, that is shown.
page.posed = null;
page.frame = () => (page.timeline ? page.motion.frameAt(page.timeline.time) : 0);
page.configuration = () => page.posed || page.motion.coordinates(page.frame());
page.shortcuts = new Shortcuts($("shortcuts"), $("keys"));
const { motion, stage, overlays, timeline, selection, panels, shortcuts } = page;
if (timeline) timeline.addKeys(shortcuts);

drawHeader(data);
drawBanner(data);

// ---- panels, in the order of their tabs ------------------------------------------------------------

const pointed = { hover: (body) => selection.hover(body) };
if (data.check) new FindingPanel(panels.add("check", "Check"), data, stage, { ...pointed, shown: () => Boolean(overlays.on.inertia) });
if (timeline) page.curves = new Curves(panels.add("curves", "Curves"), page);
page.joints = new JointPanel(panels.add("joints", "Joints", () => page.joints.show(page.configuration())), data, {
  ...pointed,
  set: (at, value) => {
    page.posed = page.configuration();
    page.posed[at] = value;
    if (timeline) timeline.pause();
    drawPosed();
  },
  reset: () => {
    page.posed = null;
    if (timeline) timeline.seek(timeline.time);
    else drawStill();
  },
  choose: (joint) => selection.select(joint.body),
});
page.structure = new Structure(panels.add("structure", "Structure", () => page.structure.draw()), data, { ...pointed, light: (bodies) => stage.light(bodies) });
if (data.walk) page.walk = new Walk(panels.add("walk", "Algorithms", () => page.walk.open()), page);
const { curves, joints, structure } = page;
panels.open([...panels.known.keys()][0]);

selection.onHover((body) => {
  structure.highlight(body);
  joints.light(new Set(body === null ? [] : [body]));
  stage.light(new Set(body === null ? [] : structure.under[body]));
});
selection.onSelect(({ body }) => { if (curves) curves.choose(body); });

// Physics in the page, started when it is first asked for.
page.startEngine = () => (page.engine ??= new LiveEngine(data.live));

// ---- drawing one instant ----------------------------------------------------------------------------

page.cameras = new Cameras(page);
addPicking(page);

function drawTime(time) {
  page.posed = null;
  const frame = motion.frameAt(time);
  stage.pose(motion.at(frame));
  page.cameras.move(frame);
  overlays.update(frame);
  for (const plot of curves.plots) plot.setTime(time);
  if (panels.shows("joints")) joints.show(motion.coordinates(frame));
}

function drawPosed() {
  stage.pose(forwardKinematics(data, page.posed));
  overlays.update(page.frame(), page.posed);
  joints.show(page.posed);
}

function drawStill() {
  stage.pose(motion.at(0));
  overlays.update(0);
  joints.show(page.configuration());
}

$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  if (curves) curves.redraw();
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
window.robokit = Object.assign(page, { plots: curves ? curves.plots : [], openTab: (key) => panels.open(key), forwardKinematics: (q) => forwardKinematics(data, q) });
