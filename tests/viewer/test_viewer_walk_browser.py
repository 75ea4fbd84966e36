"""Inside the algorithms, in a real browser: stepping shows Python's numbers, forwards and backwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_viewer_browser import LIT, Watch, until
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.viewer import write_page
from robokit.viewer.walk.walk_data import walks
from robokit.viewer.walk.walk_inputs import instants

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


@pytest.fixture(scope="module")
def swing():
    return made_up_motion(pendulum())


@pytest.fixture(scope="module")
def recorded(swing):
    moment = instants(swing, swing.robot, np.arange(len(swing.t)), times=[1.0])[0]
    return moment, walks(swing.robot, moment)


@pytest.fixture(scope="module")
def page(chromium, swing, tmp_path_factory):
    watch = Watch(chromium)
    page = watch.open(write_page(swing, tmp_path_factory.mktemp("walk") / "swing.html", walk=[1.0]))
    page.get_by_role("tab", name="Algorithms").click()
    until(page, "robokit.walk.recording !== undefined")
    yield page
    watch.judge()


def choose(page, key):
    page.locator(".walk-head").get_by_role("button", name=key.upper(), exact=True).click()
    until(page, f"robokit.walk.recording.algorithm.key === '{key}'")


@pytest.mark.parametrize("key", ["rnea", "crba", "ltdl", "aba"])
def test_every_line_shows_the_numbers_of_python(page, recorded, key):
    choose(page, key)
    shown = page.evaluate(ALL)
    steps = recorded[1][key].steps
    assert len(shown) == len(steps)
    for now, step in zip(shown, steps, strict=True):
        assert now["line"] == step.statement.first
        source = Path(step.statement.file).read_text(encoding="utf-8").split("\n")[now["line"] - 1]
        assert now["marked"] == f"{now['line']}{source}"
        for kind, written in (("out", True), ("in", False)):
            seen = [each for each in step.seen if each.place.written == written]
            assert len(now[kind]) == len(seen)
            for numbers, each in zip(now[kind], seen, strict=True):
                if each.value[0] in PLAIN:
                    np.testing.assert_allclose(numbers, np.asarray(each.value[1], "<f4"), rtol=1e-7)


def test_h_fills_forwards_and_backwards(page, swing, recorded):
    choose(page, "crba")
    page.evaluate("robokit.walk.go(robokit.walk.recording.count - 1)")
    H = rk.crba(swing.robot, recorded[0].q)
    np.testing.assert_allclose(page.evaluate("[...robokit.walk.matrix.values]"), H.reshape(-1), rtol=1e-6)
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
    page.get_by_role("button", name="One line on").click()
    assert page.evaluate("robokit.walk.step") == start + 1
    page.locator("#canvas").hover()
    page.keyboard.press(",")
    assert page.evaluate("robokit.walk.step") == start
    page.get_by_role("button", name="One body on").click()
    assert "i = 2 lower" in page.locator(".where").inner_text()
    page.get_by_role("button", name="One body on").click()
    assert "← inward" in page.locator(".sweep").inner_text()
    page.locator(".walk-tree circle").nth(1).dispatch_event("click")
    assert "i = 1 upper" in page.locator(".where").inner_text()
    page.get_by_role("button", name="Play the lines").click()
    here = page.evaluate("robokit.walk.step")
    until(page, f"robokit.walk.step > {here}")
    page.get_by_role("button", name="Pause", exact=True).first.click()


def test_the_scene_shows_body_and_vectors_of_the_line_at_its_instant_alone(page, recorded):
    choose(page, "rnea")
    page.evaluate("robokit.timeline.seek(0.2)")
    assert page.evaluate("robokit.walk.drawing.used") == 0
    page.get_by_role("button", name="Go there").click()
    assert abs(page.evaluate("robokit.timeline.time") - recorded[0].t) < 1e-3
    steps = recorded[1]["rnea"].steps
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


def test_the_composite_is_drawn_as_its_equivalent_box(page, recorded, swing):
    choose(page, "crba")
    page.evaluate("robokit.walk.goToInstant()")
    steps = recorded[1]["crba"].steps
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
