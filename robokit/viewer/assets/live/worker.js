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
//   set      gravity, friction, dt        any of these: [x, y, z] m/s^2; one coefficient for all links, null for those of
//                                         the recording; [s]
//   trace    steps, every                 take so many steps at once and answer with every so many-th state (tests)
//
// To the page:
//
//   ready    seconds                      loaded; start may follow
//   frame    at most 60 a second, see below
//   stopped  t, reason                    the state is no longer finite; the last good frame was sent before
//   trace    t, q, v, energy              (n), (n, nq), (n, nv), (n, 5): as in a frame
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
//   balance     (6) momentum - that of the start - impulses of gravity, ground, hand: zero but for rounding
//   force       [x, y, z] N of the ground on the robot: mean over the steps since the last frame
//   peak        N: length of the largest force of a single step since the last frame
//   forceByBody (N, 3) N of the last step by body
//   contacts    (n, 6) of the points that touch in the last step: position [m], force [N]
//   contactBody (n) bodies of these points (Uint16Array)
//   hand        { body, point, target, force, work } or null: where the point is in the world [m], force [N] on the
//               robot, work [J] put in since it took hold
//   gravity     [x, y, z]; potential energy changes with it, and `work` says by how much when `set` changed it

function load({ live }) {
  const slots = new Map(live.slots.map((slot) => [slot.name, [slot.at, slot.count]]));
  const { q, v, parameters, friction, gravity, dt, mass, masses, contacts, stiffness, damping, module } = live;
  return { slots, q, v, parameters, friction, gravity, dt, mass, masses, contacts, stiffness, damping, module, size: live.bytes };
}

onmessage = ({ data: message }) => {
  if (message.kind === "load") load(message);
};
