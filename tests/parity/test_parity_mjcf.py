"""Our MJCF in MuJoCo: H, C, mass and poses of the robot that was written."""

from __future__ import annotations

import warnings

import ladder
import numpy as np
import pytest
from public import error

import robokit as rk
import robokit.catalog
from robokit.interop import MujocoAdapter
from robokit.mjcf import to_mjcf

pytestmark = pytest.mark.parity

# ur5's root link is named "world", as MuJoCo's own fixed frame is
OTHERS = ("g1_29dof_rev_1_0", "talos_full_v2", "panda", "solo12", "double_pendulum", "ur5")


def robot_of(name: str, base: str) -> rk.Robot:
    own = ladder.ROBOTS / f"{name}.urdf"
    others = rk.catalog.example_robots()
    path = own if name in ladder.OWN else others.get(name) or others[name.split("_")[0]]
    return rk.load_urdf(path, base=base)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", (*ladder.OWN, *OTHERS))
def test_the_exported_model_is_the_robot(name, base, record_error):
    import mujoco

    robot = robot_of(name, base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loops and meshes, which are not compared here
        model = mujoco.MjModel.from_xml_string(to_mjcf(robot, meshes=False))
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    assert (model.nq, model.nv) == (robot.nq, robot.nv)
    assert model.body_mass.sum() == pytest.approx(robot.total_mass, rel=1e-12)
    for joint in robot.joints:
        if joint.kind == "floating":
            continue
        theirs = model.joint(joint.name)
        assert (theirs.damping[0], theirs.frictionloss[0]) == (joint.damping, joint.friction)
        if np.isfinite(joint.lower) and joint.kind != "continuous":
            assert theirs.limited[0] and tuple(theirs.range) == (joint.lower, joint.upper)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = to.q(q), to.v(q, v)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        poses = rk.forward_kinematics(robot, q)
        sites = {model.site(k).name: k for k in range(model.nsite)}
        at = [
            data.site_xpos[sites[link]] if link in sites else data.body(link).xpos
            for link in robot.link_names
        ]
        turned = [
            data.site_xmat[sites[link]] if link in sites else data.body(link).xmat
            for link in robot.link_names
        ]
        for what, got, expected in (
            ("H", to.matrix_back(q, M), rk.crba(robot, q)),
            ("C", to.bias_back(q, v, data.qfrc_bias, M), rk.bias_forces(robot, q, v)),
            ("position", at, poses.position),
            ("rotation", np.array(turned).reshape(-1, 3, 3), poses.rotation),
        ):
            worst = error(got, expected)
            record_error("mujoco, our MJCF", name, base, what, worst)
            assert worst < 1e-10, what


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
