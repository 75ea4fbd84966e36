"""Robot: names, configurations and the manifold of q, single and in batches."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative
from numpy.testing import assert_allclose

import robokit as rk
from robokit.dynamics import gravity_forces
from robokit.errors import ShapeError, UnknownName
from robokit.model import ModelBuilder


def test_integrate_and_difference_are_inverse(built):
    s = State(built)
    q1 = built.integrate(s.q, s.v)
    assert relative(built.difference(s.q, q1), s.v) < 1e-13
    assert relative(built.integrate(s.q, np.zeros(built.nv)), s.q) < 1e-15
    assert np.abs(built.difference(s.q, s.q)).max() == pytest.approx(0.0, abs=1e-15)


def test_batches_are_rows_of_single_states(built):
    states = [State(built, k) for k in range(3)]
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    moved = built.integrate(q, v)
    assert moved.shape == (3, built.nq)
    assert_allclose(moved, [built.integrate(a, b) for a, b in zip(q, v, strict=True)], rtol=0, atol=1e-14)
    assert_allclose(built.difference(q, moved), v, rtol=0, atol=1e-12)
    # One state goes with a batch.
    assert_allclose(built.integrate(q[0], v)[1], built.integrate(q[0], v[1]), rtol=0, atol=1e-14)
    assert_allclose(built.integrate(q, v[0])[1], built.integrate(q[1], v[0]), rtol=0, atol=1e-14)


def test_rate_of_integrate_is_the_coordinate_rate(built):
    s, h = State(built), 1e-6
    numeric = (built.integrate(s.q, h * s.v) - built.integrate(s.q, -h * s.v)) / (2 * h)
    assert relative(numeric, ladder.coordinate_rate(built, s.q, s.v)) < 1e-8


def limited():
    b = ModelBuilder("limited").link("a")
    limits = {"both": (0.2, 0.4), "low": (5.0, None), "high": (None, -7.0), "none": (None, None)}
    for k, (name, (lower, upper)) in enumerate(limits.items()):
        parent = "a" if k == 0 else f"link{k - 1}"
        b.link(f"link{k}", 1.0).joint(name, "revolute", parent, f"link{k}", lower=lower, upper=upper)
    return b.build()


def test_random_configurations_respect_limits():
    robot, rng = limited(), np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(200)])
    assert q[:, 0].min() >= 0.2 and q[:, 0].max() <= 0.4 and np.ptp(q[:, 0]) > 0.15
    assert q[:, 1].min() >= 5.0
    assert q[:, 2].max() <= -7.0
    assert np.abs(q[:, 3]).max() <= np.pi and np.ptp(q[:, 3]) > 5.0


def test_random_configurations_are_drawn_joint_after_joint():
    robot = ModelBuilder("all").link("root", 1.0)
    for k in range(4):
        robot.link(f"l{k}", 1.0)
    robot.joint("a", "revolute", "root", "l0", lower=-0.3, upper=0.7).joint("b", "spherical", "l0", "l1")
    robot.joint("c", "prismatic", "l1", "l2", lower=0.1, upper=0.2).joint("d", "cylindrical", "l2", "l3")
    robot = robot.build("floating")
    free, _, ball = (robot.tree.joint[body] for body in (1, 2, 3))
    rng = np.random.default_rng(5)
    expected = [
        *free.random(rng, [-1] * 7, [1] * 7),
        rng.uniform(-0.3, 0.7),
        *ball.random(rng, [-1] * 4, [1] * 4),
    ]
    expected += [rng.uniform(0.1, 0.2), rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1)]
    assert robot.random_configuration(5).tolist() == expected


def test_random_configurations_are_reproducible(built):
    a, b = (built.random_configuration(np.random.default_rng(4)) for _ in range(2))
    assert (a == b).all() and (a == built.random_configuration(4)).all()
    assert (a != built.random_configuration(5)).any()
    for joint in built.joints:
        if joint.kind in ("spherical", "floating"):
            assert np.linalg.norm(a[joint.q_slice][:4]) == pytest.approx(1.0, abs=1e-15)


def test_configuration_by_names():
    robot = ladder.random_tree(0, "floating")
    spherical = next(j for j in robot.joints if j.kind == "spherical")
    hinge = next(j for j in robot.joints if j.kind == "revolute")
    q = robot.configuration(
        base_position=(1, 2, 3),
        base_quat_wxyz=(0, 1, 0, 0),
        joints={hinge.name: 0.5, spherical.name: (0, 0, 1, 0)},
    )
    assert q[:7].tolist() == [0, 1, 0, 0, 1, 2, 3]
    assert q[hinge.q_slice].tolist() == [0.5] and q[spherical.q_slice].tolist() == [0, 0, 1, 0]
    rest = robot.neutral()
    rest[:7], rest[hinge.q_slice], rest[spherical.q_slice] = q[:7], q[hinge.q_slice], q[spherical.q_slice]
    assert (q == rest).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"base_quat_wxyz": (1, 1, 0, 0)}, "wxyz"),
        ({"base_position": (1, 2)}, "base_position"),
        ({"base_position": (1, 2, np.nan)}, "base_position"),
        ({"joints": {"joint1": (1, 2, 3, 4, 5, 6, 7, 8)}}, "joint1"),
    ],
)
def test_configuration_refuses_nonsense(kwargs, message):
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match=message):
        ladder.random_tree(0, "floating").configuration(**kwargs)


def test_random_configurations_come_by_the_number(built):
    one, many = np.random.default_rng(3), np.random.default_rng(3)
    rows = [built.random_configuration(one) for _ in range(4)]
    assert np.array_equal(built.random_configuration(many, 4), rows)
    assert one.random() == many.random()  # the generators stand at the same place
    assert np.array_equal(built.random_configuration(9, size=1)[0], built.random_configuration(9))
    assert built.random_configuration(9, 0).shape == (0, built.nq)
    for size in (-1, 2.5, (2, 3), True):
        with pytest.raises(ShapeError, match="size: expected a whole number"):
            built.random_configuration(9, size)


def test_a_mapping_alone_is_joints():
    robot = ladder.random_tree(0, "floating")
    hinge = next(j for j in robot.joints if j.kind == "revolute")
    pose = [0, 1, 0, 0, 1, 2, 3]
    q = robot.configuration({hinge.name: 0.5, robot.joint_names[0]: pose})
    expected = robot.configuration((1, 2, 3), (0, 1, 0, 0), {hinge.name: 0.5})  # as it was before
    assert np.array_equal(q, expected)
    q = robot.configuration({hinge.name: 0.5}, base_quat_wxyz=(0, 1, 0, 0))
    assert q[:7].tolist() == [0, 1, 0, 0, 0, 0, 0] and q[hinge.q_slice] == 0.5
    with pytest.raises(UnknownName, match=f"did you mean .*'{hinge.name}'"):
        robot.configuration({hinge.name + "x": 0.5})
    with pytest.raises(rk.WrongType, match="where joints are given too"):
        robot.configuration({hinge.name: 0.5}, joints={hinge.name: 0.5})
    with pytest.raises(ShapeError, match="expected 7 numbers"):
        robot.configuration({robot.joint_names[0]: 1.0})
    fixed = ModelBuilder("f").link("a").link("b", 1.0).joint("weld", "fixed", "a", "b").build()
    with pytest.raises(ShapeError, match=r"weld.*the joint is fixed"):
        fixed.configuration({"weld": 0.0})


def test_configuration_of_a_fixed_base_has_no_base_pose():
    with pytest.raises(ShapeError, match="fixed base"):
        ladder.chain().configuration(base_position=(0, 0, 1))


def test_unknown_names_come_with_the_nearest():
    robot = ladder.chain()
    with pytest.raises(UnknownName, match="'joint1'"):
        robot.joint("jiont1")
    with pytest.raises(UnknownName, match="'link1'"):
        robot.link("lnk1")
    with pytest.raises(UnknownName):
        robot.frame("nothing like it")
    with pytest.raises(KeyError):
        robot.configuration(joints={"nope": 1.0})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.integrate(np.zeros(r.nq + 1), np.zeros(r.nv)), "q: expected"),
        (lambda r: r.integrate(r.neutral(), np.zeros(r.nv + 1)), "dv: expected"),
        (lambda r: r.difference(r.neutral(), np.zeros((2, 2, r.nq))), "q1: expected"),
        (lambda r: r.integrate(np.zeros((2, r.nq)), np.zeros((3, r.nv))), "batches of 2 and 3"),
        (lambda r: r.integrate("abc", np.zeros(r.nv)), "q: expected"),
        (lambda r: r.with_gravity((0, 0)), "gravity"),
    ],
)
def test_wrong_arrays_are_named(call, message):
    with pytest.raises(ShapeError, match=message):
        call(ladder.chain())


def test_with_gravity_makes_another_robot_and_leaves_the_first():
    robot = ladder.chain()
    moon = robot.with_gravity((0, 0, -1.62))
    assert moon.gravity.tolist() == [0, 0, -1.62] and robot.gravity.tolist() == [0, 0, -9.81]
    assert robot.with_gravity((0, 0, -1.62)) is moon
    assert robot.with_gravity(robot.gravity) is robot
    s = State(robot)
    assert relative(ladder.Plain(moon).gravity(s.q) * 9.81, ladder.Plain(robot).gravity(s.q) * 1.62) < 1e-13


def test_fingerprint_depends_on_the_mechanics_only():
    assert ladder.chain().fingerprint == ladder.chain().fingerprint
    assert ladder.chain().fingerprint != ladder.chain(base="floating").fingerprint
    assert ladder.chain().fingerprint != ladder.chain().with_gravity((0, 0, 0)).fingerprint


@pytest.mark.parametrize(("lower", "upper"), [(-1e16, 1e16), (-0.5, 1e16), (-1e16, 0.5), (None, None)])
def test_a_limit_beyond_what_angles_may_be_is_none(lower, upper):
    b = ModelBuilder("spinner").link("a").link("b", 1.0, inertia=np.eye(3))
    robot = b.joint("j", "revolute", "a", "b", lower=lower, upper=upper).build()
    drawn = np.array([robot.random_configuration(seed)[0] for seed in range(200)])
    low = lower if lower == -0.5 else -np.pi
    high = upper if upper == 0.5 else np.pi
    assert low <= drawn.min() < 0.9 * low + 0.1 * high
    assert high >= drawn.max() > 0.1 * low + 0.9 * high
    assert np.isfinite(gravity_forces(robot, drawn[:, None])).all()


@pytest.mark.parametrize("length", [0.0, 0.99, 1.5])
@pytest.mark.parametrize("rows", [None, 3])
def test_integrate_and_difference_refuse_quaternions_that_are_not_unit(length, rows):
    """The position would move by the square of the length."""
    robot = ladder.chain(2, base="floating")
    q, dv = robot.neutral(), np.ones(robot.nv)
    bad = q.copy()
    bad[:4] *= length
    if rows:
        q, bad = np.tile(q, (rows, 1)), np.vstack([np.tile(q, (rows - 1, 1)), bad])
    place = rf"\[{rows - 1}, 0:4\]" if rows else r"\[0:4\]"
    for call, name in (
        (lambda: robot.integrate(bad, dv), "q"),
        (lambda: robot.difference(bad, q), "q0"),
        (lambda: robot.difference(q, bad), "q1"),
    ):
        with pytest.raises(rk.InvalidValue, match=f"{name}: expected a unit quaternion .* at {name}{place}"):
            call()


def test_trees_joints_and_factors_are_shown_in_a_line():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    assert repr(robot.tree) == "<Tree: 3 bodies, 1 loop joint, nq 3, nv 3>"
    assert repr(robot.tree.joint[1]) == "<JointModel continuous, axis (0, 1, 0)>"
    H = rk.crba(robot, np.zeros((4, 3)))
    assert repr(rk.ltdl(robot, H)) == "<LTDLFactor of 'four_bar': nv 3 of 4 states>"
