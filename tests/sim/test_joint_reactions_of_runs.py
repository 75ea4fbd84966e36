"""Accelerations and joint reactions of a run: Newton's and Euler's laws of every link, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import pendulum
from newton_euler import imbalance

import robokit as rk
from robokit.errors import RobokitError, UnknownName
from robokit.sim.steppers import scene_of

G = 9.81


def everything_that_presses(run, motion):
    """Wrenches of all contacts on links, (R, 6) about the world's origin, one by one from their notes."""
    names, rows, found = scene_of(run.program).links, run._noted(None), {}
    for row in range(len(rows)):
        for a, b, *numbers in rows.contacts(row).tolist():
            place, force, moment = (np.array(numbers[k : k + 3]) for k in (0, 3, 6))
            wrench = np.concatenate([moment + np.cross(place, force), force])
            for shape, sign in ((a, -1.0), (b, 1.0)):
                link = names[int(shape)]
                if link:
                    found.setdefault(link, np.zeros((len(rows), 6)))[row] += sign * wrench
    return found


def add_push(run, motion, on_links, push, steps):
    """A push at a point of a link in the steps that it covers."""
    R, p = rk.forward_kinematics(run.robot, motion.q)[push.link]
    at, force = p + R @ push.point, np.zeros((len(motion.q), 3))
    force[steps] = push.wrench[-3:]
    wrench = np.concatenate([np.cross(at, force), force], axis=1)
    on_links[push.link] = on_links.get(push.link, 0.0) + wrench


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_every_link_obeys_newton_and_euler_through_a_fall(name):
    """Impacts, links on each other, motors, stops, rolling friction, and a push on a link without a body."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    rng = np.random.default_rng(1)
    q = robot.neutral()
    q[:4], q[6] = rk.rotations.rpy_to_quat_wxyz([0.4, -0.3, 0.2]), 1.1
    v = 0.5 * rng.standard_normal(robot.nv)
    driven = [joint.name for joint in robot.joints[1::3]]
    pushed = robot.fixed_joints[0].child_link if robot.fixed_joints else "pelvis"
    push = rk.Push(pushed, (40, -20, 30), (0.1, 0, 0.05), start=0.1, duration=0.2)
    run = rk.simulate(
        robot, q, v, duration=0.7, dt=2e-3, record_every=1, pushes=push,
        ground=rk.Ground(torsional=0.01, rolling=0.005),
        actuators=rk.PD(joints=driven, kp=40.0, kd=2.0, target=0.3),
    )  # fmt: skip
    motion, found = run._motion, run.joint_reactions("world")
    kicks = {joint: wrench[1:] for joint, wrench in found.items()}
    moved = [x[1:] for x in (motion.q, motion.v, motion.a)]
    on_links = everything_that_presses(run, motion)
    later = type(motion)(**{**motion.__dict__, "q": moved[0]})
    add_push(run, later, on_links, push, slice(50, 150))
    assert imbalance(robot, *moved, kicks, on_links) < 1e-9
    largest = np.abs(found.wrenches).max()
    assert np.abs(found["floating_base"]).max() < 1e-9 * largest and largest > 500.0
    assert any(robot.link(name).body for name in on_links) and len(on_links) > 3
    # what moves a joint is what its motor, friction and stop give
    in_links, sensors = run.joint_reactions(), run.sensors
    for joint in robot.joints[1:]:
        own = in_links[joint.name][:, :3] @ joint.axis + joint.armature * run.a[:, joint.v_slice.start]
        assert np.abs(own - sensors.joint_force(joint.name).total[:, 0]).max() < 1e-9 * largest
    # accelerations are rates: momentum and energy are only put right by what steps miss
    change = np.diff(run.v, axis=0) / 2e-3
    assert np.abs(change - run.a[1:])[:, 6:].max() < 1e-2 * np.abs(run.a).max()


def test_a_base_that_floats_hangs_on_nothing_in_bounces():
    """A step notes what its equations had, also where the energy of its bounces was asked for."""
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    v = np.random.default_rng(2).normal(size=robot.nv)
    v[:3] = (4.0, -3.0, 5.0)
    q = rk.standing_configuration(robot, height=0.1, tilt=0.5, seed=1)
    run = rk.simulate(robot, q, v, 0.5, 2e-3, record_every=1, ground=rk.Ground(restitution=0.5))
    found = run.joint_reactions("world")
    assert np.abs(found["floating_base"]).max() < 1e-11 * np.abs(found.wrenches).max()


def test_every_link_of_a_linkage_that_is_thrown_obeys_them():
    """Loops, a ground and a motor; accelerations are those that the loops allow, to second order."""
    robot = rk.load_urdf(rk.find_robot("four_bar"), base="floating")
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[6], v[:6] = 0.4, [1.0, 2.0, 0.5, 0.2, 0.0, 1.0]
    drive = rk.Torque(joints=["crank_joint"], target=lambda t, q, v: 0.4 * np.sin(9 * t))
    run = rk.simulate(robot, q, v, duration=0.6, dt=1e-3, record_every=1, ground=True, actuators=drive)
    found = {joint: wrench[1:] for joint, wrench in run.joint_reactions("world").items()}
    motion = run._motion
    moved = [x[1:] for x in (motion.q, motion.v, motion.a)]
    assert imbalance(robot, *moved, found, everything_that_presses(run, motion)) < 1e-8
    size = max(np.abs(x).max() for x in found.values())
    assert np.abs(found["floating_base"]).max() < 1e-8 * size
    air = run.t[1:] < 0.1  # what the velocities do while nothing touches
    change = np.diff(run.v, axis=0)[air] / 1e-3
    assert np.abs(change - run.a[1:][air])[:, 6:].max() < 1e-3 * np.abs(change[:, 6:]).max()


@pytest.mark.parametrize("most", [1_000_000, 10_000])
def test_a_swinging_pendulum_pulls_as_in_the_book(monkeypatch, most):
    """All methods beside the closed form at the angle and the speed that they have.

    Also where the steps are more than are noted as they are taken.
    """
    monkeypatch.setattr("robokit.sim.run_loop.MOST_BYTES", most)
    m, l = 2.0, 1.0
    robot = pendulum()
    for method, tolerance in (("rkmk4", 1e-12), ("midpoint", 1e-12), ("contact", 1e-2)):
        run = rk.simulate(robot, [2.5], duration=1.0, dt=1e-3, record_every=10, integrator=method)
        assert (run.notes is None) == (most < 1_000_000)
        theta, rate = run.q[:, 0], run.v[:, 0]
        alpha = -1.5 * G / l * np.sin(theta)
        along, across = m * rate**2 * l / 2 + m * G * np.cos(theta), m * G * np.sin(theta) / 4
        found = run.joint_reactions()["hinge"]
        size = np.abs(along).max()
        assert np.abs(run.a[:, 0] - alpha).max() < tolerance * np.abs(alpha).max()
        assert np.abs(found[:, 5] - along).max() < tolerance * size
        assert np.abs(found[:, 3] + across).max() < tolerance * size
        assert np.abs(found[:, [0, 1, 2, 4]]).max() < 1e-9 * size
        tip = run.link_acceleration("rod", "body", at=(0, 0, -l))
        assert np.abs(tip[:, 5] - rate**2 * l).max() < tolerance * np.abs(rate).max() ** 2
        spatial = run.link_acceleration("rod", "body", at=(0, 0, -l), classical=False)
        assert np.abs(spatial[:, 5]).max() < 1e-9


def hatted_box():
    """A box of 3 kg with a hat of 0.5 kg fixed on it by a joint."""
    b = rk.ModelBuilder("hatted")
    b.link(
        "box", 3.0, (0, 0, 0), 0.02 * np.eye(3), collisions=(rk.model.Shape(rk.model.Box((0.2, 0.2, 0.2))),)
    )
    b.link("hat", 0.5, (0, 0, 0.05), 1e-3 * np.eye(3))
    b.joint("brim", "fixed", "box", "hat", placement=rk.Placement(position=np.array([0.0, 0.0, 0.1])))
    return b.build("floating")


def test_a_hat_is_carried_and_stopped_by_its_joint():
    robot, dt = hatted_box(), 1e-3
    q = robot.neutral()
    q[6] = 0.15
    run = rk.simulate(robot, q, duration=1.0, dt=dt, record_every=1, ground=True)
    force = run.joint_reactions("world")["brim"][:, 5]
    np.testing.assert_allclose(force[-1], 0.5 * G, rtol=1e-6)  # at rest
    assert np.abs(force[1:80]).max() < 1e-9  # in the air
    # through the whole fall its impulse is what stops the hat
    assert dt * force[1:].sum() == pytest.approx(0.5 * G * run.t[-1], rel=1e-6)
    assert force.max() > 50.0 * 0.5 * G
    np.testing.assert_allclose(run.link_acceleration("hat")[-1], 0.0, atol=1e-6)


def test_a_push_on_a_link_without_a_body_passes_through_its_joint():
    robot, push = hatted_box(), rk.Push("hat", (0, 0, 7.0), (0.0, 0.0, 0.05), 0.0, 0.05)
    for method in ("rkmk4", "contact"):
        run = rk.simulate(robot, duration=0.05, dt=1e-3, integrator=method, gravity=(0, 0, 0), pushes=push)
        np.testing.assert_allclose(
            run.joint_reactions()["brim"][1, 3:], [0, 0, 7.0 * 0.5 / 3.5 - 7.0], atol=1e-9
        )
        np.testing.assert_allclose(run.a[1], [0, 0, 0, 0, 0, 2.0], atol=1e-9)


def test_a_spring_on_a_link_without_a_body_passes_through_its_joint():
    """A hat that hangs from the ceiling with the box below it."""
    robot = hatted_box()
    spring = rk.Spring(
        "world", "hat", (0.1, 0, 2.0), (0, 0, 0.05), stiffness=300.0, damping=20.0, rest_length=1.0
    )
    run = rk.simulate(robot, duration=0.4, dt=1e-3, record_every=1, springs=spring)
    found, motion = run.joint_reactions("world"), run._motion
    hat = run.link_acceleration("hat", at=(0, 0, 0.05))[:, 3:] - robot.gravity  # of its centre of mass
    R, p = rk.forward_kinematics(robot, motion.q, at=("hat", (0, 0, 0.05)))
    tension = 0.5 * hat - found["brim"][:, 3:]  # what is left is the spring's pull
    along = np.array([0.1, 0, 2.0]) - p
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    pull = np.sum(tension * along, axis=1)
    assert np.abs(tension - pull[:, None] * along).max() < 1e-9 * np.abs(pull).max()
    assert (
        np.abs(pull[1:] - 0.5 * (run.springs[0].force[1:] + run.springs[0].force[:-1])).max()
        < 0.05 * pull.max()
    )
    assert np.abs(found["floating_base"]).max() < 1e-9 * np.abs(pull).max() and R.shape == (len(run), 3, 3)


def test_steps_that_are_divided_give_their_mean():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    q = robot.neutral()
    q[6] = 0.6
    run = rk.simulate(robot, q, duration=0.5, ground=True, accuracy=1e-4)
    found = run.joint_reactions("world")
    assert run.summary["parts_taken"] > run.summary["steps"]
    assert np.abs(found["floating_base"]).max() < 1e-8 * np.abs(found.wrenches).max()
    # the motion of the whole over each step is that of its forces
    change = np.diff(run.momentum[:, 3:], axis=0)
    weight = np.outer(np.diff(run.t), robot.total_mass * robot.gravity)
    pressed = np.diff(run.contact_impulse, axis=0)
    assert np.abs(change - weight - pressed).max() < 1e-9


def test_what_a_loaded_file_cannot_tell(tmp_path):
    robot = pendulum()
    run = rk.simulate(robot, [0.3], duration=0.05)
    with pytest.raises(UnknownName, match="frame"):
        run.joint_reactions("parent")
    loaded = rk.Trajectory.load(run.save(tmp_path / "a.npz"), robot)
    with pytest.raises(RobokitError, match="use it before"):
        _ = loaded.a
    asked = run.a
    np.testing.assert_array_equal(rk.Trajectory.load(run.save(tmp_path / "b.npz"), robot).a, asked)
    for ask in (loaded.joint_reactions, lambda: loaded.link_acceleration("rod")):
        with pytest.raises(RobokitError, match="use it before"):
            ask()
    assert loaded.link_velocity("rod").shape == (len(run.t), 6)
    for ground in (None, True):  # of a run without a step, what the first would do
        none = rk.simulate(hatted_box(), [1, 0, 0, 0, 0, 0, 1.0], duration=0.0, ground=ground)
        np.testing.assert_allclose(none.a, [[0, 0, 0, 0, 0, -G]], atol=1e-12)
        assert none.joint_reactions().wrenches.shape == (1, 2, 6)
