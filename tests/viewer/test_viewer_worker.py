"""The physics of a page is Python's: the Worker's steps beside those of simulate, in Node and in Chromium."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from ladder import box_with_bar
from node_program import run_in_node
from test_viewer_browser import Watch, until

import robokit as rk
from robokit.sim.page_step import contact_page, page_module
from robokit.viewer import write_page
from robokit.viewer.live_data import live_data
from robokit.viewer.page import WORKER, joined, json_for_html, page_html

HEIGHT, AWAY = 6.0, 1.0


def toy():
    return box_with_bar(0.5)


@functools.cache
def fall():
    """A second of free flight, impacts, and rest."""
    robot = toy()
    q, v = robot.neutral(), np.array([1.5, -2.0, 3.0, AWAY, 0.0, 0.0, 4.0])
    q[6] = HEIGHT
    given = {"duration": 3.0, "dt": 1e-3, "ground": True, "record_every": 50}
    return rk.simulate(robot, q, v, **given)


@pytest.fixture(scope="module")
def motion():
    """The fall."""
    return fall()


def compare(motion, trace):
    """The Worker's states beside Python's."""
    q, v = (np.reshape(trace[key], (len(motion), -1)) for key in ("q", "v"))
    np.testing.assert_allclose(trace["t"], motion.t, atol=1e-9)
    flight = motion.t <= 1.0
    for mine, other in ((q, motion.q), (v, motion.v)):
        off = np.abs(mine - other)[flight].max()
        assert off <= 1e-9 * np.abs(other).max()
        # After impacts rounding grows; the fall is the same.
        assert np.abs(mine - other).max() < 1e-4
    kinetic, potential, dissipated, work, total = np.reshape(trace["energy"], (-1, 5)).T
    np.testing.assert_allclose(dissipated, motion.energy.dissipated, atol=1e-3)
    np.testing.assert_allclose(kinetic + potential + dissipated - work, total, atol=1e-9)
    assert motion.energy.dissipated[-1] > 100.0 and np.abs(total - total[0]).max() < 0.5


NODE = """
globalThis.onmessage = null;
const heard = [];
globalThis.postMessage = (message) => heard.push(message);
const { live, messages } = JSON.parse(require("fs").readFileSync(0));
(0, eval)(live.worker);
(async () => {
  await onmessage({ data: { kind: "load", live } });
  for (const message of messages) await onmessage({ data: message });
  const plain = (key, x) => (ArrayBuffer.isView(x) ? Array.from(x) : x);
  process.stdout.write(JSON.stringify(heard, plain), () => process.exit(0));
})();
"""


def told(motion, *messages):
    """What the Worker says to messages, in Node."""
    live = json.loads(json_for_html(live_data(motion, joined(WORKER))))
    return run_in_node(NODE, {"live": live, "messages": messages})


@pytest.fixture(scope="module")
def worker(motion):
    """The same of both falls."""
    return functools.partial(told, motion)


START = {"kind": "start", "t": 0, "q": None, "v": None, "run": 7}


@pytest.mark.node
def test_the_worker_takes_the_steps_of_python(worker, motion):
    ready, frame, trace = worker(START, {"kind": "trace", "steps": 3000, "every": 50})
    assert ready["kind"] == "ready" and frame["kind"] == "frame" and frame["run"] == 7
    compare(motion, trace)


@pytest.mark.node
def test_the_worker_has_the_forces_of_python(worker, motion):
    *_, trace = worker(START, {"kind": "trace", "steps": 3000, "every": 50})
    mine = np.reshape(trace["forceByBody"], (len(motion), 2, 3))
    others = np.stack([motion.contact_forces[name] for name in ("box", "bar")], axis=1)
    np.testing.assert_allclose(mine, others, atol=1e-4 * np.abs(others).max())
    assert (np.abs(others).max(axis=(0, 2)) > 1.0).all()


@pytest.mark.node
def test_the_worker_has_the_events_of_python(worker, motion):
    """Contacts, impacts, the largest force and rest follow from the force on each link in each step."""
    *_, trace = worker(START, {"kind": "trace", "steps": 3000, "every": 1})
    mine = np.reshape(trace["forceByBody"], (3001, 2, 3))[1:]
    steps = motion.step_forces
    assert steps.links == ("box", "bar") and {event.kind for event in motion.events} >= {"impact", "rest"}
    touching, others = (np.abs(each).max(axis=-1) > 0.0 for each in (mine, steps.force))
    # A touch may begin a step sooner for a rounding that has grown through many impacts.
    assert 0 < others.sum() < others.size and (touching != others).sum() <= 3
    np.testing.assert_allclose(mine, steps.force, atol=1e-4 * np.abs(steps.force).max())


@pytest.mark.node
def test_a_frame_says_what_python_says_of_the_state(worker, motion):
    robot = motion.robot
    *_, frame = worker(START, {"kind": "step", "count": 3000})
    assert frame["steps"] == 3000 and not frame["running"]
    q, v = np.array(frame["q"]), np.array(frame["v"])
    np.testing.assert_allclose(frame["com"], rk.center_of_mass(robot, q), atol=1e-9)
    np.testing.assert_allclose(frame["momentum"], rk.centroidal_momentum(robot, q, v), atol=1e-9)
    np.testing.assert_allclose(frame["balance"], 0.0, atol=1e-9)
    poses = np.reshape(frame["poses"], (-1, 7))
    box = poses[0]
    np.testing.assert_allclose(box[:3], q[4:7], atol=1e-6)
    sign = np.sign(box[6] * q[0])
    np.testing.assert_allclose(sign * box[[6, 3, 4, 5]], q[:4], atol=1e-6)
    # At rest: the ground carries the weight, by points and by bodies alike.
    weight = robot.total_mass * 9.81
    contacts = np.reshape(frame["contacts"], (-1, 6))
    assert contacts[:, 5].sum() == pytest.approx(weight, rel=0.05)
    np.testing.assert_allclose(
        contacts[:, 3:].sum(axis=0), np.reshape(frame["forceByBody"], (-1, 3)).sum(axis=0), atol=1e-3
    )
    assert set(frame["contactBody"]) <= {1, 2} and np.abs(contacts[:, 2]).max() < 1e-2
    assert frame["peak"] > 10.0 * weight


@pytest.mark.node
def test_a_hand_pulls_and_its_work_is_in_the_books(worker, motion):
    hand = {"kind": "hand", "body": 2, "point": [0.4, 0.0, 0.0], "target": [1.0, 0.0, 8.0]}
    _, first, held = worker(START, hand, {"kind": "step", "count": 400})
    assert held["hand"]["force"] != [0, 0, 0] and held["hand"]["work"] == pytest.approx(
        held["energy"]["work"]
    )
    assert abs(held["hand"]["work"]) > 1.0
    assert held["energy"]["total"] == pytest.approx(first["energy"]["total"], abs=0.02)
    np.testing.assert_allclose(held["balance"], 0.0, atol=1e-9)


@pytest.mark.node
def test_a_push_gives_its_impulse_and_gravity_may_change(worker, motion):
    push = {"kind": "push", "body": 1, "point": [0, 0, 0], "impulse": [3.0, 0.0, 0.0]}
    none = {"kind": "set", "gravity": [0, 0, 0]}
    _, first, calm, pushed = worker(START, none, push, {"kind": "step", "count": 100})
    gained = np.subtract(pushed["momentum"][3:], first["momentum"][3:])
    # It is given in the axes that the body has before the step, in which it turns a little.
    np.testing.assert_allclose(gained, [3.0, 0.0, 0.0], atol=0.01)
    assert calm["energy"]["potential"] == 0.0
    assert pushed["energy"]["total"] == pytest.approx(first["energy"]["total"], abs=1e-6)
    np.testing.assert_allclose(pushed["balance"], 0.0, atol=1e-9)


@pytest.mark.node
def test_a_state_that_is_no_longer_finite_stops_the_run(worker):
    start = {**START, "q": [1, 0, 0, 0, 0, 0, 6, 0], "v": [1e200] * 7}
    *_, frame, stopped = worker(start, {"kind": "step", "count": 10})
    assert stopped["kind"] == "stopped" and stopped["run"] == 7 and "finite" in stopped["reason"]
    assert frame["kind"] == "frame" and frame["t"] == 0


def test_pages_without_physics_may_start_none(motion):
    text = page_html(motion)
    assert "wasm-unsafe-eval" not in text and "worker-src" not in text and '"live":null' in text


def test_friction_stands_where_the_page_is_told():
    motion = fall()
    robot = motion.robot
    for friction in (0.3, {"bar": 0.25}):
        program = rk.simulate(robot, motion.q[0], duration=0.001, ground=rk.Ground(friction=friction)).program
        wanted = [program.ground.coefficient(name) for name in ("box", "bar")]
        assert sorted(contact_page(program, 1e-3).grips) == sorted(wanted)


def test_a_loaded_motion_has_no_physics(motion, tmp_path):
    motion.save(tmp_path / "motion.npz")
    loaded = rk.Trajectory.load(tmp_path / "motion.npz", robot=motion.robot)
    with pytest.raises(rk.RobokitError, match="live: the trajectory was loaded"):
        loaded.to_html(tmp_path / "page.html", live=True)


@pytest.mark.browser
def test_chromium_takes_the_steps_of_python(chromium, motion, tmp_path):
    watch = Watch(chromium)
    page = watch.open(write_page(motion, tmp_path / "toy.html", live=True))
    page.evaluate(
        """() => { const engine = robokit.startEngine();
          engine.on("trace", (trace) => { window.found = trace; });
          engine.send("start", { t: 0, q: null, v: null });
          engine.send("trace", { steps: 3000, every: 50 }); }"""
    )
    until(page, "window.found !== undefined")
    trace = page.evaluate(
        "Object.fromEntries(['t', 'q', 'v', 'energy'].map((k) => [k, Array.from(found[k])]))"
    )
    compare(motion, trace)
    watch.judge()


@pytest.mark.slow
def test_the_step_of_all_robots_is_small():
    assert 30_000 < len(page_module()) <= 100_000  # packed
