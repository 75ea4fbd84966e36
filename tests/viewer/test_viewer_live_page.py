"""A live run in a real browser: physics in the page, under the reader's hand, with books that close."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_viewer_browser import Watch, until

import robokit as rk
from robokit.dynamics.run import body_forces
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.viewer import write_page

pytestmark = pytest.mark.browser

MASS, HEIGHT = 4.0, 1.2

STATE = """() => { const { run } = robokit, m = run.motion, k = m.count - 1, last = (table, n) => Array.from(
  table.slice(k * n, k * n + n)); return { on: run.on, running: run.running, count: m.count,
  t: m.t[k], q: last(m.q, m.nq), v: last(m.v, robokit.data.robot.dof), com: last(m.com, 3),
  energy: last(m.energy, 5), start: run.startEnergy }; }"""

# Where a body's origin is on the screen.
SPOT = """(body) => { const { stage } = robokit; stage.world.updateMatrixWorld(true);
  stage.viewer.camera.updateMatrixWorld(true);
  const at = stage.bodies[body].getWorldPosition(new MeshCat.THREE.Vector3()).project(stage.viewer.camera);
  const edge = stage.host.getBoundingClientRect();
  return [edge.left + 0.5 * (1 + at.x) * edge.width, edge.top + 0.5 * (1 - at.y) * edge.height]; }"""


@pytest.fixture(scope="module")
def toy():
    """A box with a bar on a hinge, let go above the ground."""
    b = ModelBuilder("toy")
    b.link(
        "box",
        mass=3.0,
        inertia=np.diag([0.05, 0.05, 0.05]),
        visuals=(Shape(Box((0.4, 0.4, 0.3))),),
        collisions=(Shape(Box((0.4, 0.4, 0.3))),),
    )
    b.link(
        "bar",
        mass=1.0,
        com=(0.2, 0, 0),
        inertia=np.diag([0.002, 0.02, 0.02]),
        visuals=(Shape(Box((0.4, 0.08, 0.08)), Placement(position=np.array([0.2, 0, 0]))),),
    )
    b.joint(
        "hinge", "revolute", "box", "bar", axis=(0, 1, 0), placement=Placement(position=np.array([0.2, 0, 0]))
    )
    return b.build(base="floating")


def fall(toy, duration):
    q0 = toy.neutral()
    q0[6] = HEIGHT
    return rk.simulate(toy, q0, duration=duration, dt=1e-3, ground=True)


@pytest.fixture(scope="module")
def recording(toy):
    return fall(toy, 0.6)


@pytest.fixture(scope="module")
def live(chromium, recording, tmp_path_factory):
    """The page, used by all tests one after another; each begins with a drop."""
    watch = Watch(chromium)
    yield watch.open(write_page(recording, tmp_path_factory.mktemp("live") / "toy.html", live=True))
    watch.judge()


def state(page):
    return page.evaluate(STATE)


def drop(page, until_time=0.0):
    """A fresh live run from the recording's first frame, until some time of it."""
    page.evaluate("() => { robokit.run.leave(); robokit.timeline.seek(0); robokit.run.enter(); }")
    until(page, "!robokit.run.waiting && robokit.run.motion.count > 2")
    until(page, f"robokit.run.motion.duration >= {until_time}")


def imbalance(now):
    kinetic, potential, dissipated, work, total = now["energy"]
    np.testing.assert_allclose(total, kinetic + potential + dissipated - work, atol=1e-9)
    return abs(total - now["start"])


def test_the_button_starts_from_the_frame_shown_and_the_way_back_is_one_click(live, recording):
    live.evaluate("robokit.timeline.seek(0.3)")
    live.click("#live")
    until(live, "!robokit.run.waiting && robokit.run.motion.count > 2")
    assert live.locator("#live-bar").is_visible() and not live.locator("#timeline").is_visible()
    assert live.get_by_role("tab", name="Live").get_attribute("aria-selected") == "true"
    first = live.evaluate("Array.from(robokit.run.motion.q.slice(0, robokit.run.motion.nq))")
    k = int(np.argmin(np.abs(recording.t - 0.3)))
    # Whatever the first frame is, it lies on the fall from there.
    assert first[6] == pytest.approx(recording.q[k, 6], abs=0.2) and first[6] < recording.q[0, 6] - 0.3
    live.click("#live-back")
    assert live.evaluate("robokit.timeline.time") == pytest.approx(0.3)
    assert live.locator("#timeline").is_visible() and not live.locator("#live-bar").is_visible()
    assert live.evaluate("robokit.motion === robokit.run.recording")


def test_the_run_is_the_one_of_python(live, toy):
    drop(live, 0.2)
    now = live.evaluate("""() => { const m = robokit.run.motion;
      const k = m.t.findIndex((t) => t > 0.15), q = m.q.slice(k * m.nq, (k + 1) * m.nq);
      return { t: m.t[k], q: Array.from(q) }; }""")
    steps = round(now["t"] / 1e-3)
    assert now["t"] == pytest.approx(steps * 1e-3, abs=1e-12)
    same = fall(toy, now["t"])
    np.testing.assert_allclose(now["q"], same.q[-1], rtol=1e-9, atol=1e-9)


def test_the_books_close_through_a_fall_and_are_written_out(live):
    drop(live, 1.0)
    now = state(live)
    assert now["energy"][2] > 10.0  # what the impact took
    assert imbalance(now) < 1e-3
    live.keyboard.press("Space")
    until(live, "!robokit.run.running")
    off, now = live.evaluate(f"""() => {{ robokit.run.panel.draw(true);
      return [document.querySelector('#live-balance').innerText, ({STATE})()]; }}""")
    number = off.replace(" J", "").replace("−", "-").replace("·10", "e")
    number = re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]", lambda m: "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".index(m[0])], number)
    assert float(number) == pytest.approx(now["energy"][4] - now["start"], rel=0.1, abs=1e-12)


def test_a_pull_moves_the_link_does_work_and_the_books_still_close(live):
    drop(live, 1.0)
    rest = state(live)
    x, y = live.evaluate(SPOT, 1)
    live.mouse.move(x, y)
    live.mouse.down()
    height = live.evaluate("robokit.run.hand.place().z")
    live.mouse.move(x + 20, y - 220, steps=4)
    until(live, f"robokit.run.latest.hand?.point[2] > {height + 0.05}")
    label = live.locator(".live-force")
    assert label.is_visible() and re.fullmatch(r"[\d .]+ N", label.inner_text())
    held = state(live)
    assert not live.evaluate("robokit.stage.viewer.controls.enabled")
    live.mouse.up()
    until(live, "robokit.run.latest.hand === null")
    assert not label.is_visible() and live.evaluate("robokit.stage.viewer.controls.enabled")
    assert rest["energy"][3] == 0.0 and held["energy"][3] > 0.5
    for now in (held, state(live)):  # how often it fell, and from where, is a matter of the browser's time
        assert now["energy"][2] > 10.0 and imbalance(now) < 2e-4 * now["energy"][2]


def test_a_push_with_shift_gives_the_robot_momentum(live):
    drop(live, 1.0)
    x, y = live.evaluate(SPOT, 1)
    live.keyboard.down("Shift")
    live.mouse.click(x, y)
    live.keyboard.up("Shift")
    assert live.locator(".live-push").inner_text() == "2.00 N s"
    until(live, "robokit.run.motion.energy.at(-2) > 0.1")
    assert imbalance(state(live)) < 1e-3


def test_without_gravity_it_floats(live):
    drop(live)
    live.evaluate("""() => { const s = document.getElementById('live-gravity'); s.value = '0';
      s.dispatchEvent(new Event('input')); robokit.run.drop(); }""")
    until(live, "!robokit.run.waiting && robokit.run.motion.duration > 0.5")
    assert state(live)["com"][2] == pytest.approx(HEIGHT, abs=1e-6)
    live.get_by_role("button", name="As recorded").click()
    live.evaluate("robokit.run.drop()")
    until(live, "!robokit.run.waiting && robokit.run.motion.duration > 0.3")
    assert state(live)["com"][2] < HEIGHT - 0.3


def test_the_link_that_is_selected_is_drawn_as_it_moves(live, toy):
    drop(live, 0.3)
    live.evaluate("robokit.run.halt(); robokit.selection.select(2, 'bar')")
    live.wait_for_timeout(100)
    live.get_by_role("button", name="Link", exact=True).click()
    assert live.locator(".live-plot .unit").last.inner_text() == "bar [m]"
    found = live.evaluate("""() => { const { run } = robokit, m = run.motion;
      const { values } = run.panel.charts.links.read();
      const k = m.count - 2, row = (table, n) => Array.from(table.slice(k * n, k * n + n));
      return { q: row(m.q, m.nq), v: row(m.v, 7), link: row(values, 4) }; }""")
    _, place = rk.forward_kinematics(toy, found["q"])["bar"]
    speed = np.linalg.norm((rk.link_jacobian(toy, found["q"], "bar") @ found["v"])[3:])
    np.testing.assert_allclose(found["link"], [*place, speed], rtol=1e-6, atol=1e-6)
    live.evaluate("robokit.selection.select(null)")


def test_a_pose_goes_on_by_physics(chromium, toy, tmp_path):
    """On the page's plane, with the camera and the contacts with it; and back."""
    q = toy.neutral()
    q[6] = HEIGHT
    watch = Watch(chromium)
    page = watch.open(write_page(toy, tmp_path / "pose.html", q=q, live=True, walk=False))
    place = "robokit.stage.bodies[1].position.z"
    start = page.evaluate(place)
    page.click("#live")
    until(page, "robokit.run.motion.duration > 0.2 && robokit.run.latest.contacts.length > 0")
    until(page, "robokit.stage.framing.following && robokit.overlays.built.contacts.visible")
    until(page, "robokit.run.motion.force.some((x) => x > 1)")
    assert not page.locator("#live").is_visible()
    page.click("#live-back")
    assert page.evaluate(place) == start and page.locator("#live").is_visible()
    watch.judge()


def test_the_camera_goes_with_a_live_run_and_comes_back(live):
    """A recording's picture is fitted to the recording; nobody knows where the robot goes after it."""
    where = "robokit.stage.viewer.camera.position.toArray()"
    live.evaluate("() => { robokit.run.leave(); robokit.timeline.seek(0); robokit.cameras.follow(false); }")
    live.evaluate("robokit.stage.frameMotion()")
    before = live.evaluate(where)
    drop(live, 1.0)
    assert live.evaluate("robokit.stage.framing.following")
    edge = live.evaluate(
        "(({ x, y, width, height }) => [x, y, width, height])(robokit.stage.host.getBoundingClientRect())"
    )
    near, far = np.array(edge[:2]), np.array(edge[:2]) + edge[2:]
    until(live, f"robokit.run.motion.duration > {state(live)['t']}")
    spot = np.array(live.evaluate(SPOT, 1))
    assert (spot > near + 0.2 * (far - near)).all() and (spot < far - 0.2 * (far - near)).all()
    drop(live, 0.1)
    live.evaluate("robokit.run.leave()")
    assert not live.evaluate("robokit.stage.framing.following")
    np.testing.assert_allclose(live.evaluate(where), before, atol=1e-9)
    for chosen in ("stage.framing.touched", "cameras.chosen"):  # it stays where the reader has placed it
        live.evaluate(f"robokit.{chosen} = true")
        drop(live, 0.1)
        assert not live.evaluate("robokit.stage.framing.following")
        live.evaluate(f"() => {{ robokit.run.leave(); robokit.{chosen} = false; }}")
    live.evaluate("robokit.cameras.follow(true)")


def test_what_was_is_scrubbed_and_the_run_goes_on_from_there(live):
    drop(live, 0.8)
    live.evaluate("robokit.run.seek(0.2)")
    assert not live.evaluate("robokit.run.running")
    shown = live.evaluate("robokit.configuration()")
    assert shown[6] == pytest.approx(HEIGHT - 0.5 * 9.81 * 0.2**2, abs=0.01)
    assert live.locator("#live-clock").inner_text() == "0.200 s"
    live.click("#live-play")
    until(live, "!robokit.run.waiting && robokit.run.motion.duration > 0.05")
    assert live.evaluate("robokit.run.motion.q[6]") <= shown[6] + 1e-3
    # Going to a time of the recording is going back to it.
    live.evaluate("robokit.timeline.seek(0.1)")
    assert not live.evaluate("robokit.run.on")


def test_the_walk_shows_the_algorithms_at_the_frame_of_the_live_run(live, toy):
    drop(live, 0.55)  # it lies on the ground
    live.get_by_role("tab", name="Algorithms").click()
    until(live, "robokit.walk.when.endsWith(' s, live')")
    shown = live.locator(".when").inner_text()
    until(live, f"document.querySelector('.when').textContent !== {shown!r}")  # it follows the run
    until(live, "robokit.run.latest.contacts.length > 0")
    live.evaluate("robokit.run.halt()")
    live.wait_for_timeout(100)
    live.evaluate("robokit.walk.openAlgorithm('aba')")
    until(live, "robokit.walk.recording.algorithm.key === 'aba'")
    live.evaluate("robokit.run.draw()")
    now = live.evaluate("""() => { const { run, walk } = robokit, m = run.motion, k = run.shown;
      const row = (table, n) => Array.from(table.slice(k * n, k * n + n));
      walk.go(walk.recording.count - 1);
      while (!walk.seen.some((x) => x.letter.out && x.letter.written === 'qdd[i]')) walk.go(walk.step - 1);
      const last = walk.seen.find((x) => x.letter.out);
      return { q: row(m.q, m.nq), v: row(m.v, 7), poses: row(m.poses, 14), contacts: Array.from(m.contacts),
        bodies: Array.from(m.contactBody), state: [...walk.state], qdd: [...last.numbers] }; }""")
    gravity, q, v, tau, f_ext = np.split(now["state"], np.cumsum([3, toy.nq, toy.nv, toy.nv]))
    np.testing.assert_allclose([*gravity, *tau], [0.0, 0.0, -9.81, *[0.0] * toy.nv], atol=1e-6)
    np.testing.assert_allclose([*q, *v], [*now["q"], *now["v"]], rtol=1e-12, atol=1e-12)
    wrenches = {}
    for body, (*point, fx, fy, fz) in zip(now["bodies"], np.reshape(now["contacts"], (-1, 6)), strict=True):
        link = toy.links[body - 1].name
        wrench = np.concatenate([np.cross(point, [fx, fy, fz]), [fx, fy, fz]])
        wrenches[link] = wrenches.get(link, 0.0) + wrench
    assert wrenches
    expected = np.reshape(body_forces(toy, q, wrenches, "python"), -1)
    np.testing.assert_allclose(f_ext, expected, atol=1e-5 * np.abs(expected).max())
    a = rk.aba(toy, q, v, tau, f_ext.reshape(-1, 6))
    np.testing.assert_allclose(now["qdd"], a[-len(now["qdd"]) :], rtol=1e-9, atol=1e-9)
    live.evaluate("robokit.run.set({ gravity: [0, 0, -3.7] })")
    until(live, "robokit.walk.state[2] === -3.7")
