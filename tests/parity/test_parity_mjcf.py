"""Our MJCF in MuJoCo: H, C, forces, accelerations, momenta and poses of the robot that was written."""

from __future__ import annotations

import warnings

import ladder
import numpy as np
import pytest
from public import error

import robokit as rk
from robokit import robot_names
from robokit.conventions import LARGEST_ANGLE
from robokit.dynamics.singular import singular_joint
from robokit.interop import MujocoAdapter
from robokit.mjcf import to_mjcf
from robokit.parity.comparison import State, mujoco_answering, own_answers

pytestmark = pytest.mark.parity

FILES = {path: name for name, path in sorted(robot_names.example_robots().items(), reverse=True)}
FILES |= {ladder.ROBOTS / f"{name}.urdf": name for name in ladder.OWN}

NO_ROBOT = {"alex_psyonic_hands.urdf", "ur3.urdf"}  # what the importer refuses

NO_BODY = {"icub", "icub_reduced", "romeo", "romeo_laas_small", "romeo_small"}
"""Robots with moving bodies that MuJoCo refuses: no mass, or an inertia that no body has."""


def compiled(robot: rk.Robot, **options):
    """MuJoCo's model of what is written."""
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # meshes of other kinds
        return mujoco.MjModel.from_xml_string(to_mjcf(robot, **options))


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name not in NO_ROBOT and p.stem not in NO_BODY], ids=FILES.get
)
def test_the_exported_model_is_the_robot(path, base, record_error):
    robot = rk.load_urdf(path, base=base)
    model = compiled(robot, meshes=base == "fixed")  # meshes stay as they are where the base moves
    assert (model.nq, model.nv) == (robot.nq, robot.nv)
    assert model.body_mass.sum() == pytest.approx(robot.total_mass, rel=1e-12)
    for joint in robot.joints:
        if joint.kind == "floating":
            continue
        theirs = model.joint(joint.name)
        assert (theirs.damping[0], theirs.frictionloss[0]) == (joint.damping, joint.friction)
        ranged = joint.kind != "continuous" and joint.lower < joint.upper
        ranged &= joint.lower > -LARGEST_ANGLE or joint.upper < LARGEST_ANGLE
        assert bool(theirs.limited[0]) == ranged
        if ranged:
            assert tuple(theirs.range) == tuple(np.clip([joint.lower, joint.upper], -1e6, 1e6))
    same(model, robot, FILES[path], base, record_error, [base == "floating"])


def same(model, robot, name, base, record_error, seeds=(0, 1)):
    """Every quantity of some states, to 1e-10."""
    answers = mujoco_answering(model, robot)
    regular = robot.nv > 0 and singular_joint(robot) is None
    for seed in seeds:
        rng = np.random.default_rng(int(seed))
        q, (v, a, tau) = robot.random_configuration(rng), rng.normal(size=(3, robot.nv))
        x = State(q, v, a, tau if regular else None)
        theirs, ours = answers(x), own_answers(robot, x, "python")
        assert set(theirs) == set(ours)
        for what, value in theirs.items():
            worst = error(value, ours[what]) if value.size else 0.0
            record_error("mujoco, our MJCF", name, base, what, worst)
            assert worst < 1e-10, what


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", sorted(NO_BODY))
def test_bodies_that_mujoco_refuses_were_warned_of(name, base):
    import mujoco

    robot = rk.load_urdf(next(path for path in FILES if path.stem == name), base=base)
    with pytest.warns(UserWarning, match="MuJoCo refuses"):
        text = to_mjcf(robot, meshes=False)
    with pytest.raises(ValueError, match=r"mass and inertia|eigenvalues|A \+ B >= C"):
        mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("seed", range(3))
def test_every_kind_of_joint(seed, base, record_error):
    kinds = ("revolute", "prismatic", "cylindrical", "planar", "spherical", "floating", "fixed")
    robot = ladder.random_tree(seed, base, kinds)
    same(compiled(robot), robot, f"tree {seed}", base, record_error)


def test_parts_of_joints_are_converted_and_back():
    robot = ladder.random_tree(0, "floating", ("cylindrical", "planar", "spherical", "floating"))
    to = MujocoAdapter(robot, compiled(robot))
    rng = np.random.default_rng(4)
    q, (v, a) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    assert error(to.q_back(to.q(q)), q) < 1e-14
    assert error(to.v_back(q, to.v(q, v)), v) < 1e-14
    assert error(to.a_back(q, v, to.a(q, v, a)), a) < 1e-14


def loops(kind: str) -> rk.Robot:
    """Three links on ball joints and a loop that is closed where they do not move."""
    b = rk.ModelBuilder("loops").link("ground")
    for k, parent in ((1, "ground"), (2, "b1"), (3, "ground")):
        b.link(f"b{k}", 1.0, (0.1, 0.0, 0.2), np.diag([1.0, 1.1, 1.2]))
        b.joint(f"j{k}", "spherical", parent, f"b{k}", rk.Placement(position=np.array([0.2, 0.1 * k, 0.0])))
    end = rk.Placement(ladder.rotation(np.random.default_rng(1)), np.array([0.1, 0.3, 0.2]))
    other = rk.Placement(position=np.array([0.2, 0.0, 0.0])) @ end  # b2 lies this far from b3
    return b.loop_joint("loop", kind, "b2", "b3", end, other, axis=(0.6, 0.0, 0.8)).build()


@pytest.mark.parametrize(("kind", "held"), [("spherical", 3), ("revolute", 5), ("fixed", 6)])
def test_loops_hold_what_their_joints_hold(kind, held):
    """The constraints' rows: as many as they take freedoms, and their violation that of the frames."""
    import mujoco

    robot = loops(kind)
    model = compiled(robot)
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    loop = robot.loop_joints[0]
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos).max() < 1e-12
    J = data.efc_J.reshape(-1, model.nv) if data.efc_J.size == data.nefc * model.nv else dense(model, data)
    assert np.linalg.matrix_rank(J, tol=1e-9) == held
    q = robot.random_configuration(2)
    data.qpos[:] = to.q(q)
    mujoco.mj_forward(model, data)
    poses = rk.forward_kinematics(robot, q)
    ends = []
    for link, at in (
        (loop.predecessor, loop.predecessor_placement),
        (loop.successor, loop.successor_placement),
    ):
        R, p = poses[link]
        ends.append((R @ at.rotation, R @ at.position + p))
    gap = ends[0][1] - ends[1][1]
    assert error(data.efc_pos[:3], gap) < 1e-12
    if kind == "revolute":
        along = [R @ loop.axis * 0.1 for R, _ in ends]
        assert error(data.efc_pos[3:], gap + along[0] - along[1]) < 1e-12


def dense(model, data):
    """The constraints' Jacobian where MuJoCo keeps it sparse."""
    J = np.zeros((data.nefc, model.nv))
    for row in range(data.nefc):
        k = slice(data.efc_J_rowadr[row], data.efc_J_rowadr[row] + data.efc_J_rownnz[row])
        J[row, data.efc_J_colind[k]] = data.efc_J[k]
    return J


def test_the_four_bar_closes():
    """At rest in a configuration whose loop is closed, MuJoCo finds no violation."""
    import mujoco

    robot = rk.load_urdf(rk.find_robot("four_bar"))
    model = compiled(robot)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert model.neq == 2 and np.abs(data.efc_pos[:6]).max() < 1e-12
    data.qpos[0] += 0.1
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[:6]).max() > 1e-3


def robot_of(name: str, base: str) -> rk.Robot:
    return rk.load_urdf(robot_names.example_robots()[name], base=base)


def test_mimic_is_a_constraint():
    import mujoco

    model = mujoco.MjModel.from_xml_string(to_mjcf(robot_of("panda", "fixed"), meshes=False))
    assert model.neq == 1 and tuple(model.eq_data[0, :2]) == (0.0, 1.0)


def free_bodies(placement: rk.Placement | None = None) -> rk.Robot:
    b = rk.ModelBuilder("two").link("ground")
    for k in (1, 2):
        b.link(f"b{k}", float(k), (0.1, 0.0, 0.2 * k), np.diag([1.0, 1.1, 1.2]))
        b.joint(f"j{k}", "floating", "ground", f"b{k}", placement)
    b.link("arm", 0.5, (0.2, 0.0, 0.0), 0.1 * np.eye(3))
    return b.joint("hinge", "revolute", "b1", "arm", axis=(0, 1, 0)).build()


def test_free_joints_of_a_fixed_robot():
    import mujoco

    robot = free_bodies()
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    rng = np.random.default_rng(3)
    q, (v, a) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    data.qpos[:], data.qvel[:] = to.q(q), to.v(q, v)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    assert error(to.matrix_back(q, M), rk.crba(robot, q)) < 1e-10
    assert error(to.bias_back(q, v, data.qfrc_bias, M), rk.bias_forces(robot, q, v)) < 1e-10
    assert error(to.a_back(q, v, data.qacc), rk.aba(robot, q, v, np.zeros(robot.nv))) < 1e-10
    assert error(to.a_back(q, v, to.a(q, v, a)), a) < 1e-14
    data.qacc[:] = to.a(q, v, a)
    mujoco.mj_inverse(model, data)
    assert error(to.force_back(q, data.qfrc_inverse), rk.rnea(robot, q, v, a)) < 1e-10


def test_free_joints_placed_elsewhere_have_other_coordinates():
    import mujoco

    model = mujoco.MjModel.from_xml_string(to_mjcf(free_bodies()))
    elsewhere = free_bodies(rk.Placement(position=np.array([0.1, 0.0, 0.0])))
    with pytest.raises(rk.ModelError, match="'j1' is floating and does not start"):
        MujocoAdapter(elsewhere, model)
