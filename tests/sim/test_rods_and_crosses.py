"""Loop joints that are rods and crosses, loops that tie a floating robot to the world, links without mass."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import robokit as rk
from robokit.model import ModelBuilder, Placement

G = 9.81


def at(*position):
    return Placement(position=np.array(position, dtype=float))


def hung_ball(length=0.5):
    """A ball that floats, on a rod without mass to a point of the world 1 m up."""
    ball = ModelBuilder("ball").link("ball", 2.0, (0, 0, 0), np.eye(3) * 0.01)
    return ball.loop_joint("rod", "distance", "world", "ball", at(0, 0, 1), length=length).build("floating")


def hung_at(robot, angle, length=0.5):
    q = robot.neutral()
    q[4:] = length * np.sin(angle), 0.0, 1.0 - length * np.cos(angle)
    return q


def test_a_ball_on_a_rod_is_a_pendulum_in_each_method():
    robot, start, duration = hung_ball(), 1.0, 1.0
    law = solve_ivp(
        lambda t, y: [y[1], -G / 0.5 * np.sin(y[0])],
        (0, duration),
        [start, 0.0],
        "DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    for method, order, small in (("contact", 2, 1e-4), ("rkmk4", 4, 1e-9)):
        errors = []
        for dt in (4e-3, 2e-3):
            run = rk.simulate(robot, hung_at(robot, start), duration=duration, dt=dt, integrator=method)
            x, _, z = run.q[-1, 4:]
            errors.append(abs(np.arctan2(x, 1.0 - z) - law.y[0, -1]))
            assert abs(np.linalg.norm(run.q[:, 4:] - [0, 0, 1], axis=1) - 0.5).max() < 1e-12
            assert np.ptp(run.energy.total) < 1e-7
        assert errors[1] < small
        assert 0.8 * 2**order < errors[0] / errors[1] < 1.2 * 2**order, method


def test_the_force_of_a_rod_is_what_holds_the_ball():
    """At rest the weight along the rod, and it pulls; in the plane and out of it nothing."""
    robot, start = hung_ball(), 0.7
    run = rk.simulate(robot, hung_at(robot, start), duration=2e-3, dt=1e-4, integrator="rkmk4")
    moment, force = np.split(run.loop_forces["rod"][0], 2)
    pull = 2.0 * G * np.cos(start)
    np.testing.assert_allclose(force, pull * np.array([-np.sin(start), 0, np.cos(start)]), atol=1e-8)
    np.testing.assert_allclose(moment, 0.0, atol=1e-9)


def test_the_force_of_a_rod_in_steps_with_contact_is_of_second_order():
    """Of the pendulum in the middle of each step: m (g cos a + l a'^2)."""
    robot, errors = hung_ball(), []
    law = solve_ivp(
        lambda t, y: [y[1], -G / 0.5 * np.sin(y[0])], (0, 0.5), [1.0, 0.0], "DOP853",
        rtol=1e-12, atol=1e-12, dense_output=True,
    ).sol  # fmt: skip
    for dt in (4e-3, 2e-3):
        run = rk.simulate(
            robot, hung_at(robot, 1.0), duration=0.4, dt=dt, integrator="contact", record_every=1
        )
        angle, rate = law(run.t[:-1] + 0.5 * dt)
        pull = 2.0 * (G * np.cos(angle) + 0.5 * rate**2)
        errors.append(np.abs(np.linalg.norm(run.loop_forces["rod"][:-1, 3:], axis=1) - pull).max())
    assert errors[1] < 1e-3
    assert 3.5 < errors[0] / errors[1] < 4.5


def cardan(angle):
    """Two shafts that meet at an angle, joined by a cross."""
    c, s = np.cos(angle), np.sin(angle)
    b = ModelBuilder("cardan").link("ground")
    for name, inertia in (("driver", 0.02), ("driven", 0.05)):
        b.link(name, 1.0, (0, 0, 0), np.diag([inertia, 0.04, 0.04]))
    b.joint("in", "continuous", "ground", "driver", axis=(1, 0, 0))
    turned = Placement(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), np.zeros(3))
    b.joint("out", "continuous", "ground", "driven", turned, axis=(1, 0, 0))
    return b.loop_joint("cross", "universal", "driver", "driven", axis=(0, 1, 0), axis2=(0, 0, 1)).build()


def test_a_cardan_shaft_turns_as_poncelet_says():
    """tan in = tan out / cos angle, and the energy stays."""
    angle = 0.5
    robot = cardan(angle)
    start = rk.close_loops(robot, [0.3, 0.3], keep=["in"])
    for method in ("contact", "rkmk4"):
        run = rk.simulate(robot, start, [5.0, 0.0], duration=1.0, dt=1e-3, integrator=method)
        turned = np.tan(run.q[:, 0]) / np.tan(run.q[:, 1])
        np.testing.assert_allclose(turned, 1.0 / np.cos(angle), rtol=1e-9)
        assert np.ptp(run.energy.total) < 1e-12
        # What the cross passes on turns the driven shaft alone: its moment along the shaft is I a.
        wrench, a = run.loop_forces["cross"][5], np.gradient(run.v[:, 1], run.t)[5]
        shaft = rk.forward_kinematics(robot, run.q[5])["driver"][0].T @ [np.cos(angle), 0, -np.sin(angle)]
        assert wrench[:3] @ shaft == pytest.approx(0.05 * a, rel=2e-2)


def test_a_universal_joint_of_the_tree_is_two_hinges_about_a_cross():
    inertia = np.diag([0.1, 0.2, 0.3])
    b = ModelBuilder("u").link("base").link("rod", 1.0, (0, 0, -0.5), inertia)
    robot = b.joint("u", "universal", "base", "rod", at(0, 0, 1), axis=(1, 0, 0), lower=-1, upper=1).build()
    assert robot.joint_names == ("u_1", "u_2")
    assert [tuple(j.axis) for j in robot.joints] == [(1, 0, 0), (0, 1, 0)]
    assert all((j.lower, j.upper) == (-1, 1) for j in robot.joints)
    assert robot.link("u_cross").mass == 0.0
    x, y = 0.3, 0.4
    R, _ = rk.forward_kinematics(robot, [x, y])["rod"]
    cx, sx, cy, sy = np.cos(x), np.sin(x), np.cos(y), np.sin(y)
    about_x, about_y = [[1, 0, 0], [0, cx, -sx], [0, sx, cx]], [[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]]
    np.testing.assert_allclose(R, np.array(about_x) @ about_y, atol=1e-15)
    run = rk.simulate(robot, [x, y], [0.5, -1.0], duration=0.5)
    assert np.ptp(run.energy.total) < 1e-8


def slider_crank(rod=0.0):
    """Crank 0.1 m, rod 0.3 m of the mass given, a slider of 2 kg: gravity across."""
    b = ModelBuilder("slider_crank").link("ground")
    b.link("crank", 1.0, (0, 0, 0), np.diag([0.01, 0.02, 0.01]))
    b.link("rod", rod, (0.15, 0, 0), np.eye(3) * rod * 0.0075)
    b.link("slider", 2.0, (0, 0, 0), np.eye(3) * 1e-3)
    b.joint("crank", "continuous", "ground", "crank", axis=(0, 1, 0))
    b.joint("rod", "continuous", "crank", "rod", at(0.1, 0, 0), axis=(0, 1, 0))
    b.joint("slide", "prismatic", "ground", "slider", at(0.4, 0, 0), axis=(1, 0, 0))
    return b.loop_joint("pin", "revolute", "rod", "slider", at(0.3, 0, 0), axis=(0, 1, 0)).build()


def test_a_rod_without_mass_is_moved_by_its_loop():
    """The closed form of the slider-crank: I(angle) w^2 stays, I = I_crank + m x'(angle)^2."""
    robot = slider_crank()
    start = rk.close_loops(robot, [0.7, -1.0, 0.0], keep=["crank"])

    def inertia(angle):
        s, c = np.sin(angle), np.cos(angle)
        return 0.02 + 2.0 * (0.1 * s + 0.01 * s * c / np.sqrt(0.09 - 0.01 * s * s)) ** 2

    errors = []
    for dt in (1e-3, 5e-4):
        run = rk.simulate(robot, start, [10.0, 0.0, 0.0], duration=0.5, dt=dt)
        assert run.summary["integrator"] == "contact"
        k = inertia(start[0]) * run.v[0, 0] ** 2
        law = solve_ivp(
            lambda t, y, k=k: np.sqrt(k / inertia(y)), (0, 0.5), [0.7], "DOP853", rtol=1e-12, atol=1e-12
        )
        errors.append(abs(run.q[-1, 0] - law.y[0, -1]))
        assert run.summary["loop_gap"] < 1e-12
        assert np.ptp(run.energy.total) < 1e-12
    assert errors[0] < 3e-6
    assert 3.5 < errors[0] / errors[1] < 4.5
    rows = rk.rollout(robot, np.stack([start] * 3), [10.0, 0.0, 0.0], duration=0.1)
    assert np.array_equal(rows.q[:, 2], rk.simulate(robot, start, [10.0, 0, 0], duration=0.1).q)


def test_links_without_mass_that_nothing_holds_are_refused():
    robot = slider_crank()
    with pytest.raises(rk.ShapeError, match=r"'rkmk4' divides by inertias.*'rod'.*take 'contact'"):
        rk.simulate(robot, integrator="rkmk4")
    b = ModelBuilder.from_robot(robot).link("flag")
    loose = b.joint("hinge", "continuous", "crank", "flag").build()
    with pytest.raises(rk.SingularInertia, match=r"'hinge'.*no loop joint says how it moves"):
        rk.simulate(loose)


def test_a_floating_platform_on_legs_to_the_world():
    """Six rods of fixed length hold a platform where it is, and carry its weight."""
    rng = np.random.default_rng(2)
    b = ModelBuilder("platform").link("top", 3.0, (0.02, 0.01, 0.05), np.diag([0.1, 0.1, 0.15]))
    q = np.array([1.0, 0, 0, 0, 0, 0, 1.0])
    for k in range(6):
        angle = np.pi / 3.0 * k
        foot = np.array([np.cos(angle), np.sin(angle), 0.0])
        head = 0.4 * np.array([np.cos(angle + (-1) ** k * 0.4), np.sin(angle + (-1) ** k * 0.4), 0.0])
        length = float(np.linalg.norm(head - foot + np.array([0, 0, 1.0])))
        b.loop_joint(f"leg{k}", "distance", "world", "top", at(*foot), at(*head), length=length)
    robot = b.build("floating")
    run = rk.simulate(robot, q, rng.standard_normal(6), duration=0.1)
    assert abs(run.q - q).max() < 1e-9  # nothing moves, and the start's velocity was none that legs allow
    carried = sum(force[-1, 5] for force in run.loop_forces.values())
    assert carried == pytest.approx(3.0 * G, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "distance"}, "length of joint 'x' is missing"),
        ({"kind": "distance", "length": 0.0}, "length of joint 'x' is 0"),
        ({"kind": "revolute", "length": 1.0}, "only a distance joint has one"),
        ({"kind": "universal", "axis2": (1, 1, 0)}, "axis2 of joint 'x' is at 45 degrees"),
        ({"kind": "spherical", "axis2": (1, 1, 0)}, "only a universal joint has one"),
    ],
)
def test_numbers_of_rods_and_crosses_are_judged(given, words):
    with pytest.raises(rk.ModelError, match=words):
        ModelBuilder("x").link("a").link("b").loop_joint("x", predecessor="a", successor="b", **given)


def test_a_loop_joint_needs_two_bodies():
    with pytest.raises(rk.ModelError, match="use loop_joint"):
        ModelBuilder("x").joint("x", "distance", "a", "b")
    welded = ModelBuilder("x").link("a").link("b").joint("weld", "fixed", "a", "b")
    with pytest.raises(rk.ModelError, match="loop joint 'x': links 'a' and 'b' are one body"):
        welded.loop_joint("x", "distance", "a", "b", length=1.0).build()


def test_rods_crosses_and_ties_to_the_world_are_written_and_read():
    b = ModelBuilder.from_robot(cardan(0.4))
    b.loop_joint("rod", "distance", "world", "driven", at(0, 1, 0), length=2)
    robot = b.build()
    again = rk.loads_urdf(rk.urdf.dump(robot))
    assert [(j.kind, j.length, j.predecessor) for j in again.loop_joints] == [
        ("universal", 0.0, "driver"),
        ("distance", 2.0, "world"),
    ]
    np.testing.assert_array_equal(again.loop_joints[0].axis2, robot.loop_joints[0].axis2)
    assert again.tree.loops == robot.tree.loops


def test_two_rods_are_the_double_pendulum():
    """Two bobs that slide in a plane, held by rods: the closed form of the double pendulum."""
    b = ModelBuilder("bobs").link("base")
    for name in "ab":
        b.link(name, 1.0, (0, 0, 0), np.eye(3) * 1e-3)
        b.joint(name, "planar", "base", name, axis=(0, 1, 0))
    b.loop_joint("upper", "distance", "base", "a", length=1.0)
    robot = b.loop_joint("lower", "distance", "a", "b", length=0.8).build()
    start = np.array([1.2, 0.4, 0.0, 0.0])
    q = np.array([0.0, *_bob(1.0, start[0]), 0.0, *(_bob(1.0, start[0]) + _bob(0.8, start[1]))])

    def law(t, y):
        a, b, u, w = y
        c, s = np.cos(a - b), np.sin(a - b)
        H = [[2.0, 0.8 * c], [c, 0.8]]
        C = [-0.8 * w * w * s - 2.0 * G * np.sin(a), u * u * s - G * np.sin(b)]
        return [u, w, *np.linalg.solve(H, C)]

    a, b, _, _ = solve_ivp(law, (0, 1), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    for method, close in (("rkmk4", 1e-9), ("contact", 1e-4)):
        run = rk.simulate(robot, q, duration=1.0, dt=1e-3, integrator=method)
        upper, lower = run.q[-1, 1:3], run.q[-1, 4:6] - run.q[-1, 1:3]
        np.testing.assert_allclose(upper, _bob(1.0, a), atol=close)
        np.testing.assert_allclose(lower, _bob(0.8, b), atol=close)
        assert run.summary["loop_gap"] < 1e-12


def _bob(length, angle):
    """Coordinates z, x of a planar joint about y."""
    return length * np.array([-np.cos(angle), np.sin(angle)])


@pytest.mark.parity
def test_a_rod_is_a_tendon_in_mujoco():
    mujoco = pytest.importorskip("mujoco")
    from robokit.mjcf import to_mjcf

    b = ModelBuilder("tied").link("base")
    for name, x in (("a", 0.0), ("b", 0.5)):
        b.link(name, 1.0, (0, 0, -0.3), np.eye(3) * 0.02)
        b.joint(name, "continuous", "base", name, at(x, 0, 0), axis=(0, 1, 0))
    robot = b.loop_joint("rod", "distance", "a", "b", at(0, 0, -0.6), at(0, 0, -0.4), length=0.6).build()
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    data = mujoco.MjData(model)
    model.opt.timestep = 1e-4
    model.eq_solref[:], model.eq_solimp[:] = [2e-4, 1.0], [0.9999, 0.9999, 0.001, 0.5, 2.0]
    data.qpos[:] = start = rk.close_loops(robot, [0.5, 0.3])
    mujoco.mj_step(model, data, 5000)
    run = rk.simulate(robot, start, duration=0.5, dt=1e-3)
    np.testing.assert_allclose(run.q[-1], data.qpos, atol=3e-4)


@pytest.mark.parity
def test_the_referee_holds_rods_and_crosses_against_each_other(tmp_path):
    from robokit.mjcf import to_mjcf
    from robokit.parity.referee import referee

    def file(name, kind, **more):
        b = ModelBuilder("tied").link("base")
        for link, x in (("a", 0.0), ("b", 0.5)):
            b.link(link, 1.0, (0, 0, -0.3), np.eye(3) * 0.02)
            b.joint(link, "continuous", "base", link, at(x, 0, 0), axis=(0, 1, 0))
        robot = b.loop_joint("loop", kind, "a", "b", at(0, 0, -0.6), at(0, 0, -0.4), **more).build()
        rk.urdf.dump(robot, tmp_path / name)
        return robot, tmp_path / name

    robot, rod = file("rod.urdf", "distance", length=0.6)
    to_mjcf(robot, tmp_path / "rod.xml")
    _, longer = file("longer.urdf", "distance", length=0.61)
    _, cross = file("cross.urdf", "universal", axis=(0, 1, 0), axis2=(0, 0, 1))
    _, other = file("other.urdf", "universal", axis=(0, 1, 0), axis2=(1, 0, 0))
    for a, b, found in ((rod, tmp_path / "rod.xml", []), (cross, cross, []), (rod, longer, ["loop-differs"]),
                        (cross, other, ["loop-differs"])):  # fmt: skip
        assert [each.cause for each in referee(a, b).findings] == found


def test_motors_friction_and_ground_know_links_without_mass():
    """A servo turns the crank to its target against dry friction; each kind of force takes the light rod."""
    b = ModelBuilder.from_robot(slider_crank())
    for name, joint in b._joints.items():
        b._joints[name] = dataclasses.replace(joint, friction=0.01)
    robot = b.build()
    start = rk.close_loops(robot, [0.7, -1.0, 0.0], keep=["crank"])
    servo = rk.PD(kp=50.0, kd=2.0, joints=["crank"], target=1.5)
    for ground in (None, rk.Ground(height=-1.0)):
        run = rk.simulate(robot, start, duration=1.0, actuators=servo, ground=ground)
        assert abs(run.q[-1, 0] - 1.5) < 0.02 / 50.0 * 1.5
        assert abs(run.v[-1]).max() < 1e-6
        assert run.summary["loop_gap"] < 1e-12 and not run.summary["steps_not_settled"]
