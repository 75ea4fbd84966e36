"""The camera that follows, the robot as glass, and the frames of contacts."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from test_viewer_browser import PIXELS, Watch, until
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.errors import UnknownName, WrongType
from robokit.model import Box, Shape, Sphere
from robokit.viewer import write_film, write_page, write_picture

pytestmark = pytest.mark.browser

# Where the frame of a link is in the view, from its middle to its edge as -1 to 1.
SEEN = """(name) => { const { stage, data } = robokit, link = data.links.find((link) => link.name === name);
  const { THREE } = MeshCat, body = stage.bodies[link.body];
  stage.world.updateMatrixWorld(true); stage.viewer.camera.updateMatrixWorld(true);
  const at = body.localToWorld(new THREE.Vector3().fromArray(link.pose)).project(stage.viewer.camera);
  return [at.x, at.y]; }"""


@pytest.fixture(scope="module")
def swing():
    return made_up_motion(pendulum(shapes=(Shape(Box((0.05, 0.05, 0.4))),)), duration=2.0)


@pytest.fixture(scope="module")
def followed(chromium, swing, tmp_path_factory):
    watch = Watch(chromium, picture=True)
    path = write_page(swing, tmp_path_factory.mktemp("cameras") / "swing.html", walk=False, follow="lower")
    page = watch.open(path)
    page.evaluate("robokit.opening.stop()")
    yield page
    watch.judge()


def places(page, name, times=(0.0, 0.5, 1.0, 1.6)):
    found = []
    for time in times:
        page.evaluate(f"robokit.timeline.seek({time})")
        found.append(page.evaluate(SEEN, name))
    return np.array(found)


def test_a_link_that_is_followed_stays_where_it_is_in_the_view(followed):
    assert followed.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "true"
    assert np.ptp(places(followed, "lower"), axis=0).max() < 1e-5
    assert np.ptp(places(followed, "base"), axis=0).max() > 0.05
    # Another link, or the centre of mass, from the list.
    chosen = followed.get_by_label("What the camera follows")
    chosen.select_option(label="base")
    assert np.ptp(places(followed, "base"), axis=0).max() < 1e-5
    chosen.select_option(label="centre of mass")
    assert min(np.ptp(places(followed, name), axis=0).max() for name in ("base", "lower")) > 1e-3
    until(followed, "location.hash.includes('follow=') || location.hash.includes('goes=')")
    followed.get_by_role("button", name="Follow").click()
    assert not chosen.is_visible() and np.ptp(places(followed, "base"), axis=0).max() < 1e-6


def test_the_button_follows_the_link_that_is_selected(followed):
    followed.evaluate("robokit.cameras.follow(false)")
    followed.evaluate("robokit.selection.select(1, 'upper')")
    followed.get_by_role("button", name="Follow").click()
    assert followed.evaluate("robokit.stage.framing.link.name") == "upper"
    assert np.ptp(places(followed, "upper"), axis=0).max() < 1e-5
    followed.evaluate("robokit.selection.select(null)")


def test_the_robot_becomes_glass(followed):
    followed.evaluate("robokit.cameras.follow(false); robokit.timeline.seek(0)")
    solid = followed.evaluate(PIXELS)["n"]
    followed.get_by_label("Opacity of the robot").fill("0.3")
    glass = followed.evaluate(PIXELS)["n"]
    assert glass < 0.2 * solid
    # What lies inside makes it glass, however opaque the reader likes it.
    followed.get_by_label("Opacity of the robot").fill("1")
    assert followed.evaluate(PIXELS)["n"] == solid
    followed.get_by_role("button", name="Inertia").click()
    assert followed.evaluate("robokit.stage.skin.parts[0].material.opacity") < 0.5
    followed.get_by_role("button", name="Inertia").click()
    assert followed.evaluate("robokit.stage.skin.parts[0].material.opacity") == 1


def test_a_film_goes_along(swing, tmp_path):
    made = {}
    for name, follow in (("base", False), ("lower", "lower")):
        path = write_picture(swing, tmp_path / f"{name}.png", 1.0, (160, 120), look="front", follow=follow)
        made[name] = np.asarray(Image.open(path).convert("L")).astype(int)
    assert np.abs(made["base"] - made["lower"]).max() > 40
    page = write_page(swing, tmp_path / "swing.html", walk=False)
    with pytest.raises(UnknownName, match="no link named 'lowr'; did you mean 'lower'"):
        write_film(page, tmp_path / "swing.gif", (160, 120), follow="lowr")
    with pytest.raises(WrongType, match="follow: expected None for a robot that does not move"):
        write_picture(swing.robot, tmp_path / "still.png", size=(160, 120), follow="lower")


CONTACTS = """() => robokit.overlays.built.contactFrames.contacts(robokit.frame()).map(
  ({ place, normal, along, across }) => [...place.toArray(), ...normal.toArray(), along, across])"""


def test_contacts_have_frames_recorded_and_live(chromium, tmp_path):
    """A box at rest on a slope, and one on a ball's side that pushes it."""
    shape = Shape(Box((0.4, 0.3, 0.2)))
    b = rk.ModelBuilder("box").link("box", 2.0, inertia=np.diag([0.02, 0.03, 0.03]), collisions=(shape,))
    robot = b.build("floating")
    tilt = 0.25
    slope = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    ball = rk.Solid(
        Sphere(0.3), tuple(np.array([0.5 * np.cos(tilt), 0.0, -0.5 * np.sin(tilt)]) + 0.1 * slope)
    )
    ground = rk.Ground(tilt=tilt, friction=0.1, shapes=[ball])
    half = 0.5 * tilt
    q = robot.configuration(tuple(0.1 * slope), (np.cos(half), 0.0, np.sin(half), 0.0))
    run = rk.simulate(robot, q, duration=1.0, dt=1e-3, ground=ground)
    watch = Watch(chromium)
    page = watch.open(write_page(run, tmp_path / "slope.html", live=True, walk=False))
    page.get_by_role("button", name="Contact frames").click()
    page.evaluate("robokit.timeline.seek(1)")

    def check(found):
        found = np.array(found)
        normals, along, across = found[:, 3:6], found[:, 6], found[:, 7]
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-5)
        on_slope = normals @ slope > 1.0 - 1e-6
        assert 0 < on_slope.sum() < len(found)  # the ball has a normal of its own
        assert np.all(along > 0.0) and np.all(across <= 0.1 * along * 1.001 + 1e-6)
        # Gravity is held: along the slope's normal by the slope.
        assert np.sum(along[on_slope]) == pytest.approx(2.0 * 9.81 * np.cos(tilt), rel=0.06)

    check(page.evaluate(CONTACTS))
    bars = page.evaluate("robokit.overlays.built.contactFrames.bars.map(({ drawn }) => drawn[0].count)")
    assert bars == [len(page.evaluate(CONTACTS))] * 3
    page.click("#live")
    until(page, "robokit.run.motion.duration > 0.5")
    page.evaluate("robokit.run.halt()")
    until(page, f"({CONTACTS})().length > 0")
    check(page.evaluate(CONTACTS))
    watch.judge()
