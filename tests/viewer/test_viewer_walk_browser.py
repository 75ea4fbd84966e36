"""Inside the algorithms, in a real browser: the numbers are Python's, at every frame, line by line."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from test_viewer_browser import LIT, Watch, until
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.dynamics.run import body_forces
from robokit.engine.trace.ops import OPERATIONS
from robokit.sim.trajectory import Contacts
from robokit.viewer import write_page
from robokit.viewer.walk_data import State, walks

pytestmark = pytest.mark.browser

# Everything that each line shows: its number, the numbers written and read, as the cells' full titles.
ALL = """() => { const w = robokit.walk, found = [];
  for (let k = 0; k < w.recording.count; k++) {
    w.go(k);
    const of = (kind) => [...w.values.querySelectorAll(`.value-of.${kind}`)].map((block) =>
      [...block.querySelectorAll('td')].map((cell) => Number(cell.title)));
    const line = Number(w.where.textContent.match(/line (\\d+)/)[1]);
    found.push({ line, marked: w.source.marked[0].textContent,
      out: w.seen.length ? of('out') : [], in: w.seen.length ? of('in') : [] });
  }
  return found; }"""

# Body and direction of each arrow of a written value; the box of an inertia.
ARROWS = """() => { const { drawing } = robokit.walk, { bodies } = robokit.stage;
  return drawing.arrows.slice(0, drawing.used).filter((a) => a.shaft.material.opacity > 0.9)
    .map((a) => { a.updateMatrix(); return [bodies.indexOf(a.parent), ...a.matrix.elements.slice(8, 11)]; });
}"""
BOX = """() => { const { box } = robokit.walk.drawing;
  return { on: box.visible, at: box.position.toArray(), size: box.scale.toArray() }; }"""

PLAIN = ("scalar", "motion", "force", "motions", "forces", "vector", "transform")

LINKS = ("upper", "lower", "lower")
SAMPLE = 100


@pytest.fixture(scope="module")
def swing():
    """A pendulum that is driven, and pushed at points of its links."""
    swing = made_up_motion(pendulum())
    swing = replace(swing, tau=np.stack([np.sin(swing.t), np.cos(swing.t)], axis=1))
    fall = made_up_motion(pendulum()).contacts
    vars(swing)["contacts"] = Contacts(fall.points, fall.forces, LINKS)
    return swing


def state_of(swing, k):
    """What acts at a sample, by Python."""
    wrenches = {}
    for link, point, force in zip(LINKS, swing.contacts.points[k], swing.contacts.forces[k], strict=True):
        wrenches[link] = wrenches.get(link, 0.0) + np.concatenate([np.cross(point, force), force])
    f_ext = np.asarray(body_forces(swing.robot, swing.q[k], wrenches, "python")).reshape(-1)
    return State(
        swing.robot.tree.gravity, *(x.tolist() for x in (swing.q[k], swing.v[k], swing.tau[k], f_ext))
    )


def state_of_page(page, robot):
    """What the page gave to its program, as it stands there."""
    flat = page.evaluate("[...robokit.walk.state]")
    ends = np.cumsum([3, robot.nq, robot.nv, robot.nv])
    return State(*(part.tolist() for part in np.split(flat, ends)))


def show(page, swing, k):
    """The scene goes to a sample; its time, in case the page has no such frame."""
    page.evaluate(
        f"robokit.timeline.seek(robokit.motion.t[Math.round(robokit.motion.frameAt({swing.t[k]}))])"
    )
    assert page.evaluate("robokit.timeline.time") == pytest.approx(swing.t[k], abs=1e-6)


@pytest.fixture
def recorded(page, swing):
    """The texts' own run at the sample that the scene shows."""
    show(page, swing, SAMPLE)
    return walks(swing.robot, state_of_page(page, swing.robot))


@pytest.fixture(scope="module")
def page(chromium, swing, tmp_path_factory):
    watch = Watch(chromium)
    page = watch.open(write_page(swing, tmp_path_factory.mktemp("walk") / "swing.html"))
    page.get_by_role("tab", name="Algorithms").click()
    until(page, "robokit.walk.recording !== undefined")
    yield page
    watch.judge()


def choose(page, key):
    page.locator(".walk-head").get_by_role("button", name=key.upper(), exact=True).click()
    until(page, f"robokit.walk.recording.algorithm.key === '{key}'")


@pytest.mark.parametrize("k", [30, SAMPLE])
def test_the_page_gives_the_algorithms_what_acts_at_the_frame_shown(page, swing, k):
    show(page, swing, k)
    found, expected = state_of_page(page, swing.robot), state_of(swing, k)
    np.testing.assert_allclose(found.flat(), expected.flat(), rtol=2e-6, atol=1e-5)
    assert max(map(abs, expected.f_ext)) > 5.0
    said = "document.querySelector('.when').innerText"
    until(page, f"{said} === 'numbers of {swing.t[k]:.3f} s'")  # with the next picture


def check_lines(page, walk):
    """Every line shows what Python's run read and wrote."""
    shown = page.evaluate(ALL)
    assert len(shown) == len(walk.steps)
    for now, step in zip(shown, walk.steps, strict=True):
        assert now["line"] == step.statement.first
        source = Path(step.statement.file).read_text(encoding="utf-8").split("\n")[now["line"] - 1]
        assert now["marked"] == f"{now['line']}{source}"
        for kind, written in (("out", True), ("in", False)):
            seen = [each for each in step.seen if each.place.written == written]
            assert len(now[kind]) == len(seen)
            for numbers, each in zip(now[kind], seen, strict=True):
                kind, expected = each.value
                if kind in ("forces", "motions"):  # columns
                    expected = np.reshape(expected, (-1, 6)).T.reshape(-1)
                if kind in PLAIN:
                    np.testing.assert_allclose(numbers, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("key", ["rnea", "crba", "ltdl", "aba"])
def test_every_line_shows_the_numbers_of_python(page, swing, key):
    choose(page, key)
    for k in (30, SAMPLE):
        show(page, swing, k)
        check_lines(page, walks(swing.robot, state_of_page(page, swing.robot))[key])


def test_operations_of_the_page_are_those_of_the_engine(page):
    numbers = [-2.5, -1.0, 0.0, 0.3, 1.0, 4.0]
    shown = page.evaluate(
        """(x) => Object.entries(robokit.walk.program.constructor.operations).map(([name, f]) =>
      [name, x.flatMap((a) => x.map((b) => Number(f.length > 2 ? f(a > 0, a, b) : f(a, b)))).map(String)])""",
        numbers,
    )
    known = {operation.name: operation for operation in OPERATIONS}
    for name, found in shown:
        each = known[name]
        for text, (a, b) in zip(found, product(numbers, repeat=2), strict=True):
            taken = {1: (a,), 2: (a, b), 3: (a > 0, a, b)}[each.operands]
            if each.name in ("and", "or", "not"):
                taken = tuple(x != 0 for x in taken)
                text = str(float(float(text) != 0))
            value = float(text.replace("Infinity", "inf"))
            np.testing.assert_allclose(value, float(each.value(*taken)), rtol=1e-15, err_msg=name)


def test_numbers_and_arrows_follow_the_motion_while_it_plays(page, swing):
    choose(page, "rnea")
    show(page, swing, 30)
    page.evaluate("robokit.walk.goToBody(2)")
    to_v = "while (!w.seen.some((x) => x.letter.symbol === 'v')) w.go(w.step + 1);"
    page.evaluate(f"() => {{ const w = robokit.walk; {to_v} }}")
    before = page.locator(".values").inner_text(), page.evaluate(ARROWS)
    page.evaluate("robokit.timeline.play()")
    until(page, "robokit.timeline.time > 0.6")
    assert page.locator(".when").inner_text() != "numbers of 0.250 s"
    page.evaluate("robokit.timeline.pause()")
    until(page, "robokit.walk.look === null")
    assert page.locator(".when").inner_text() == f"numbers of {page.evaluate('robokit.timeline.time'):.3f} s"
    assert page.locator(".values").inner_text() != before[0] and page.evaluate(ARROWS) != before[1]
    page.get_by_role("tab", name="Joints").click()
    page.evaluate("() => { robokit.walk.program.run = () => { throw new Error('hidden, yet at work'); }; }")
    show(page, swing, 30)
    page.evaluate("delete robokit.walk.program.run")
    page.get_by_role("tab", name="Algorithms").click()
    assert page.locator(".when").inner_text() == "numbers of 0.250 s"


def test_a_pose_of_the_sliders_is_walked_at_rest(page, swing):
    show(page, swing, SAMPLE)
    page.get_by_role("tab", name="Joints").click()
    page.get_by_role("slider", name="lower_joint").press("PageUp")
    page.get_by_role("tab", name="Algorithms").click()
    state = state_of_page(page, swing.robot)
    assert state.q == page.evaluate("robokit.posed") != swing.q[SAMPLE].tolist()
    assert [*state.v, *state.tau, *state.f_ext] == [0.0] * 4
    assert page.locator(".when").inner_text() == "numbers of this pose, at rest"
    choose(page, "rnea")
    check_lines(page, walks(swing.robot, replace(state, f_ext=[0.0] * 18))["rnea"])


def test_h_fills_forwards_and_backwards(page, swing, recorded):
    choose(page, "crba")
    page.evaluate("robokit.walk.go(robokit.walk.recording.count - 1)")
    H = rk.crba(swing.robot, np.array(state_of_page(page, swing.robot).q))
    np.testing.assert_allclose(page.evaluate("[...robokit.walk.matrix.values]"), H.reshape(-1), rtol=1e-12)
    page.evaluate("robokit.walk.go(0)")
    assert page.evaluate("Math.max(...robokit.walk.matrix.written)") == 0
    page.evaluate("robokit.walk.go(robokit.walk.recording.starts.length - 1)")
    page.evaluate("{ const w = robokit.walk; while (!w.matrix.fresh.length) w.go(w.step - 1); }")
    assert page.evaluate("robokit.walk.matrix.fresh") == [[0, 0]]
    assert f"H(1,1) = {H[0, 0]:.4f}" in page.locator(".matrix-side .note").inner_text()


def test_buttons_keys_and_the_tree_move_line_by_line_and_body_by_body(page):
    choose(page, "rnea")
    page.evaluate("robokit.walk.go(robokit.walk.recording.begins[0])")
    start = page.evaluate("robokit.walk.step")
    page.get_by_role("button", name="One line forward").click()
    assert page.evaluate("robokit.walk.step") == start + 1
    page.locator("#canvas").hover()
    page.keyboard.press(",")
    assert page.evaluate("robokit.walk.step") == start
    page.get_by_role("button", name="One body forward").click()
    assert "i = 2 lower" in page.locator(".where").inner_text()
    page.get_by_role("button", name="One body forward").click()
    assert "← inward" in page.locator(".sweep").inner_text()
    page.locator(".walk-tree circle").nth(1).dispatch_event("click")
    assert "i = 1 upper" in page.locator(".where").inner_text()
    page.get_by_role("button", name="Play the lines").click()
    here = page.evaluate("robokit.walk.step")
    until(page, f"robokit.walk.step > {here}")
    page.get_by_role("button", name="Pause", exact=True).first.click()


def test_the_scene_shows_body_and_vectors_of_the_line(page, recorded):
    choose(page, "rnea")
    steps = recorded["rnea"].steps
    at = next(
        k for k, s in enumerate(steps) if s.seen and s.seen[-1].place.text == "v[i]" and s.indices[0] == 2
    )
    page.evaluate(f"robokit.walk.go({at})")
    assert sorted(page.evaluate(LIT)) == [1, 2]  # the body and its parent, whose velocity it reads
    arrows = page.evaluate(ARROWS)
    v = np.array(steps[at].seen[-1].value[1])
    expected = [part / np.linalg.norm(part) for part in (v[:3], v[3:]) if np.linalg.norm(part) > 1e-9]
    assert [a[0] for a in arrows] == [2] * len(expected)
    np.testing.assert_allclose([a[1:] for a in arrows], expected, atol=1e-5)
    page.get_by_role("tab", name="Joints").click()
    until(page, "robokit.walk.drawing.used === 0")
    assert page.evaluate(LIT) == []
    page.get_by_role("tab", name="Algorithms").click()


def test_the_composite_is_drawn_as_its_equivalent_box(page, recorded):
    choose(page, "crba")
    steps = recorded["crba"].steps
    at = next(
        k for k, s in enumerate(steps) if any(x.place.text == "Ic[p]" and x.place.written for x in s.seen)
    )
    page.evaluate(f"robokit.walk.go({at})")
    box = page.evaluate(BOX)
    m, hx, hy, hz = next(x for x in steps[at].seen if x.place.written).value[1][:4]
    assert box["on"]
    np.testing.assert_allclose(box["at"], np.array([hx, hy, hz]) / m, atol=1e-6)
    x, y, z = sorted(box["size"])
    xx, yy, zz, xy, xz, yz = next(x for x in steps[at].seen if x.place.written).value[1][4:]
    c = np.array([hx, hy, hz]) / m
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    moments = m / 12 * np.array([x * x + y * y, x * x + z * z, y * y + z * z])
    np.testing.assert_allclose(moments, np.linalg.eigvalsh(inertia), rtol=1e-4)
