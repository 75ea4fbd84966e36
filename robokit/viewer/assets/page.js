// The page: reads its data, builds the parts and lets each hear of the others.

const page = { data: JSON.parse($("robokit-data").textContent) };
const { data } = page;
page.theme = new Theme($("theme"));
page.motion = new Motion(data.frames, data.bodies.name.length - 1);
page.stage = new Stage($("canvas"), data, page.motion);
page.overlays = new Overlays(page.stage, data, page.motion);
page.timeline = page.motion.count > 1 ? new Timeline(page.motion) : null;
page.selection = new Selection(data);
page.panels = new Panels($("tabs"), $("side"));
// The configuration that sliders made, while they rule; and the frame, with a fraction, that is shown.
page.posed = null;
page.frame = () => {
  if (page.motion === page.run?.motion) return page.run.shown;
  return page.timeline ? page.motion.frameAt(page.timeline.time) : 0;
};
page.configuration = () => page.posed || page.motion.coordinates(page.frame());
page.shortcuts = new Shortcuts($("shortcuts"), $("keys"));
const { motion, stage, overlays, timeline, selection, panels, shortcuts } = page;
if (timeline) timeline.addKeys(shortcuts);

drawHeader(data);
drawBanner(data);

// ---- panels, in the order of their tabs ------------------------------------------------------------

const pointed = { hover: (body) => selection.hover(body) };
const branches = new Branches(data), massMatrix = new MassMatrix(data);
page.massMatrix = (q = page.configuration()) => massMatrix.at(forwardKinematics(data, q));
if (data.check) new FindingPanel(panels.add("check", "Check"), data, stage, { ...pointed, shown: () => Boolean(overlays.on.inertia) });
if (timeline && data.events) {
  page.happenings = new Happenings(page);
  page.lane = new Lane(page.happenings, timeline);
  page.lane.addKeys(shortcuts);
  page.summary = new Summary(panels.add("summary", "Summary"), page, page.happenings);
}
if (timeline) page.curves = new Curves(panels.add("curves", "Curves"), page);
page.joints = new JointPanel(panels.add("joints", "Joints", () => { page.joints.show(page.configuration()); page.joints.select(selection.body); }), data, {
  ...pointed,
  set: (at, value) => {
    page.posed = page.configuration();
    page.posed[at] = value;
    if (timeline) timeline.pause();
    if (page.run?.on) page.run.halt();
    drawPosed();
  },
  reset: () => {
    page.posed = null;
    if (page.run?.on) page.run.draw();
    else page.back();
  },
  choose: (joint) => selection.select(joint.body),
  plot: page.curves && ((joint) => page.curves.pin(joint.body)),
});
if (page.curves) page.curves.onPick((bodies) => page.joints.plotted(bodies));
page.structure = new Structure(panels.add("structure", "Structure", () => page.structure.draw()), data, {
  ...pointed,
  choose: (body, dof = null) => selection.select(body, null, dof),
  light: (bodies, ends) => { stage.light(bodies, ends); page.joints.light(ends); },
  values: () => page.massMatrix(),
}, branches);
page.selected = new SelectedCard(page, branches);
page.outline = new Outline(stage);
if (data.walk) page.walk = new Walk(panels.add("walk", "Algorithms", () => page.walk.open()), page);
const { curves, joints, structure } = page;
panels.open(curves?.own.length ? "curves" : [...panels.known.keys()][0]);

selection.onHover((body) => {
  structure.highlight(body);
  joints.light(new Set(body === null ? [] : [body]));
  stage.light(new Set(body === null ? [] : structure.under[body]), new Set([body]));
});
selection.onSelect(({ body, link, dof }) => {
  if (curves) curves.choose(body, link);
  joints.select(body);
  structure.select(body, dof);
  page.outline.select(body, link);
  page.selected.show(selection);
});

// Physics in the page, started when it is first asked for.
page.startEngine = () => (page.engine ??= new LiveEngine(data.live));
if (data.live) page.run = new LiveRun(page);

// ---- drawing one instant ----------------------------------------------------------------------------

page.cameras = new Cameras(page);
addPicking(page);
page.exports = new ExportMenu(page);
if (data.ghost && timeline) {
  page.ghost = new Ghost(page);
  page.compared = new Comparison(panels.add("compare", "Compare"), page);
  panels.open("compare");
}

function drawTime(time) {
  // Whoever goes to a time of the recording wants to see the recording.
  if (page.run) page.run.leave();
  page.posed = null;
  curves.setTime(time);
  page.drawFrame(motion.frameAt(time));
}

// A frame of the recording or of a live run, everywhere.
page.drawFrame = (frame) => {
  stage.pose(page.motion.at(frame));
  page.cameras.move(frame);
  overlays.update(frame);
  if (panels.shows("joints")) joints.show(page.motion.coordinates(frame));
  structure.update();
  page.selected.update();
};

function drawPosed() {
  stage.pose(forwardKinematics(data, page.posed));
  overlays.update(page.frame(), page.posed);
  joints.show(page.posed);
  structure.update();
}

function drawStill() {
  stage.pose(motion.at(0));
  overlays.update(0);
  joints.show(page.configuration());
}

// The recording, where it was left.
page.back = () => {
  if (timeline) timeline.seek(timeline.time);
  else drawStill();
};

page.theme.onChange((dark) => {
  if (curves) curves.redraw();
  if (page.run) page.run.panel.redraw();
  structure.draw();
  stage.dark(dark);
});
stage.dark(page.theme.dark);
if (timeline) {
  timeline.onChange(drawTime);
  drawTime(0);
} else {
  drawStill();
}

page.address = new Address(page);
page.opening = new Opening(page);

let before = performance.now();
let interval = 16;
function loop(now) {
  requestAnimationFrame(loop);
  const playing = Boolean(timeline?.playing || page.run?.running), seconds = Math.min((now - before) / 1000, 0.5);
  if (playing) interval += 0.1 * (Math.min(now - before, 500) - interval);
  page.opening.tick();
  if (timeline) timeline.tick(seconds);
  if (page.run) page.run.tick(seconds);
  // While a slow machine plays, smooth motion is worth more than sharp edges; a still picture is sharp again.
  stage.coarse(playing && (stage.isCoarse || interval > 90));
  before = now;
  stage.render();
}
requestAnimationFrame(loop);

// For tests and for pages that embed this one.
window.robokit = Object.assign(page, { plots: curves ? curves.plots : [], openTab: (key) => panels.open(key), forwardKinematics: (q) => forwardKinematics(data, q) });
