"""A page that is opened plays once, unless its reader wants less motion; labels, code, scale can be read."""

from __future__ import annotations

import numpy as np
import pytest
from test_viewer_browser import Watch, until
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.viewer import compare, write_page

pytestmark = pytest.mark.browser

DURATION = 1.2

STATE = "[robokit.timeline.playing, robokit.timeline.time, location.hash]"


@pytest.fixture(scope="module")
def path(shapes, tmp_path_factory):
    motion = made_up_motion(pendulum(shapes=shapes), duration=DURATION)
    return write_page(motion, tmp_path_factory.mktemp("opening") / "swing.html", walk=False)


@pytest.fixture(scope="module")
def long_path(shapes, tmp_path_factory):
    motion = made_up_motion(pendulum(shapes=shapes), duration=30.0)
    return write_page(motion, tmp_path_factory.mktemp("opening") / "swing.html", walk=False, max_fps=10)


@pytest.fixture
def watch(chromium):
    made = Watch(chromium)
    made.page.emulate_media(reduced_motion="no-preference")
    yield made
    made.judge()


@pytest.fixture(scope="module")
def humanoid_page(humanoid, tmp_path_factory):
    return write_page(made_up_motion(humanoid), tmp_path_factory.mktemp("opening") / "fall.html")


def test_it_plays_once_and_rests_at_its_end_ready_to_play_again(watch, path):
    page = watch.open(path)
    until(page, "!robokit.timeline.playing && robokit.timeline.time > 0")
    page.wait_for_timeout(600)
    # The address is as it was opened.
    assert page.evaluate(STATE) == [False, pytest.approx(DURATION, abs=1e-6), ""]
    page.get_by_role("button", name="Play").click()
    until(page, "robokit.timeline.playing && robokit.timeline.time < 1")
    until(page, "!robokit.timeline.playing")
    # At the start it is not what it opens with.
    page.keyboard.press("Home")
    until(page, "location.hash === '#t=0'")


def test_readers_who_want_less_motion_see_it_at_rest(watch, path):
    watch.page.emulate_media(reduced_motion="reduce")
    page = watch.open(path)
    page.wait_for_timeout(700)
    assert page.evaluate(STATE) == [False, 0, ""]


def test_an_address_with_a_time_shows_that_time(watch, path):
    watch.page.goto(path.as_uri() + "#t=0.5&tab=joints")
    until(watch.page, "window.robokit !== undefined")
    watch.page.wait_for_timeout(700)
    assert watch.page.evaluate(STATE)[:2] == [False, 0.5]
    watch.page.goto("about:blank")
    watch.requests.clear()
    watch.page.goto(path.as_uri() + "#tab=joints")
    until(watch.page, "window.robokit?.timeline.playing")
    assert watch.page.evaluate("robokit.panels.current") == "joints"


@pytest.mark.parametrize("act", ["turn", "tab", "key", "wheel"])
def test_whoever_does_something_stops_it(watch, long_path, act):
    page = watch.open(long_path)
    until(page, "robokit.timeline.playing && robokit.timeline.time > 0")
    if act == "turn":
        page.mouse.click(60, 400)
    elif act == "tab":
        page.get_by_role("tab", name="Joints").click()
    elif act == "key":
        page.keyboard.press("f")
    else:
        page.mouse.move(300, 400)
        page.mouse.wheel(0, 100)
    until(page, "!robokit.timeline.playing")
    assert 0 < page.evaluate("robokit.timeline.time") < 25.0
    page.get_by_role("button", name="Play").click()
    until(page, "robokit.timeline.playing")
    # From now on it plays because it was told to.
    page.mouse.click(60, 400)
    page.wait_for_timeout(100)
    assert page.evaluate("robokit.timeline.playing")


@pytest.mark.parametrize("act", ["click", "space"])
def test_the_button_and_the_space_bar_pause_it(watch, long_path, act):
    page = watch.open(long_path)
    until(page, "robokit.timeline.playing && robokit.timeline.time > 0")
    if act == "click":
        page.click("#play")
    else:
        page.keyboard.press("Space")
    assert not page.evaluate("robokit.timeline.playing")


# ---- what is readable ---------------------------------------------------------------------------------

# The box of what the robot covers on the screen, of the names, and of the scale, in the view's pixels.
BOXES = """() => { const { stage } = robokit, { viewer, host } = stage, labels = robokit.overlays.built.names;
  stage.draw();
  const onScreen = (p) => { const v = p.clone().project(viewer.camera);
    return [0.5 * (1 + v.x) * host.clientWidth, 0.5 * (1 - v.y) * host.clientHeight]; };
  const names = labels.children.filter((c) => c.isSprite && c.visible).map((c) => {
    const [x, y] = onScreen(c.getWorldPosition(c.position.clone())), { wide, high } = c.extent;
    return [x - wide / 2, y - high / 2, x + wide / 2, y + high / 2]; });
  const anchors = labels.anchors.map((p, k) =>
    onScreen(p.clone().applyMatrix4(stage.bodies[labels.bodies[k]].matrixWorld)));
  return { names, anchors, size: [host.clientWidth, host.clientHeight] }; }"""


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("at", [0.0, 2.0])
def test_names_stand_beside_the_robot_and_over_nothing(chromium, humanoid_page, size, at):
    watch = Watch(chromium, size)
    page = watch.open(humanoid_page)
    page.get_by_role("button", name="Names").click()
    page.evaluate(f"robokit.timeline.seek({at})")
    seen = page.evaluate(BOXES)
    names, anchors = np.array(seen["names"]), np.array(seen["anchors"])
    assert len(names) == page.evaluate("robokit.data.links.length")
    # No name reaches over the middles of the links, nor over another name, nor out of the view.
    inside = (anchors[:, 0].min() - 1, anchors[:, 0].max() + 1)
    assert ((names[:, 2] < inside[0]) | (names[:, 0] > inside[1])).all()
    assert (
        names.min() >= 0 and (names[:, 2] <= seen["size"][0]).all() and (names[:, 3] <= seen["size"][1]).all()
    )
    for side in (names[names[:, 2] < inside[0]], names[names[:, 0] > inside[1]]):
        assert (np.diff(np.sort(side[:, 1])) > 12).all()
    # The same names where the camera is far: their size is that of the screen.
    page.evaluate("robokit.stage.viewer.camera.position.multiplyScalar(1.6)")
    again = np.array(page.evaluate(BOXES)["names"])
    np.testing.assert_allclose(np.sort(again[:, 3] - again[:, 1]), np.sort(names[:, 3] - names[:, 1]))
    watch.judge()


def test_a_small_view_shows_as_many_names_as_it_has_room_for(chromium, humanoid_page):
    watch = Watch(chromium, (390, 844))
    page = watch.open(humanoid_page)
    page.evaluate("document.querySelector('[data-key=names]').click()")
    seen = page.evaluate(BOXES)
    names = np.array(seen["names"])
    assert 5 < len(names) < page.evaluate("robokit.data.links.length")
    assert names[:, 0].min() >= 0 and names[:, 2].max() <= seen["size"][0]
    watch.judge()


# What of the robot's pixels lies under the scale of forces.
UNDER = """() => { const { stage } = robokit, { renderer } = stage.viewer, gl = renderer.getContext();
  for (const part of robokit.stage.world.children) if (!stage.skin.parts.includes(part) && part.visible) {
    part.visible = part.isLight || !part.children.length; }
  stage.viewer.render();
  const [w, h] = [gl.drawingBufferWidth, gl.drawingBufferHeight], all = new Uint8Array(4 * w * h);
  gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, all);
  const view = stage.host.getBoundingClientRect();
  const box = document.querySelector("#force-scale").getBoundingClientRect();
  const scale = w / view.width; let under = 0, robot = 0;
  for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) {
    if (all[4 * (y * w + x) + 3] < 200) continue;
    robot++;
    const px = view.left + x / scale, py = view.bottom - y / scale;
    if (px > box.left && px < box.right && py > box.top && py < box.bottom) under++;
  }
  const sides = (one) => [one.left, one.top, one.right, one.bottom];
  return { robot, under, box: sides(box), view: sides(view), free: stage.framing.insets(view.height) }; }"""


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (1024, 768)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_scale_of_forces_is_not_over_the_robot(chromium, humanoid_page, size):
    watch = Watch(chromium, size, picture=True)
    page = watch.open(humanoid_page)
    for at in (0.0, 1.0, 2.0):
        page.evaluate(f"robokit.timeline.seek({at})")
        seen = page.evaluate(UNDER)
        assert seen["robot"] > 200 and seen["under"] == 0, at
        box, view = seen["box"], seen["view"]
        # It stands in the strips that the camera leaves free over and under the motion.
        free = seen["free"]
        assert box[3] - view[1] < free["top"] + 5 or view[3] - box[1] < free["foot"] + 5
        assert box[0] > view[0] and box[1] > view[1] and box[2] < view[2] and box[3] < view[3]
        covered = page.evaluate(
            """([l, t, r, b]) => [...document.querySelectorAll('#view button')].filter((e) => e.offsetParent)
              .map((e) => e.getBoundingClientRect())
              .some((q) => q.left < r && l < q.right && q.top < b && t < q.bottom)""",
            box,
        )
        assert not covered
    watch.judge()


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (390, 844)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_code_is_not_cut(chromium, humanoid_page, size):
    watch = Watch(chromium, size)
    page = watch.open(humanoid_page)
    page.evaluate("robokit.openTab('walk')")
    page.locator(".line.now").wait_for()
    cut = """() => { const pane = document.querySelector(".walk .source");
      const right = pane.getBoundingClientRect().left + pane.clientWidth;
      const over = [...pane.querySelectorAll(".line span")]
        .filter((e) => e.getBoundingClientRect().right > right + 1);
      return [pane.scrollWidth - pane.clientWidth, over.length, pane.querySelectorAll(".line").length]; }"""
    wide, over, lines = page.evaluate(cut)
    assert wide == 0 and over == 0 and lines > 10
    # What goes on in the next row goes on further in.
    begins = page.evaluate("""() => [...document.querySelectorAll(".walk .line")].map((line) => {
      const range = document.createRange(), rows = new Map();
      for (const part of [...line.childNodes].slice(1)) { range.selectNodeContents(part);
        for (const box of range.getClientRects()) if (box.width > 3)
          rows.set(Math.round(box.top), Math.min(rows.get(Math.round(box.top)) ?? 1e9, box.left)); }
      return [...rows.values()]; }).filter((rows) => rows.length > 1)""")
    assert size[0] > 1200 or begins
    for first, *others in begins:
        assert all(x > first - 1 for x in others)
    watch.judge()


def test_the_ghost_has_one_colour_where_its_parts_lie_over_one_another(chromium, tmp_path):
    # Three flat boxes one behind the other, seen from the front; the ghost hangs far to the side.
    builder = ModelBuilder("plates")
    plates = tuple(
        Shape(Box((0.02, 1.0, high)), Placement(position=np.array([x, 0, 0.5 * high])))
        for x, high in ((-0.4, 0.4), (-0.2, 0.7), (0.0, 1.0))  # in this order they are drawn
    )
    builder.link("plates", mass=1.0, inertia=np.eye(3), visuals=plates)
    robot = builder.build("floating")
    q, away = robot.neutral(), robot.neutral()
    away[5] = 3.0
    runs = [rk.simulate(robot, x, duration=0.02, gravity=(0, 0, 0)) for x in (q, away)]
    watch = Watch(chromium, picture=True)
    page = watch.open(compare(*runs, tmp_path / "both.html"))
    page.evaluate("robokit.stage.look(0, 0.03)")
    seen = page.evaluate("""() => { const { stage, ghost } = robokit, gl = stage.viewer.renderer.getContext();
      stage.viewer.camera.updateMatrixWorld();
      stage.viewer.render();
      const pixel = new Uint8Array(4), { drawingBufferWidth: w, drawingBufferHeight: h } = gl;
      const at = (z) => { const place = ghost.bodies[1].position.clone();
        place.z += z;
        const p = stage.world.localToWorld(place).project(stage.viewer.camera);
        const [x, y] = [0.5 * (1 + p.x) * w, 0.5 * (1 + p.y) * h].map(Math.round);
        gl.readPixels(x, y, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
        return [...pixel]; };
      return [0.15, 0.55, 0.85].map(at); }""")
    assert seen[0][3] > 60  # it is there
    np.testing.assert_allclose(seen[0], seen[2], atol=6)
    np.testing.assert_allclose(seen[1], seen[2], atol=6)
    watch.judge()
