"""Pinocchio, MuJoCo and Drake, each by its own reader, on our robots and on public ones."""

from __future__ import annotations

import numpy as np
import pytest
from public import error

import robokit as rk
from robokit.parity import ENGINES, QUANTITIES, TOLERANCE, compare
from robokit.robot_names import own_robots

pytestmark = pytest.mark.parity

PUBLIC = (
    "talos_full_v2",
    "panda",
    "pr2",
    "solo12",
    "ur5",
    "allegro_left_hand",
    "hextilt_flying_arm_5",
    "tiago",
)
COUPLED = ("panda", "pr2", "baxter")

BODY = (
    '<inertial><origin xyz="{} 0.1 0.2"/><mass value="{}"/>'
    '<inertia ixx="1" iyy="1.1" izz="1.2" ixy="0.1" ixz="0" iyz="0"/></inertial>'
)
ODD = (
    f'<robot name="odd"><link name="r">{BODY.format(0, 3)}</link><link name="a">{BODY.format(0.3, 2)}</link>'
    f'<link name="b">{BODY.format(-0.1, 1)}</link>'
    '<joint name="h" type="continuous"><parent link="r"/><child link="a"/><axis xyz="0 1 0"/></joint>'
    '<joint name="j" type="KIND"><origin xyz=".3 .2 .1" rpy="0.2 0 0.7"/><parent link="a"/><child link="b"/>'
    '<axis xyz="AXIS"/></joint></robot>'
)


def check(found, robot, base, record_error):
    assert [c.engine for c in found] == list(ENGINES)
    for c in found:
        assert not c.failure, c.failure
        for what, worst in c.errors.items():
            record_error(c.engine.lower(), robot, base, what, worst)
        assert set(c.errors) == set(QUANTITIES) and c.agrees, c
        assert max(c.errors.values()) < TOLERANCE


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", [*own_robots(), *PUBLIC])
def test_all_engines_agree(name, base, record_error):
    path = rk.find_robot(name if name in own_robots() else f"example-robot-data:{name}")
    check(compare(path, rk.load_urdf(path, base=base), run="python"), name, base, record_error)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", COUPLED)
def test_all_engines_agree_on_coupled_robots(name, base, record_error):
    path = rk.find_robot(f"example-robot-data:{name}")
    found = compare(path, rk.load_urdf(path, base=base, mimic="couple"), run="python")
    check(found, f"{name} coupled", base, record_error)


def odd(tmp_path, kind, axis):
    path = tmp_path / "odd.urdf"
    path.write_text(ODD.replace("KIND", kind).replace("AXIS", axis))
    return path


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_planar_joints(base, tmp_path, record_error):
    path = odd(tmp_path, "planar", "0 0 1")
    check(compare(path, rk.load_urdf(path, base=base), run="python"), "planar", base, record_error)
    path = odd(tmp_path, "planar", "0.6 0.8 0")
    pinocchio, *others = compare(path, rk.load_urdf(path, base=base), run="python")
    assert "'j' is planar with normal (0.6 0.8 0)" in pinocchio.failure
    assert all(c.agrees and set(c.errors) == set(QUANTITIES) for c in others)


def test_one_joint(tmp_path):
    """Pinocchio gives a matrix of one column as a vector."""
    path = odd(tmp_path, "fixed", "0 1 0")
    robot = rk.load_urdf(path)
    assert robot.nv == 1
    for one in compare(path, robot, run="python"):
        assert set(one.errors) == set(QUANTITIES) and one.agrees, one


def test_a_joint_that_floats_inside_the_tree(tmp_path):
    path = odd(tmp_path, "floating", "0 0 1")
    by_name = {c.engine: c for c in compare(path, rk.load_urdf(path), run="python")}
    assert by_name["Pinocchio"].agrees
    assert "'j' is floating and does not start at the root's frame" in by_name["Drake"].failure


def test_what_drake_replaces_is_named():
    """A ball of water stands for inertias that no body has, and for inertia without mass (bolt)."""
    for name, link in (("allegro_left_hand", "link_11.0"), ("bolt", "FL_FOOT")):
        path = rk.find_robot(f"example-robot-data:{name}")
        by_name = {c.engine: c for c in compare(path, rk.load_urdf(path), run="python")}
        (change,) = by_name["Drake"].changes
        assert "ball of water" in change and link in change and by_name["Drake"].agrees
    path = rk.find_robot("example-robot-data:allegro_left_hand")
    (mujoco,) = (c for c in compare(path, rk.load_urdf(path), run="python") if c.engine == "MuJoCo")
    assert mujoco.agrees and any("robokit's own MJCF" in change for change in mujoco.changes)


def test_xacro_is_expanded_for_all(tmp_path, record_error):
    path = tmp_path / "odd.urdf.xacro"
    head = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'
    text = ODD.replace("KIND", "continuous").replace("AXIS", "${0.5 + 0.5} 0 0").replace("<robot", head)
    path.write_text(text, encoding="utf-8")
    check(compare(path, rk.load_urdf(path), run="python"), "xacro", "fixed", record_error)


@pytest.mark.parametrize("engine", ["MuJoCo", "Drake"])
def test_conversions_and_back(engine, tmp_path):
    """q, v, a there and back; power is the same in both programs' coordinates."""
    robot = rk.load_urdf(odd(tmp_path, "planar", "0.6 0.8 0"), base="floating")
    to = adapter(engine, tmp_path / "odd.urdf", robot)
    rng = np.random.default_rng(4)
    q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
    assert error(to.q_back(to.q(q)), q) < 1e-14
    assert error(to.v_back(q, to.v(q, v)), v) < 1e-14
    assert error(to.a_back(q, v, to.a(q, v, a)), a) < 1e-14
    assert error(to.force_back(q, to.force(q, tau)), tau) < 1e-14
    assert to.v(q, v) @ to.force(q, tau) == pytest.approx(v @ tau, rel=1e-13)
    h = 1e-6
    # The other program's acceleration is the rate of its velocity along the motion.
    ahead, behind = (to.v(robot.integrate(q, s * h * (v + s * h / 2 * a)), v + s * h * a) for s in (1, -1))
    assert error((ahead - behind) / (2 * h), to.a(q, v, a)) < 1e-7


def adapter(engine, path, robot):
    from robokit.interop import DrakeAdapter, MujocoAdapter
    from robokit.parity import plain_text

    if engine == "MuJoCo":
        import mujoco

        spec = mujoco.MjSpec.from_string(plain_text(path.read_bytes()))
        spec.body("r").add_freejoint()
        return MujocoAdapter(robot, spec.compile())
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(plain_text(path.read_bytes()), "urdf")
    plant.Finalize()
    return DrakeAdapter(robot, plant)


BALL = (
    '<mujoco model="ball"><worldbody><body name="arm" pos="0 0 1"><joint name="ball" type="ball"/>'
    '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0.05 -0.2"/><body name="hand" pos="0 0 -0.5">'
    '<joint name="hinge" axis="0 1 0"/><geom type="box" size="0.1 0.2 0.1" pos="0 0.1 -0.2"/>'
    "</body></body></worldbody></mujoco>"
)


def test_a_ball_joints_quaternion_is_in_the_order_of_the_other_program(tmp_path):
    import mujoco
    import pinocchio as pin

    from robokit.interop import MujocoAdapter, PinocchioAdapter

    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    robot, rng = rk.load(path), np.random.default_rng(0)
    q, (v, a) = robot.random_configuration(rng), rng.standard_normal((2, robot.nv))
    model = pin.buildModelFromMJCF(str(path))
    to = PinocchioAdapter(robot, model)
    tau = pin.rnea(model, model.createData(), to.q(q), to.v(v), to.v(a))
    assert error(to.v_back(tau), rk.rnea(robot, q, v, a)) < 1e-13
    assert error(to.q_back(to.q(q)), q) < 1e-15
    with pytest.raises(rk.ModelError, match="'floating_base': expected a floating joint with 7 coordinates"):
        PinocchioAdapter(rk.load_urdf(rk.find_robot("double_pendulum"), base="floating"), model)
    for theirs in (to, MujocoAdapter(robot, mujoco.MjModel.from_xml_path(str(path)))):
        with pytest.raises(rk.ShapeError, match="norm"):
            theirs.q(2.0 * q)


def test_a_joint_of_another_kind_is_refused(tmp_path):
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    from robokit.interop import DrakeAdapter

    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.Finalize()
    with pytest.raises(rk.ModelError, match="'ball': expected a spherical joint with 4 coordinates"):
        DrakeAdapter(rk.load(path), plant)
