// Physics in the page: a Worker that takes the very steps of robokit.simulate, compiled to WebAssembly.
//
// The page talks to it through LiveEngine (engine.js), which starts it. Every message has a `kind`. Arrays of
// states are Float64Array, arrays to draw are Float32Array. World axes, SI units; a pose is position x y z and unit
// quaternion x y z w, as in FramesData.
//
// From the page:
//
//   load     live                         first; `live` is the page's LiveData
//   start    t, q, v                      begin here; t [s] is only counted on. Books start at zero. The hand lets go.
//                                         q, v null: the start of the recording, every bit of it
//            run                          its number, which frames repeat: older frames may still be on their way
//   run      speed                        1: real time; 0.25: slower; Infinity: as fast as it goes
//   pause
//   step     count                        steps at once while paused, then a frame
//   hand     body, point, target,         pull a body by a spring and damper from now on: `point` in the body's
//            stiffness, damping           coordinates [m], `target` in the world [m], [N/m], [N s/m]. Again: moves it.
//                                         stiffness, damping left out: what suits the robot's mass
//   release                               the hand lets go
//   push     body, point, impulse         once, at `point` of the body, impulse in world axes [N s]
//   drive    commands, powered            what the driven joints are given from now on [N m | N], see MotorData; null: what they
//                                         were given at the start of the recording; powered: whether they act at all
//   set      gravity, friction, dt        any of these: [x, y, z] m/s^2; one coefficient for all links, null for those of
//                                         the recording; [s]
//   trace    steps, every                 take so many steps at once and answer with every so many-th state (tests)
//   rerun    number, inputs, steps        a whole run from these numbers: rerun.js
//
// To the page:
//
//   ready    seconds                      loaded; start may follow
//   frame    at most 60 a second, see below
//   stopped  t, reason                    the state is no longer finite; the last good frame was sent before
//   trace    t, q, v, energy, forceByBody (n), (n, nq), (n, nv), (n, 5), (n, N, 3): as in a frame
//   rerun    number, run, seconds         the run, see rerun.js; the state is that of its end
//   problem  message                      this browser cannot run it, and why
//
// A frame:
//
//   t           [s]                       time of the state
//   steps, stepsPerSecond, rate           taken since start; over the last second; simulated over real time
//   running     false after pause, stopped
//   run         number of the start that it follows
//   q, v        the state
//   poses       (N, 7) of bodies 1..N
//   com         [x, y, z] m
//   energy      { kinetic, potential, dissipated, work, total } J: work is what the hand and pushes put in, and
//               total = kinetic + potential + dissipated - work, which stays what it was at the start
//   momentum    centroidal, angular then linear, (6) [N m s; N s]
//   balance     (6) momentum - that of the start - impulses of gravity, ground, hand: zero but for rounding; null for
//               a robot that is fixed to the world
//   force       [x, y, z] N of the ground on the robot: mean over the steps since the last frame
//   peak        N: length of the largest force of a single step since the last frame
//   forceByBody (N, 3) N of the last step by body
//   contacts    (n, 6) of the points that touch in the last step: position [m], force [N]
//   contactNormals (n, 3) unit normals out of what they touch
//   contactBody (n) bodies of these points (Uint16Array)
//   met         (m, 9) of the points at which two bodies touch: position [m], force on the second [N], normal out of the first
//   hand        { body, point, target, force, work } or null: where the point is in the world [m], force [N] on the
//               robot, work [J] put in since it took hold
//   gravity     [x, y, z]; potential energy changes with it, and `work` says by how much when `set` changed it

const FRAME = 1 / 60; // [s] between two frames
const LATE = 0.1; // [s] of real time that are made up for; what is later is left out
const BATCH = 12; // [ms] of steps between two looks at what the page says

// ---- time ----------------------------------------------------------------------------------------------

let physics = null;
let running = false, speed = 1, number = 0;
let last = 0, owed = 0, posted = 0; // real time of the last tick [ms], simulated time that is due [s], of the last frame
const pace = []; // [real time [ms], steps, simulated time] of the last second

const say = (kind, values) => postMessage({ kind, ...values });

function send() {
  const now = performance.now();
  pace.push([now, physics.steps, physics.t]);
  while (pace.length > 2 && now - pace[0][0] > 1000) pace.shift();
  const [then, steps, t] = pace[0], seconds = (now - then) / 1000;
  const rates = seconds > 0 ? { stepsPerSecond: (physics.steps - steps) / seconds, rate: (physics.t - t) / seconds } : { stepsPerSecond: 0, rate: 0 };
  say("frame", { ...physics.frame(), ...rates, running, run: number });
  posted = now;
}

// Steps for so long, or until what is due is done; false where the state is no longer finite.
function advance(due, until) {
  physics.keep();
  let left = due;
  for (let k = 0; left > 0; k++) {
    if (!physics.take()) break;
    left -= physics.dt;
    if (k % 8 === 7 && performance.now() > until) break;
  }
  if (physics.finite) {
    owed = Math.max(left, -physics.dt);
    return true;
  }
  physics.goBack();
  running = false;
  send();
  say("stopped", { t: physics.t, run: number, reason: "The state is no longer finite: the time step is too long. Choose a shorter one." });
  return false;
}

function tick() {
  if (!running) return;
  const now = performance.now();
  owed = Number.isFinite(speed) ? Math.min(owed + ((now - last) / 1000) * speed, LATE * speed) : Infinity;
  last = now;
  if (owed > 0 && !advance(owed, now + BATCH)) return;
  if (performance.now() - posted >= 1000 * FRAME) send();
  wait();
}

// A message comes sooner than a timer, and lets those of the page pass.
const channel = new MessageChannel();
channel.port1.onmessage = tick;
function wait() {
  if (owed > 0) channel.port2.postMessage(null);
  else setTimeout(tick, 2);
}

// ---- messages ------------------------------------------------------------------------------------------

const hear = {
  async load({ live }) {
    const then = performance.now();
    try {
      physics = await Physics.load(live);
      say("ready", { seconds: (performance.now() - then) / 1000 });
    } catch (error) {
      say("problem", { message: `This browser cannot run the simulation: ${error.message}` });
    }
  },
  start({ t = 0, q = null, v = null, run = 0 }) {
    physics.start(t, q, v);
    number = run;
    pace.length = 0;
    owed = 0;
    last = performance.now();
    send();
  },
  run(message) {
    speed = message.speed ?? 1;
    const idle = !running;
    running = true;
    pace.length = 0;
    if (idle) {
      last = performance.now();
      owed = 0;
      tick();
    }
  },
  pause() {
    running = false;
    send();
  },
  step({ count = 1 }) {
    running = false;
    if (advance((count - 0.5) * physics.dt, Infinity)) send();
    owed = 0;
  },
  hand(message) { physics.setHand(message); },
  release() { physics.release(); },
  push({ body, point, impulse }) { physics.push = { body, point, impulse }; },
  drive({ commands, powered }) { physics.drive(commands, powered); },
  set({ gravity, friction, dt }) {
    if (gravity !== undefined) physics.setGravity(gravity);
    if (friction !== undefined) physics.setFriction(friction);
    if (dt !== undefined) physics.setStep(dt);
    if (!running && physics.started) send();
  },
  trace({ steps, every = 1 }) {
    const rows = { t: [], q: [], v: [], energy: [], forceByBody: [] };
    const note = () => {
      const { model } = physics;
      model.see();
      rows.t.push(physics.t);
      rows.q.push(...model.q);
      rows.v.push(...model.v);
      rows.energy.push(...Object.values(physics.energies()));
      rows.forceByBody.push(...model.forces());
    };
    note();
    for (let k = 1; k <= steps; k++) {
      physics.take();
      if (k % every === 0) note();
    }
    say("trace", Object.fromEntries(Object.entries(rows).map(([name, x]) => [name, Float64Array.from(x)])));
  },
  rerun(message) {
    const then = performance.now();
    try {
      const run = rerun(physics, message);
      say("rerun", { number: message.number, run, seconds: (performance.now() - then) / 1000 });
    } catch (error) {
      say("problem", { message: `The simulation failed: ${error.message}` });
    }
  },
};

let loaded = null;
onmessage = async ({ data: message }) => {
  if (message.kind === "load") loaded = hear.load(message);
  else {
    await loaded; // what comes before the physics is there waits for it, in order
    if (physics && (physics.started || ["start", "set", "drive", "rerun"].includes(message.kind))) hear[message.kind]?.(message);
  }
};
