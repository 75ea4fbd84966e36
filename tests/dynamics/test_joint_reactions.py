"""Joint reactions: closed forms, Newton's and Euler's laws of every link, Pinocchio, MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import pendulum, relative
from newton_euler import imbalance

import robokit as rk
from robokit.errors import ShapeError, UnknownName


def states_of(robot, B=4, seed=5):
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, B)
    if robot.loop_joints:
        q = rk.close_loops(
            robot, robot.integrate(robot.neutral(), 0.2 * robot.difference(robot.neutral(), q))
        )
    return q, rng.standard_normal((B, robot.nv)), rng.standard_normal((B, robot.nv))


# ---- closed forms -----------------------------------------------------------------------------------------


def test_a_pendulum_pulls_at_its_hinge_with_weight_and_centrifugal_force():
    # rod of m = 2 kg, l = 1 m; theta from straight down, about y
    m, l, g, theta, rate = 2.0, 1.0, 9.81, 0.7, 3.0
    robot = pendulum()
    alpha = -1.5 * g / l * np.sin(theta)
    along = m * rate**2 * l / 2 + m * g * np.cos(theta)  # towards the hinge, link z
    across = m * (alpha * l / 2 + g * np.sin(theta))  # m g sin / 4
    found = rk.joint_reactions(robot, [theta], [rate], tau=[0.0])["hinge"]
    # theta > 0 about y swings the rod's end to -x: its point at -z moves along -x
    np.testing.assert_allclose(found, [0, 0, 0, across * -1.0 + 0.0, 0, along], atol=1e-12)
    assert across == pytest.approx(m * g * np.sin(theta) / 4)
    same = rk.joint_reactions(robot, [theta], [rate], [alpha])["hinge"]
    np.testing.assert_allclose(same, found, atol=1e-12)


def test_a_tilted_disc_wears_its_bearing():
    """A disc of inertia (A, A, C) tilted by beta on a shaft about z: moment (C - A) w^2 sin b cos b."""
    A, C, beta, w = 0.02, 0.05, 0.3, 40.0
    c, s = np.cos(beta), np.sin(beta)
    R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    b = rk.ModelBuilder("disc")
    b.link("stand").link("disc", 1.0, (0, 0, 0), R @ np.diag([A, A, C]) @ R.T)
    robot = b.joint("shaft", "continuous", "stand", "disc", axis=(0, 0, 1)).build(gravity=(0, 0, 0))
    n = rk.joint_reactions(robot, [0.0], [w], [0.0])["shaft"]
    # omega x I omega, with omega = w e_z and I omega = R diag R^T omega
    assert n[0] == pytest.approx((C - A) * w**2 * s * c)
    assert np.abs(n[1:]).max() < 1e-12
    turned = rk.joint_reactions(robot, [1.1], [w], [0.0], frame="joint")["shaft"]
    np.testing.assert_allclose(turned[:2], n[0] * np.array([np.cos(1.1), np.sin(1.1)]), atol=1e-12)


def test_a_slider_crank_is_held_by_statics():
    """Force F on the slider: the rod carries F / cos(phi), the guide F tan(phi), the crank F r sin(..)."""
    r, l, F, theta = 0.3, 1.0, 50.0, 0.9
    phi = np.arcsin(r * np.sin(theta) / l)
    b = rk.ModelBuilder("slider_crank")
    tiny = 1e-6 * np.eye(3)
    for name in ("crank", "rod", "slider"):
        b.link(name, 1e-3, (0, 0, 0), tiny)
    b.link("frame")
    b.joint("crank_joint", "continuous", "frame", "crank", axis=(0, 0, 1))
    b.joint(
        "crank_pin",
        "continuous",
        "crank",
        "rod",
        axis=(0, 0, 1),
        placement=rk.Placement(position=np.array([r, 0, 0])),
    )
    b.joint("guide", "prismatic", "frame", "slider", axis=(1, 0, 0))
    b.loop_joint(
        "wrist_pin",
        "revolute",
        "rod",
        "slider",
        rk.Placement(position=np.array([l, 0, 0])),
        rk.Placement(),
        (0, 0, 1),
    )
    robot = b.build(gravity=(0, 0, 0))
    x = r * np.cos(theta) + l * np.cos(phi)
    q = np.array([theta, -phi - theta, x])
    push = {"slider": np.array([0, 0, 0, -F, 0, 0])}
    # the torque on the crank that holds it, by virtual work: tau dtheta = F dx
    torque = -F * (r * np.sin(theta) + r * np.cos(theta) * np.tan(phi))
    tau = np.array([torque, 0, 0])
    found = rk.joint_reactions(robot, q, np.zeros(3), tau=tau, f_ext=push, frame="world")
    rod = F / np.cos(phi) * np.array([np.cos(phi), -np.sin(phi), 0])
    np.testing.assert_allclose(found["wrist_pin"][3:], rod, atol=1e-9 * F)
    np.testing.assert_allclose(found["crank_pin"][3:], rod, atol=1e-9 * F)
    np.testing.assert_allclose(found["crank_joint"][3:], rod, atol=1e-9 * F)
    assert found["crank_joint"][2] == pytest.approx(torque)
    assert found["guide"][4] == pytest.approx(F * np.tan(phi))


@pytest.mark.parametrize("kind", ["prismatic", "cylindrical", "helical", "planar", "universal"])
@pytest.mark.parametrize("frame", ["world", "joint", "link"])
def test_a_loop_joint_carries_what_the_same_joint_of_a_tree_does(kind, frame):
    """Also where the two ends slide along each other: the origin is that of what is carried."""
    at = rk.Placement(rk.rotations.rpy_to_matrix([0.3, -0.4, 0.5]), np.array([0.1, 0.2, 1.0]))
    axis = {"axis": (0, 0, 1), "pitch": 0.05} if kind == "helical" else {"axis": (0, 0, 1)}
    body = ("body", 2.0, (0.2, 0.1, -0.1), np.diag([0.1, 0.2, 0.25]))
    tree = rk.ModelBuilder("tree").link("ground").link(*body).joint("j", kind, "ground", "body", at, **axis)
    loop = rk.ModelBuilder("loop").link(*body).loop_joint("j", kind, "world", "body", at, **axis)
    tree, loop = tree.build(), loop.build("floating")
    q, v, tau = np.full(tree.nq, 0.4), np.linspace(1.0, 0.5, tree.nv), np.zeros(tree.nv)
    R, p = rk.forward_kinematics(tree, q)["body"]
    V = rk.link_velocity(tree, q, v, "body")
    there = (
        np.concatenate([rk.rotations.matrix_to_quat_wxyz(R), p]),
        np.concatenate([R.T @ V[:3], R.T @ V[3:]]),
    )
    expected = rk.joint_reactions(tree, q, v, tau=tau, frame=frame)["j_1" if kind == "universal" else "j"]
    if kind == "universal" and frame == "link":  # that of the cross
        expected = rk.joint_reactions(tree, q, v, tau=tau, frame=frame)["j_2"]
    found = rk.joint_reactions(loop, *there, tau=np.zeros(6), frame=frame)["j"]
    np.testing.assert_allclose(found, expected, atol=1e-10)


# ---- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "arm", "four_bar"])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_every_link_obeys_newton_and_euler(name, base):
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    q, v, tau = states_of(robot)
    rng = np.random.default_rng(1)
    push = {link: rng.standard_normal((len(q), 6)) for link in robot.link_names[1::3]}
    found = rk.joint_reactions(robot, q, v, tau=tau, f_ext=push, frame="world")
    if robot.loop_joints:
        a, _ = rk.constrained_dynamics(robot, q, v, tau, f_ext=push)
    else:
        a = rk.aba(robot, q, v, tau, push)
    assert imbalance(robot, q, v, a, found, push) < 1e-11
    assert set(found) == {*robot.all_joint_names, *(loop.name for loop in robot.loop_joints)}
    in_children = rk.joint_reactions(robot, q, v, tau=tau, f_ext=push)
    for joint in robot.joints:  # along its axis a joint has its joint force
        in_child = in_children[joint.name]
        S = {"revolute": slice(0, 3), "continuous": slice(0, 3), "prismatic": slice(3, 6)}.get(joint.kind)
        if S:
            rotor = joint.armature * a[:, joint.v_slice]
            assert relative((in_child[:, S] @ joint.axis)[:, None], tau[:, joint.v_slice] - rotor) < 1e-11


def test_contacts_that_hold_carry_the_weight():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    q, v, _ = states_of(robot, 3)
    tau = np.zeros_like(v)
    feet = [rk.Contact(name, (0, 0, -0.01)) for name in robot.link_names if name.endswith("foot")]
    found = rk.joint_reactions(robot, q, v, tau=tau, constraints=feet, frame="world")
    a, forces = rk.constrained_dynamics(robot, q, v, tau, feet)
    poses = rk.forward_kinematics(robot, q)
    on_links = {}
    for k, foot in enumerate(feet):
        f, (R, p) = forces[:, 3 * k : 3 * k + 3], poses[foot.link]
        on_links[foot.link] = np.concatenate([np.cross(p + R @ np.array(foot.at), f), f], axis=1)
    assert imbalance(robot, q, v, a, found, on_links) < 1e-9
    assert np.abs(found["floating_base"]).max() < 1e-9 * robot.total_mass * 9.81


def test_frames_and_batches_and_forces_as_arrays():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    q, v, a = states_of(robot)
    in_world, in_link, in_joint = (
        rk.joint_reactions(robot, q, v, a, frame=x) for x in ("world", "link", "joint")
    )
    poses = rk.forward_kinematics(robot, q)
    for joint in (*robot.joints[1:], *robot.fixed_joints):
        R = poses[joint.child_link][0]
        P = poses[joint.parent_link][0] @ joint.origin.rotation
        for k, wrench in enumerate(in_world[joint.name].reshape(-1, 2, 3)):
            assert relative(wrench @ R[k], in_link[joint.name][k].reshape(2, 3)) < 1e-12
            assert relative(wrench @ P[k], in_joint[joint.name][k].reshape(2, 3)) < 1e-12
    for k in range(len(q)):
        one = rk.joint_reactions(robot, q[k], v[k], a[k])
        assert relative(one.wrenches, in_link.wrenches[k]) < 1e-12
    rng = np.random.default_rng(3)
    f = rng.standard_normal((robot.nbodies + 1, 6))
    by_array = rk.joint_reactions(robot, q[0], v[0], a[0], f)
    R = {i: poses[robot.body_name(i)] for i in range(1, robot.nbodies + 1)}
    by_name = {}
    for i, (axes, p) in R.items():
        n, force = axes[0] @ f[i, :3], axes[0] @ f[i, 3:]
        by_name[robot.body_name(i)] = np.concatenate([n + np.cross(p[0], force), force])
    same = rk.joint_reactions(robot, q[0], v[0], a[0], by_name)
    assert relative(same.wrenches, by_array.wrenches) < 1e-12


def test_samples_of_inertias_have_reactions_of_their_own():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    rng = np.random.default_rng(4)
    scale = rng.uniform(0.5, 2.0, (3, 1, 1))
    samples = robot.with_inertias(robot.inertial_parameters * scale)
    q, v, a = states_of(robot, 3)
    one, many = rk.joint_reactions(robot, q, v, a), rk.joint_reactions(samples, q, v, a)
    for joint in robot.joint_names:
        assert relative(many[joint], one[joint] * scale[:, 0]) < 1e-12
    light = rk.joint_reactions(robot.with_inertias({"head": (0.0, None, np.zeros((3, 3)))}), q, v, a)
    assert np.abs(light["head_mount"]).max() == 0.0 < np.abs(one["head_mount"]).max()


def test_wrong_arguments_say_what_to_do():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    q, v = robot.neutral(), np.zeros(robot.nv)
    with pytest.raises(ShapeError, match="got neither"):
        rk.joint_reactions(robot, q, v)
    with pytest.raises(ShapeError, match="got both"):
        rk.joint_reactions(robot, q, v, v, tau=v)
    with pytest.raises(ShapeError, match="loop joints follow from the joint forces; give tau"):
        rk.joint_reactions(robot, q, v, v)
    with pytest.raises(UnknownName, match="frame"):
        rk.joint_reactions(robot, q, v, tau=v, frame="parent")
    with pytest.raises(UnknownName, match="crank_joint"):
        rk.joint_reactions(robot, q, v, tau=v)["crank_jiont"]
