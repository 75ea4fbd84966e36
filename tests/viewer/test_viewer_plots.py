"""The plots in a real browser: what they show is what Python says, and the hand on one moves them all."""

from __future__ import annotations

import numpy as np
import pytest
from test_viewer_browser import Watch
from viewer_cases import made_up_motion, pendulum, zoo

import robokit as rk
from robokit.model import Box, Shape
from robokit.viewer import write_page

pytestmark = pytest.mark.browser

LEGEND = """(k) => Object.fromEntries([...document.querySelectorAll('.legend')[k].querySelectorAll('button')]
  .map((b) => [b.querySelector('em').textContent, b.querySelector('b').textContent]))"""

# The labels of a plot's y axis, and whether each has room [px].
LABELS = """(k) => {
  const { chartObject } = robokit.plots[k];
  const axis = chartObject.axes[1], pen = document.createElement('canvas').getContext('2d');
  pen.font = "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const shown = axis._values.filter((text) => text !== null);
  return { shown, fit: shown.every((text) => pen.measureText(text).width <= axis._size - 8) };
}"""


def value(text: str) -> float:
    """The number of a text as the page writes it."""
    text = text.replace("−", "-").replace(" ", "").replace(" ", "").replace("\u202f", "")
    if "·10" in text:
        mantissa, power = text.split("·10")
        text = f"{mantissa}e{power.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}"
    return float(text)


def legend(page, k):
    """What is in the legend of a plot that is drawn in the next frame."""
    page.wait_for_function(f"() => !Object.values(({LEGEND})({k})).includes('–')")
    return page.evaluate(LEGEND, k)


@pytest.fixture(scope="module")
def run():
    """A box with a flap and a slide falls and turns for a moment; its joints meet their limits."""
    inertia = np.diag([0.01, 0.02, 0.03])
    b = rk.ModelBuilder("box").link("box", 2.0, inertia=inertia, collisions=(Shape(Box((0.2, 0.3, 0.4))),))
    b.link("flap", 0.5, (0.0, 0.0, 0.1), 0.1 * inertia).link("slide", 0.2, (0.0, 0.0, 0.0), 0.1 * inertia)
    b.joint(
        "hinge", "revolute", "box", "flap", axis=(0, 1, 0), damping=0.01, lower=-0.4, upper=0.3, velocity=5.0
    )
    b.joint("rail", "prismatic", "flap", "slide", axis=(0, 0, 1), lower=-0.05, upper=0.05, effort=20.0)
    robot = b.build("floating")
    q = robot.configuration((0.0, 0.0, 0.5), (0.9659258262890683, 0.2588190451025207, 0.0, 0.0))
    v = np.array([0.7, -0.4, 0.5, 0.6, 0.3, -0.5, 1.0, 0.0])
    return rk.simulate(robot, q, v, duration=1.0, dt=1e-3, ground=True)


@pytest.fixture(scope="module")
def opened(chromium, run, tmp_path_factory):
    watch = Watch(chromium)
    yield watch.open(write_page(run, tmp_path_factory.mktemp("plots") / "box.html"))
    watch.judge()


@pytest.fixture
def page(opened):
    """The page as it opens."""
    opened.get_by_role("tab", name="Curves").click()
    opened.mouse.move(300, 300)
    opened.evaluate(
        "robokit.curves.window.reset(); robokit.timeline.seek(0.4);"
        "robokit.curves.show('energy', 0); robokit.curves.show('force', 1)"
    )
    return opened


def place(page, which, at, y=0.5):
    """Pixels of a time, or of a time and a value, in a plot."""
    box = page.locator(".u-over").nth(which).bounding_box()
    x = box["x"] + page.evaluate(f"robokit.plots[{which}].chartObject.valToPos({at}, 'x')")
    return x, box["y"] + y * box["height"]


def window(page):
    return page.evaluate("[robokit.curves.window.from, robokit.curves.window.to]")


def test_values_under_the_pointer_are_those_of_the_run(page, run):
    page.mouse.move(*place(page, 1, 0.7321, 0.05))  # above the peaks beside it
    energy, force = page.evaluate(LEGEND, 0), page.evaluate(LEGEND, 1)
    at = page.evaluate("robokit.plots[0].pointed")
    assert at == pytest.approx(0.7321, abs=0.003)
    assert page.locator(".peak-tip:visible").inner_text() == f"{at:.3f} s"
    for name in ("kinetic", "potential", "dissipated", "total"):
        expected = np.interp(at, run.t, getattr(run.energy, name))
        assert value(energy[name]) == pytest.approx(expected, abs=0.06, rel=2e-3), name
    steps = run.step_forces
    expected = steps.total[np.searchsorted(steps.t, at)]
    assert value(force["z"]) == pytest.approx(expected[2], rel=0.02, abs=0.1)
    page.mouse.move(300, 300)
    assert page.locator(".pointed:visible").count() == 0
    assert value(page.evaluate(LEGEND, 0)["kinetic"]) == pytest.approx(
        np.interp(0.4, run.t, run.energy.kinetic), rel=2e-3
    )


def test_the_peak_is_that_of_the_steps_and_a_click_goes_there(page, run):
    sizes = np.linalg.norm(run.step_forces.total, axis=1)
    time = run.step_forces.t[sizes.argmax()] - 0.5e-3
    button = page.locator(".largest").nth(1)
    assert value(button.locator("b").inner_text()) == pytest.approx(sizes.max(), rel=5e-4)
    assert button.inner_text().endswith(f"at {time:.4f} s")
    button.click()
    assert page.evaluate("robokit.timeline.time") == pytest.approx(time, abs=1e-6)
    assert value(page.evaluate(LEGEND, 1)["size"]) == pytest.approx(sizes.max(), rel=5e-4)


def test_the_pointer_jumps_to_a_peak_that_is_near(page, run):
    sizes = np.linalg.norm(run.step_forces.total, axis=1)
    time = run.step_forces.t[sizes.argmax()] - 0.5e-3
    x, _ = place(page, 1, time)
    top = page.evaluate(f"robokit.plots[1].chartObject.valToPos({sizes.max()}, 'y')")
    page.mouse.move(x + 5, page.locator(".u-over").nth(1).bounding_box()["y"] + top + 4)
    tip = page.locator(".peak-tip:visible").inner_text()
    assert tip.startswith("size ") and tip.endswith(" s")
    size, at = tip.removeprefix("size ").removesuffix(" s").split(" at ")
    assert float(at) == pytest.approx(time, abs=6e-4)  # the middle of a step, rounded to ms up or down
    assert value(size) == pytest.approx(sizes.max(), abs=0.06)
    assert page.locator(".peak-dot:visible").count() == 1
    page.mouse.down()
    page.mouse.up()
    assert page.evaluate("robokit.timeline.time") == pytest.approx(time, abs=1e-6)


def test_one_zoom_for_all_plots(page):
    page.mouse.move(*place(page, 0, 0.5))
    before = page.evaluate("robokit.plots[0].pointed")
    page.mouse.wheel(0, -700)
    start, end = window(page)
    assert end - start == pytest.approx(np.exp(-1.05), rel=1e-3)
    assert page.evaluate("robokit.plots[0].pointed") == pytest.approx(before, abs=0.01)
    scales = "robokit.plots.map((p) => [p.chartObject.scales.x.min, p.chartObject.scales.x.max])"
    assert page.evaluate(scales) == [[start, end], [start, end]]
    marked, track = (page.locator(name).bounding_box() for name in ("#zoomed", "#profile"))
    assert marked["x"] - track["x"] == pytest.approx(start * track["width"], abs=2)
    assert marked["width"] == pytest.approx((end - start) * track["width"], abs=2)
    # Shift and a drag moves it, a drag chooses a part of it, a double click shows all.
    x, y = place(page, 1, 0.5)
    page.keyboard.down("Shift")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert window(page)[0] < start - 0.02 and np.diff(window(page)) == pytest.approx(end - start)
    page.evaluate("robokit.curves.window.reset()")
    held = page.evaluate("robokit.timeline.time")
    page.mouse.move(*place(page, 1, 0.6))
    page.mouse.down()
    page.mouse.move(*place(page, 1, 0.8), steps=4)
    assert page.locator(".marquee:visible").count() == 1
    page.mouse.up()
    assert window(page) == pytest.approx([0.6, 0.8], abs=0.005)
    assert page.evaluate("robokit.timeline.time") == held and page.locator(".marquee:visible").count() == 0
    page.mouse.dblclick(*place(page, 1, 0.7))
    assert window(page) == [0, 1]
    assert not page.locator("#zoomed").is_visible()


def test_the_part_that_is_shown_follows_the_time(page):
    page.evaluate("robokit.curves.window.set(0.1, 0.3); robokit.timeline.seek(0.6)")
    start, end = window(page)
    assert start < 0.6 < end and end - start == pytest.approx(0.2)


def test_force_by_link(page, run):
    page.evaluate("robokit.curves.show('links', 1)")
    at = page.evaluate("robokit.timeline.time")
    steps = run.step_forces
    (name, text), *rest = page.evaluate(LEGEND, 1).items()
    assert (name, rest) == ("box", [])
    expected = np.linalg.norm(steps.force[np.searchsorted(steps.t, at - 1e-6), 0])
    assert value(text) == pytest.approx(expected, rel=1e-2, abs=0.06)


def test_several_joints_with_their_limits(page, run):
    page.get_by_role("tab", name="Joints").click()
    page.get_by_role("button", name="Plot rail").click()
    page.get_by_role("tab", name="Curves").click()
    assert page.locator("select.which").nth(1).input_value() == "joint"
    at = page.evaluate("robokit.timeline.time")
    shown = legend(page, 1)
    for name in ("hinge", "rail"):
        expected = np.interp(at, run.t, run.q[:, run.robot.joint(name).q_slice.start])
        assert value(shown[name]) == pytest.approx(expected, abs=1e-3)
    lines = "robokit.plots[1].graph.lines.map((l) => [l.name, l.low ?? null, l.high ?? null])"
    assert page.evaluate(lines) == [["hinge", -0.4, 0.3], ["rail", -0.05, 0.05]]
    assert page.locator(".plot .unit").nth(1).inner_text() == "rad, m"
    # The limits are in the picture, shaded beyond.
    low, high = page.evaluate("robokit.plots[1].range()")
    assert low < -0.4 and high > 0.3
    page.locator(".tools").get_by_role("button", name="v", exact=True).click()
    assert page.evaluate(lines) == [["hinge", -5, 5], ["rail", None, None]]
    expected = np.interp(at, run.t, run.v[:, run.robot.joint("hinge").v_slice.start])
    assert value(legend(page, 1)["hinge"]) == pytest.approx(expected, abs=0.03)
    # The picker: search, choose, close.
    page.locator(".tools button[aria-haspopup]").click()
    page.get_by_role("searchbox", name="Search joints").fill("HIN")
    assert page.locator(".picks label:visible").all_inner_texts() == ["hinge"]
    page.locator(".picks label:visible").click()
    page.keyboard.press("Escape")
    assert not page.locator(".picker").is_visible()
    assert list(legend(page, 1)) == ["rail"]


def test_places_turns_and_velocities_of_points_of_links_are_pythons(chromium, tmp_path):
    robot = zoo()
    motion = made_up_motion(robot, duration=0.2)
    rng = np.random.default_rng(3)
    motion.q[:] = [robot.random_configuration(rng) for _ in motion.t]
    motion.v[:] = rng.normal(size=motion.v.shape)
    watch = Watch(chromium)
    page = watch.open(write_page(motion, tmp_path / "zoo.html", max_fps=1000.0))
    places = rk.forward_kinematics(robot, motion.q)
    point = np.array([0.3, -0.2, 0.5])
    for link in robot.links:
        J, place = rk.link_jacobian(robot, motion.q, link.name), places[link.name]
        twist = np.einsum("tij,tj->ti", J, motion.v)
        for at in (np.zeros(3), point):
            got = page.evaluate(
                "([name, at]) => robokit.curves.graphs.moving.link(name, at)", [link.name, at.tolist()]
            )
            arm = place[0] @ at
            parts = {"position": place[1] + arm, "angular": twist[:, :3]}
            parts["linear"] = twist[:, 3:] + np.cross(twist[:, :3], arm)
            for part, rows in parts.items():
                np.testing.assert_allclose(
                    np.transpose(got[part]), rows, rtol=1e-4, atol=3e-4, err_msg=link.name
                )
            roll, pitch, yaw = np.array(got["orientation"])
            R = [turn("z", c) @ turn("y", b) @ turn("x", a) for a, b, c in zip(roll, pitch, yaw, strict=True)]
            np.testing.assert_allclose(R, place[0], atol=1e-5, err_msg=link.name)
            assert max(np.abs(np.diff(angle)).max() for angle in (roll, yaw)) <= np.pi + 1e-9
    page.get_by_role("tab", name="Curves").click()
    page.evaluate("robokit.curves.show('link', 1); robokit.selection.select(7); robokit.timeline.seek(0.1)")
    name = page.evaluate("robokit.selection.link")
    plot = page.locator(".plot").nth(1)
    assert plot.get_by_label("Link", exact=True).input_value() == name
    k = int(np.argmin(np.abs(motion.t - 0.1)))
    field = plot.get_by_label("Point in the link's axes")
    field.fill("0.3, -0.2 0.5")
    shown = page.evaluate(LEGEND, 1)
    expected = places[name][1][k] + places[name][0][k] @ point
    assert [value(shown[axis]) for axis in "xyz"] == pytest.approx(expected, abs=2e-3)
    field.fill("0.3 up")
    assert field.get_attribute("aria-invalid") == "true"
    assert page.evaluate(LEGEND, 1) == shown
    plot.get_by_role("button", name="velocity", exact=True).click()
    plot.get_by_label("Link", exact=True).select_option("revolute")
    moving = rk.link_jacobian(robot, motion.q[k], "revolute") @ motion.v[k]
    arm = places["revolute"][0][k] @ point
    shown = page.evaluate(LEGEND, 1)
    expected = moving[3:] + np.cross(moving[:3], arm)
    assert [value(shown[axis]) for axis in "xyz"] == pytest.approx(expected, abs=2e-3)
    watch.judge()


def turn(axis, angle):
    """The rotation about a coordinate axis."""
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i], R[i, j] = np.sin(angle), -np.sin(angle)
    return R


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1.0, 1e4, 1e9])
def test_labels_fit_at_any_size(page, scale, offset):
    page.evaluate(
        "([scale, offset]) => robokit.plots[0].draw({ title: '', unit: '', x: [0, 0.5, 1],"
        " lines: [{ name: 'one', y: [-5, 0, 5].map((y) => scale * (y + offset)) }] })",
        [scale, offset],
    )
    labels = page.evaluate(LABELS, 0)
    assert labels["fit"] and len(labels["shown"]) >= 3
    assert len(set(labels["shown"])) == len(labels["shown"])
    numbers = [value(text.replace("k", "e3")) for text in labels["shown"]]
    assert max(numbers) == pytest.approx(scale * (5 + offset), abs=3 * scale)
    assert min(numbers) == pytest.approx(scale * (offset - 5), abs=3 * scale)


def test_a_run_that_blew_up_does_not_flatten_what_was_before(chromium, tmp_path):
    motion = made_up_motion(pendulum(), duration=1.0)
    motion.energy.kinetic[-4:] = [1e9, 1e15, 1.5e17, np.inf]
    watch = Watch(chromium)
    page = watch.open(write_page(motion, tmp_path / "blown.html"))
    page.get_by_role("tab", name="Curves").click()
    assert page.evaluate("robokit.plots[0].range()")[1] < 2000
    cut = page.locator(".cut:visible").first
    assert cut.inner_text() == "cut; reaches 1.5·10¹⁷"
    cut.click()
    assert page.evaluate("robokit.plots[0].range()")[1] > 1e17
    assert page.evaluate(LABELS, 0)["fit"]
    watch.judge()


@pytest.mark.parametrize("size", [(1024, 600), (390, 844)])
def test_plots_are_high_enough(chromium, run, tmp_path, size):
    watch = Watch(chromium, size)
    page = watch.open(write_page(run, tmp_path / "small.html"))
    page.get_by_role("tab", name="Curves").click()
    # A busy machine draws the tab before it lays the plots out.
    page.wait_for_function(
        "[0, 1].every((k) => document.querySelectorAll('.u-over')[k].getBoundingClientRect().height >= 120)"
    )
    watch.judge()
