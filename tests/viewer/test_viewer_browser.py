"""The page in a real browser: what is promised to be seen, moved and clicked is.

Screenshots go to the test's folder.
"""

from __future__ import annotations

import numpy as np
import pytest
import waiting
from viewer_cases import EVIL, made_up_motion, pendulum, zoo

from robokit.viewer import Viewer, write_page
from robokit.viewer.scene import body_poses

pytestmark = pytest.mark.browser

# Counts the opaque pixels (the robot; ground and background are not) and says where they are, both in the
# pixels of the page, of which one of the picture may cover several.
PIXELS = """() => {
  const { stage } = window.robokit, one = 1 / stage.viewer.renderer.getPixelRatio();
  stage.viewer.render();
  const gl = stage.viewer.renderer.domElement;
  const copy = document.createElement('canvas');
  copy.width = gl.width; copy.height = gl.height;
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(gl, 0, 0);
  const { data } = pen.getImageData(0, 0, copy.width, copy.height);
  let n = 0, sx = 0, sy = 0, left = 1e9, right = -1, top = 1e9, bottom = -1;
  for (let k = 3, i = 0; k < data.length; k += 4, i++) {
    if (data[k] < 252) continue;
    const x = i % copy.width, y = Math.floor(i / copy.width);
    n += 1; sx += x; sy += y;
    left = Math.min(left, x); right = Math.max(right, x);
    top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  return { n: n * one * one, x: one * sx / n, y: one * sy / n,
    left: one * left, right: one * (right + 1) - 1, top: one * top, bottom: one * (bottom + 1) - 1,
    width: one * copy.width, height: one * copy.height };
}"""

# Elements whose text is cut off, and pairs of controls that lie over one another.
LAYOUT = """() => {
  const shown = (e) => e.offsetParent !== null && e.getClientRects().length > 0;
  const cut = [...document.querySelectorAll('button, h1, h2, dt, dd, .segments, #clock, .value, #facts')]
    .filter((e) => shown(e) && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 3))
    .map((e) => e.textContent);
  const boxes = [...document.querySelectorAll('button, select, #facts, #name, #strip div, #clock, .track')]
    .filter((e) => shown(e) && !e.closest('.panel'))
    .map((e) => [e.textContent || e.className, e.getBoundingClientRect()]);
  const over = [];
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const across = p.left < q.right - 1 && q.left < p.right - 1;
    if (across && p.top < q.bottom - 1 && q.top < p.bottom - 1) over.push([a, b]);
  }));
  const outside = boxes.filter(([, p]) => p.right > innerWidth + 1 || p.bottom > innerHeight + 1)
    .map(([a]) => a);
  return { cut, over, outside, scrolls: document.documentElement.scrollWidth > innerWidth };
}"""


LIT = "() => [...robokit.stage.lit]"

# Fewer pixels, and shadows only for who looks at the picture, coarse ones: a processor draws them.
SMALL_PICTURE = """(() => Object.defineProperty(window, 'robokit', { configurable: true, set(page) {
  Object.defineProperty(window, 'robokit', { value: page, writable: true, configurable: true });
  if (!page.stage) return;
  const { stage } = page;
  stage.sharp = SHARP;
  stage.viewer.renderer.shadowMap.enabled = SHADOWS;
  stage.key.shadow.mapSize.set(256, 256);
  stage.viewer.renderer.setPixelRatio(stage.sharp);
  stage.viewer.set_3d_pane_size();
} }))()"""


def until(page, condition):
    """Wait for a condition; the page's own policy forbids Playwright's way, which evaluates text in it."""
    waiting.until(lambda: page.evaluate(condition) or page.wait_for_timeout(30), condition, pause=0.0)


def drawn(page):
    """Wait until the page has been drawn with what was done before, and its transitions are over."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    until(page, "document.getAnimations().every((one) => !(one instanceof CSSTransition))")


class Watch:
    """A page whose console and requests are kept, to be judged when the test is over.

    picture: whether the test looks at the picture of the scene.
    """

    def __init__(self, browser, size=(1280, 800), picture=False):
        self.page = browser.contexts[0].new_page()
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        sharp, shadows = ("0.5", "true") if picture else ("0.2", "false")
        self.page.add_init_script(SMALL_PICTURE.replace("SHARP", sharp).replace("SHADOWS", shadows))
        self.errors, self.requests = [], []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))

    def open(self, path):
        self.requests.clear()
        self.page.goto(path.as_uri())
        until(self.page, "window.robokit !== undefined")
        return self.page

    def check(self):
        """Judge what was seen since it was opened; the next page must not find what this one remembers."""
        self.page.evaluate("try { localStorage.clear(); } catch { }")
        errors, self.errors[:] = self.errors[:], []
        assert errors == []
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert outside == [] and sum(url.startswith("file:") for url in self.requests) == 1

    def judge(self):
        self.check()
        self.page.close()


@pytest.fixture
def watch(chromium):
    made = Watch(chromium)
    yield made
    made.judge()


@pytest.fixture
def picture(chromium):
    made = Watch(chromium, picture=True)
    yield made
    made.judge()


@pytest.fixture(scope="module")
def fall_page(fall, tmp_path_factory):
    return write_page(fall, tmp_path_factory.mktemp("page") / "fall.html")


@pytest.fixture(scope="module")
def tab(chromium):
    made = Watch(chromium)
    yield made
    made.page.close()


@pytest.fixture
def page(tab, fall_page):
    """The page of the fall, opened anew in the tab that the tests share."""
    yield tab.open(fall_page)
    tab.check()


def time_of(page):
    return page.evaluate("robokit.timeline.time")


def seek(page, at):
    page.evaluate(f"robokit.timeline.seek({at})")


@pytest.mark.parametrize("size", [(1280, 800), (1600, 900), (1920, 1080)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_whole_motion_is_in_the_picture(chromium, fall_page, size):
    watch = Watch(chromium, size, picture=True)
    page = watch.open(fall_page)
    for at in (0.0, 1.0, 2.0):
        seek(page, at)
        seen = page.evaluate(PIXELS)
        assert seen["n"] > 0.008 * seen["width"] * seen["height"]
        assert seen["left"] > 5 and seen["right"] < seen["width"] - 5
        assert seen["top"] > 5 and seen["bottom"] < seen["height"] - 5
    watch.judge()


def test_scrubbing_moves_the_robot(picture, fall_page):
    page = picture.open(fall_page)
    before = page.evaluate(PIXELS)
    track = page.locator("#scrub").bounding_box()
    page.mouse.move(track["x"] + 10, track["y"] + 8)
    page.mouse.down()
    page.mouse.move(track["x"] + 0.9 * track["width"], track["y"] + 8, steps=4)
    page.mouse.up()
    assert 1.6 < time_of(page) < 2.0
    after = page.evaluate(PIXELS)
    assert abs(after["y"] - before["y"]) > 30
    assert page.locator("#clock").inner_text().startswith("1.")


def test_play_advances_pauses_and_ends(page):
    page.get_by_role("button", name="Play").click()
    until(page, "robokit.timeline.time > 0.2")
    # The button keeps the focus: the space bar is still one toggle, not two.
    page.keyboard.press("Space")
    until(page, "!robokit.timeline.playing")
    stopped = time_of(page)
    page.wait_for_timeout(150)
    assert time_of(page) == stopped
    page.select_option("#speed", "4")
    page.keyboard.press("Space")
    until(page, "!robokit.timeline.playing")
    assert time_of(page) == pytest.approx(2.0, abs=1e-5)


def test_it_loops_when_asked(page):
    page.keyboard.press("l")
    seek(page, 1.95)
    page.keyboard.press("Space")
    until(page, "robokit.timeline.time < 1")
    assert page.evaluate("robokit.timeline.playing")


def test_keys_step_through_frames(page):
    page.keyboard.press("ArrowRight")
    assert time_of(page) == pytest.approx(1 / 60, abs=2e-3)
    page.keyboard.press("Shift+ArrowRight")
    assert time_of(page) == pytest.approx(11 / 60, abs=2e-3)
    page.keyboard.press("ArrowLeft")
    assert time_of(page) == pytest.approx(10 / 60, abs=2e-3)
    page.keyboard.press("End")
    assert time_of(page) == pytest.approx(2.0, abs=1e-5)
    page.keyboard.press("Home")
    assert time_of(page) == 0.0


@pytest.mark.parametrize("which", [0, 1], ids=["energy", "second"])
def test_a_click_on_a_plot_seeks(page, which):
    box = page.locator(".u-over").nth(which).bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert time_of(page) == pytest.approx(1.0, abs=0.01)
    line = page.locator(".playhead").nth(which).bounding_box()
    assert line["x"] == pytest.approx(box["x"] + 0.5 * box["width"], abs=2)


def test_the_legend_reads_the_curves_at_the_time(page, fall):
    seek(page, 1.0)
    shown = [
        text.replace("\n", " ") for text in page.locator(".legend").first.locator("button").all_inner_texts()
    ]
    assert shown[-1] == "total 500.0"
    assert float(shown[0].split()[1]) == pytest.approx(40 * np.exp(-1), abs=0.1)


def test_every_curve_can_be_chosen_and_hidden(page):
    which = page.locator("select.which").nth(1)
    for name in which.locator("option").all_inner_texts():
        which.select_option(name)
        assert page.locator(".plot").nth(1).locator("canvas").count() == 1
    hide = page.locator(".legend").first.get_by_role("button", name="total")
    hide.click()
    assert hide.get_attribute("aria-pressed") == "false"


def test_the_pattern_names_its_joints_and_lights_their_path(page, humanoid):
    page.get_by_role("tab", name="Structure").click()
    n = humanoid.nv
    box = page.locator("#matrix").bounding_box()

    def point(i, j):
        page.mouse.move(box["x"] + (j + 0.5) * box["width"] / n, box["y"] + (i + 0.5) * box["height"] / n)
        return page.locator("#cell").inner_text()

    left, right = (humanoid.joint(f"{side}_knee").v_slice.start for side in ("left", "right"))
    hip = humanoid.joint("left_hip_pitch").v_slice.start
    assert "floating_base" in point(0, 0)
    text = point(left, right)
    assert "left_knee × right_knee" in text and "neither carries the other" in text
    text = point(hip, left)
    assert "left_hip_pitch carries left_knee" in text
    page.mouse.click(
        *[
            c + 0.0
            for c in (box["x"] + (left + 0.5) * box["width"] / n, box["y"] + (hip + 0.5) * box["height"] / n)
        ]
    )
    page.mouse.move(10, 400)
    assert "carries" in page.locator("#cell").inner_text()
    assert len(page.evaluate(LIT)) > 0
    page.get_by_role("button", name="L of Cholesky").click()
    assert "fill-in" in page.locator(".figures").inner_text()


def test_the_tree_lights_a_subtree(page, humanoid):
    page.get_by_role("tab", name="Structure").click()
    body = humanoid.joint("left_hip_pitch").body
    page.locator(".row").nth(body).scroll_into_view_if_needed()
    page.locator(".row").nth(body).hover()
    expected = len(humanoid.tree.subtree[body])
    assert page.locator(".row.lit, .row.under").count() == expected
    assert f"λ = {humanoid.tree.parent[body]}" in page.locator("#sets").inner_text()
    lit = page.evaluate(LIT)
    assert set(lit) <= set(humanoid.tree.subtree[body]) and body in lit


def test_overlays_change_the_picture_and_go_away_again(picture, fall_page):
    page = picture.open(fall_page)
    seek(page, 1.0)
    buttons = page.locator("#switches button")
    assert buttons.count() == 10
    for k in range(buttons.count()):
        before = page.locator("#canvas").screenshot()
        buttons.nth(k).click()
        waiting.until(
            lambda before=before: page.locator("#canvas").screenshot() != before, buttons.nth(k).inner_text()
        )
        buttons.nth(k).click()
        drawn(page)


def test_sliders_pose_the_robot_and_the_motion_takes_over_again(page):
    page.get_by_role("tab", name="Joints").click()
    before = page.evaluate("robokit.stage.bodies.map((b) => b.position.toArray())")
    slider = page.get_by_role("slider", name="left_hip_pitch")
    slider.focus()
    for _ in range(3):
        slider.press("PageUp")
    moved = page.evaluate("robokit.stage.bodies.map((b) => b.position.toArray())")
    assert not np.allclose(before, moved, atol=1e-3)
    page.get_by_role("button", name="Back to the motion").click()
    assert np.allclose(before, page.evaluate("robokit.stage.bodies.map((b) => b.position.toArray())"))


def test_the_pages_kinematics_are_robokits(watch, tmp_path):
    robot = zoo()
    page = watch.open(write_page(robot, tmp_path / "zoo.html"))
    for seed in range(4):
        q = robot.random_configuration(seed)
        poses = np.reshape(page.evaluate(f"robokit.forwardKinematics({q.tolist()})"), (-1, 7))
        expected = body_poses(robot, q[None])[0, 1:]
        assert np.allclose(poses[:, :3], expected[:, :3], atol=1e-5)
        assert np.allclose(np.abs(np.sum(poses[:, 3:] * expected[:, 3:], axis=1)), 1.0, atol=1e-6)


def test_a_pose_page_has_sliders_and_no_timeline(picture, humanoid, tmp_path):
    page = picture.open(write_page(humanoid, tmp_path / "pose.html"))
    assert not page.locator("#timeline").is_visible()
    assert page.locator(".joint input").count() == sum(j.kind != "floating" for j in humanoid.joints)
    assert page.evaluate(PIXELS)["n"] > 5000
    assert page.evaluate(LAYOUT) == {"cut": [], "over": [], "outside": [], "scrolls": False}


def test_a_robot_without_shapes_is_still_seen(picture, tmp_path):
    page = picture.open(write_page(pendulum(), tmp_path / "bare.html"))
    assert page.evaluate(PIXELS)["n"] > 2000


def test_names_are_shown_and_never_run(watch, shapes, tmp_path):
    robot = pendulum(name=EVIL, links=(EVIL, "a & b < c"), shapes=shapes)
    page = watch.open(write_page(made_up_motion(robot, duration=0.2), tmp_path / "evil.html"))
    page.locator("#switches").get_by_role("button", name="Names").click()
    for tab in ("Joints", "Structure"):
        page.get_by_role("tab", name=tab).click()
    page.locator(".row").nth(1).hover()
    page.wait_for_timeout(200)
    assert page.evaluate("window.pwned") is None
    assert page.locator("#name").inner_text() == EVIL == page.title()
    assert page.locator(".row .body").nth(2).inner_text() == "a & b < c"


def test_a_run_that_stopped_early_has_a_banner(watch, humanoid, tmp_path):
    motion = made_up_motion(humanoid)
    motion.summary["stopped"] = {
        "time": 0.25,
        "reason": f"The energy of body {EVIL!r} grew a thousandfold.",
        "remedy": "Take a smaller step: dt=0.0005.",
    }
    page = watch.open(write_page(motion, tmp_path / "stopped.html"))
    banner = page.get_by_role("alert")
    assert banner.is_visible()
    assert banner.inner_text().startswith("Stopped at 0.250 s. The energy of body")
    assert EVIL in banner.inner_text() and banner.inner_text().endswith("dt=0.0005.")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate(LAYOUT) == {"cut": [], "over": [], "outside": [], "scrolls": False}
    page.get_by_role("button", name="Light or dark").click()
    assert banner.is_visible() and page.evaluate(LAYOUT)["cut"] == []


def test_a_run_that_ended_in_time_has_no_banner(page):
    assert page.get_by_role("alert").count() == 0


def test_numbers_of_a_run_that_exploded_fit_on_the_page(watch, humanoid, tmp_path):
    motion = made_up_motion(humanoid)
    motion.energy.kinetic[-3:] = -1.5e17
    motion.summary["energy_balance"] = 1.5e17
    page = watch.open(write_page(motion, tmp_path / "exploded.html"))
    page.keyboard.press("End")
    assert "1.5·10¹⁷ J" in page.locator("#strip").inner_text()
    assert "−1.5·10¹⁷" in page.locator(".legend").first.inner_text()
    assert page.evaluate(LAYOUT) == {"cut": [], "over": [], "outside": [], "scrolls": False}


def test_both_themes(page):
    page.get_by_role("button", name="Light or dark").click()
    until(page, "getComputedStyle(document.body).backgroundColor === 'rgb(18, 21, 28)'")


def at_rest(page):
    """The picture, once it no longer changes."""
    seen = [page.screenshot(), page.wait_for_timeout(600)]
    waiting.until(lambda: seen[-1] == page.screenshot() or seen.append(page.screenshot()), pause=0.3)
    return seen[-1]


def test_the_live_view_draws_the_robot(chromium, shapes):
    with Viewer(pendulum(shapes=shapes)) as viewer:
        viewer.show(open_browser=False)
        page = chromium.new_page(viewport={"width": 800, "height": 600})
        page.set_default_timeout(1e3 * waiting.PATIENCE)
        errors = []
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.goto(viewer.url)
        still = at_rest(page)
        viewer.display(np.array([0.8, -0.5]))
        waiting.until(lambda: page.screenshot() != still)
        posed = at_rest(page)
        viewer.play(made_up_motion(viewer.robot, duration=8.0))
        waiting.until(lambda: page.screenshot() != posed)
        one = page.screenshot()
        waiting.until(lambda: page.screenshot() != one)
        assert errors == []
        page.close()
