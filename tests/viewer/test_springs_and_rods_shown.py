"""The page draws springs and rods, and has the forces and lengths of springs as curves."""

import numpy as np
import pytest
from test_viewer_browser import Watch, until

import robokit as rk
from robokit.model import ModelBuilder, Placement
from robokit.viewer.live_data import check_live
from robokit.viewer.motion_data import ties


@pytest.fixture(scope="module")
def run():
    b = ModelBuilder("tied").link("plate", 2.0, (0, 0, 0), np.diag([0.02, 0.02, 0.04]))
    top, rim = (Placement(position=np.array(p)) for p in ((-0.2, -0.2, 1.2), (-0.2, -0.2, 0.0)))
    robot = b.loop_joint("rod", "distance", "world", "plate", top, rim, length=0.6).build("floating")
    q = robot.neutral()
    q[6] = 0.6
    springs = [
        rk.Spring("world", "plate", (0.5, -0.5, 0.1), (0.2, -0.2, 0), stiffness=60.0, name="soft"),
        rk.Spring("world", "plate", (-0.6, 0.6, 0.3), (-0.2, 0.2, 0), stiffness=150.0),
    ]
    return rk.simulate(robot, q, duration=0.2, springs=springs)


def test_ends_of_springs_and_rods(run, tmp_path):
    robot, found = run.robot, ties(run.robot, run.springs)
    assert [each.spring for each in found] == [True, True, False]
    poses = rk.forward_kinematics(robot, run.q[40])
    body = robot.link("plate").body

    def place(end):
        return (
            np.array(end.pose)
            if end.body == 0
            else poses["plate"].position + poses["plate"].rotation @ end.pose
        )

    assert {end.body for each in found for end in each.ends} == {0, body}
    for each, record in zip(found, run.springs, strict=False):
        np.testing.assert_allclose([place(end) for end in each.ends], record.points[40], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(np.subtract(*map(place, found[2].ends))), 0.6, rtol=1e-9)
    loaded = rk.Trajectory.load(run.save(tmp_path / "tied.npz"))
    assert ties(loaded.robot, loaded.springs) == found


def test_the_page_has_them_and_their_curves(run, tmp_path):
    page = run.to_html(tmp_path / "tied.html", walk=False).read_text()
    assert page.replace(" ", "").count('"spring":true') == 2
    assert "Tension of springs" in page and "Length of springs" in page and "soft" in page


def test_a_live_page_says_what_it_does_not_know(run, monkeypatch):
    check_live(run)
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # machine code would be of this one function
    cubic = rk.JointSpring("upper_joint", force=lambda a, u: a**3)
    with pytest.raises(rk.RobokitError, match="live: the page's step does not support springs whose force"):
        check_live(rk.simulate(robot, duration=0.01, springs=cubic))
    motion = rk.PrescribedMotion("upper_joint", np.sin)
    with pytest.raises(rk.RobokitError, match="not support prescribed motions"):
        check_live(rk.simulate(robot, duration=0.01, motions=motion))


LENGTHS = (
    "() => robokit.overlays.built.ties.children.map((line) => [...line.position.toArray(), line.scale.z])"
)


@pytest.mark.browser
def test_they_are_drawn_where_bodies_are_recorded_and_live(run, chromium, tmp_path):
    watch = Watch(chromium)
    page = watch.open(run.to_html(tmp_path / "tied.html", live=True, walk=False))
    page.evaluate("robokit.timeline.seek(0)")
    starts = [record.points[0, 0] for record in run.springs]
    found = np.array(page.evaluate(LENGTHS))
    np.testing.assert_allclose(found[:2, :3], starts, atol=1e-6)
    np.testing.assert_allclose(found[:, 3], [*(record.length[0] for record in run.springs), 0.6], rtol=1e-5)
    page.click("#live")
    until(page, "robokit.run.motion.duration > 0.3")
    page.evaluate("robokit.run.halt()")
    moved = np.array(page.evaluate(LENGTHS))
    assert moved[2, 3] == pytest.approx(0.6, rel=1e-5)  # the rod keeps its length
    assert np.all(np.abs(moved[:2, 3] - found[:2, 3]) > 1e-3)
    watch.judge()
