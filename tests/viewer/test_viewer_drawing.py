"""How much is drawn, counted by three.js: a few calls for any robot; and how large the robot looks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_viewer_browser import PIXELS, Watch
from viewer_cases import made_up_motion

import robokit as rk
from robokit.model import Capsule, ModelBuilder, Placement, Shape
from robokit.robot_names import example_robots
from robokit.viewer import write_page

pytestmark = pytest.mark.browser

CALLS = """() => {
  const { viewer } = robokit.stage;
  viewer.render();
  return viewer.renderer.info.render.calls;
}"""


def chain(bodies):
    """A hanging chain; neighbours have different colours."""
    b = ModelBuilder("chain").link("base")
    above = "base"
    for k in range(bodies):
        rod = Capsule(0.02, 0.1)
        tint = (0.9, 0.4, 0.1, 1.0) if k % 2 else (0.1, 0.4, 0.9, 1.0)
        shape = Shape(rod, Placement(position=np.array([0.0, 0.0, -0.05])), rgba=tint)
        b.link(f"link_{k}", 1.0, (0, 0, -0.05), np.eye(3) * 1e-3, visuals=(shape,))
        place = Placement(position=np.array([0.0, 0.0, -0.1 if k else 0.0]))
        b.joint(f"joint_{k}", "revolute", above, f"link_{k}", placement=place, axis=(0, 1, 0))
        above = f"link_{k}"
    return b.build(base="fixed")


@pytest.fixture(scope="module")
def opened(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawing")
    watch = Watch(chromium, picture=True)

    def show(source):
        path = write_page(source, folder / "page.html", max_triangles=300)
        return watch.open(path)

    yield show
    watch.judge()


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_draw_calls_are_at_most_twice_the_bodies(opened, name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    page = opened(made_up_motion(robot, duration=0.2))
    assert 5 < page.evaluate(CALLS) <= 2 * robot.nbodies
    page.evaluate("robokit.stage.light(new Set([1, 2]))")
    assert page.evaluate(CALLS) <= 2 * robot.nbodies


def test_draw_calls_do_not_grow_with_the_robot_and_links_are_told_apart(opened):
    page = opened(chain(60))
    assert page.evaluate(CALLS) < 20
    where = """(k) => {
      const { stage } = robokit, box = stage.host.getBoundingClientRect();
      const middle = stage.roles.visual[k].localToWorld(new MeshCat.THREE.Vector3());
      middle.project(stage.viewer.camera);
      const at = [box.left + 0.5 * (1 + middle.x) * box.width, box.top + 0.5 * (1 - middle.y) * box.height];
      return stage.nodeAt(...at).link;
    }"""
    for k in (0, 37, 59):
        assert page.evaluate(where, k) == f"link_{k}"


def height(page):
    seen = page.evaluate(PIXELS)
    return (seen["bottom"] - seen["top"]) / seen["height"]


def test_after_a_drop_of_50_m_the_camera_has_gone_with_the_robot(opened, humanoid):
    motion = made_up_motion(humanoid, duration=3.3)
    motion.q[:, 6] = np.maximum(50.95 - 0.5 * 9.81 * motion.t**2, 0.95)
    page = opened(motion)
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "true"
    for at in (0.0, 1.5, 3.3):
        page.evaluate(f"robokit.timeline.seek({at})")
        assert height(page) > 0.25, at


def test_a_robot_that_stays_is_not_followed(opened, fall):
    page = opened(fall)
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "false"
    assert height(page) > 0.5


def test_a_run_that_blew_up_is_framed_on_its_sound_part(opened, humanoid):
    motion = made_up_motion(humanoid)
    motion.q[150:, 4] = np.exp(np.arange(len(motion.t) - 150))
    page = opened(motion)
    assert height(page) > 0.25
    page.evaluate("robokit.timeline.seek(robokit.motion.duration)")
    assert height(page) > 0.25


@pytest.mark.parametrize("name", ["icub", "iris"])
def test_robots_of_others_are_large_in_the_picture_and_take_few_calls(opened, name):
    if not example_robots():
        pytest.skip("example-robot-data is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"))
        page = opened(robot)
    assert height(page) > 0.25
    assert page.evaluate(CALLS) <= 2 * robot.nbodies + 5
