"""rk.load of MJCF: the robot moves as MuJoCo's does, has the file's surroundings, and says what it lacks."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path

import mjcf_robots
import numpy as np
import pytest

import robokit as rk
from robokit.meshes.read_mesh import read_mesh
from robokit.mjcf import to_mjcf
from robokit.model.edit import lock_joints
from robokit.parity import referee
from robokit.urdf import dump

pytestmark = pytest.mark.parity

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
PUBLIC = [*sorted(ASSETS.glob("*.xml")), Path(mujoco.__file__).parent / "testdata" / "model.xml"]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return mjcf_robots.write(tmp_path_factory.mktemp("zoo"))


class Beside:
    """MuJoCo's model of a file beside robokit's robot of it, joints and bodies by name."""

    def __init__(self, path, robot):
        self.robot = robot
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)

    def joints(self):
        for j in range(self.model.njnt):
            kind, name = int(self.model.jnt_type[j]), self.model.joint(j).name or f"joint_{j}"
            own = self.robot.joint("floating_base" if kind == 0 and self.robot.base == "floating" else name)
            yield kind, own, int(self.model.jnt_qposadr[j]), int(self.model.jnt_dofadr[j])

    def go_to(self, q, v):
        """Takes the state; returns J with MuJoCo's v = J v, and the rate of J times v."""
        m, d = self.model, self.data
        J, rate = np.zeros((m.nv, self.robot.nv)), np.zeros(m.nv)
        for kind, joint, at, dof in self.joints():
            x, u = q[joint.q_slice], joint.v_slice
            if kind == 0:  # MuJoCo: velocity in world axes, then angular in body axes
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, x[:4])
                R = R.reshape(3, 3)
                d.qpos[at : at + 7] = [*x[4:], *x[:4]]
                J[dof : dof + 3, u.start + 3 : u.stop], J[dof + 3 : dof + 6, u.start : u.start + 3] = (
                    R,
                    np.eye(3),
                )
                rate[dof : dof + 3] = R @ np.cross(v[u][:3], v[u][3:])
            elif kind == 1:
                d.qpos[at : at + 4], J[dof : dof + 3, u] = x, np.eye(3)
            else:
                d.qpos[at], J[dof, u.start] = x[0], 1.0
        d.qvel[:] = J @ v
        mujoco.mj_fwdPosition(m, d)
        mujoco.mj_fwdVelocity(m, d)
        return J, rate

    def H(self):
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M


def far(a, b):
    return np.abs(a - b).max() / max(1.0, np.abs(b).max())


@pytest.mark.parametrize("name", [*mjcf_robots.ROBOTS, *(path.stem for path in PUBLIC)])
def test_it_moves_as_in_mujoco(name, zoo):
    path = zoo.get(name) or next(path for path in PUBLIC if path.stem == name)
    robot = rk.load(path)
    beside, rng = Beside(path, robot), np.random.default_rng(0)
    assert robot.nv == beside.model.nv
    for _ in range(3):
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        J, rate = beside.go_to(q, v)
        H, force = beside.H(), beside.data.qfrc_bias
        # The weight of what has gravity compensation acts here.
        force = force - beside.data.qfrc_gravcomp if beside.model.body_gravcomp.any() else force
        assert far(rk.crba(robot, q), J.T @ H @ J) < 1e-12
        mine = rk.rnea(robot, q, v, np.zeros(robot.nv))
        if not beside.model.body_gravcomp.any():
            assert far(mine, J.T @ (force + H @ rate)) < 1e-12
        poses = rk.forward_kinematics(robot, q)
        for b in range(1, beside.model.nbody):
            body = beside.model.body(b).name or f"body_{b}"
            if body in robot.link_names:  # furniture is none
                R, p = poses[body]
                assert far(p, beside.data.xpos[b]) < 1e-12
                assert far(R, beside.data.xmat[b].reshape(3, 3)) < 1e-12
        bodies = {beside.model.body(b).name for b in range(beside.model.nbody)}
        for k in range(beside.model.nsite):
            site = beside.model.site(k).name
            site = f"{site}_frame" if site in bodies and f"{site}_frame" in robot.link_names else site
            assert far(poses[site][1], beside.data.site_xpos[k]) < 1e-12


@pytest.mark.parametrize("name", sorted(set(mjcf_robots.ROBOTS) - {"balls", "biped_with_loops", "snake"}))
def test_the_urdf_that_it_becomes_is_the_same_robot(name, zoo, tmp_path):
    robot, urdf = rk.load(zoo[name]), tmp_path / "robot.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a URDF cannot say
        urdf.write_text(dump(robot))
    verdict = referee(urdf, zoo[name])
    assert {(f.cause, f.name) for f in verdict.findings} == BEYOND_URDF.get(name, set()), verdict.findings
    assert verdict.dynamics.H < 1e-12 and verdict.dynamics.C < 1e-12


BEYOND_URDF = {
    "drone": {("shape-kind", "frame")},
    "dual_arm": {("shape-added", "world")},
    "hand": {("mimic-curved", "C_dip")},
    "held": {("gravity-off", "tip")},
    "linkage_gripper": {("spring-added", "right_spring_link_joint")},
    "meshes": {("mesh-scale", "body")},
    "references": {("gravity", "references"), ("spring-added", "turn")},
    "several": {("base-freed", "several")},
}
"""(cause, element) of what no URDF can say: curved laws, springs, gravity, furniture, ellipsoids."""


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("name", mjcf_robots.ROBOTS)
def test_the_mjcf_that_it_becomes_is_the_same_robot(name, links, zoo, tmp_path):
    # Several joints of one body come back as several joints of one body: MuJoCo refuses bodies without mass.
    robot = rk.load(zoo[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cameras and the like
        to_mjcf(robot, tmp_path / "again.xml", links=links)
    again, q = rk.load(tmp_path / "again.xml"), robot.random_configuration(2)
    assert again.joint_names == robot.joint_names and set(again.link_names) >= set(robot.link_names) - {
        "world"
    }
    assert far(rk.crba(again, q), rk.crba(robot, q)) < 1e-12
    theirs = mujoco.MjModel.from_xml_path(str(zoo[name]))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml")).nv == theirs.nv


@pytest.mark.slow
@pytest.mark.parametrize("name", mjcf_robots.ROBOTS)
def test_it_is_dropped_on_the_ground(name, zoo):
    robot = rk.load(zoo[name])
    scene = robot.scene
    ground = scene.ground or rk.Ground(height=-1.0)
    home = "home" if name == "quadruped" else "initial"
    run = rk.simulate(
        robot, robot.configuration(home), duration=3.0, ground=ground, actuators=scene.actuators
    )
    assert np.isfinite(run.q).all() and np.isfinite(run.v).all()
    swings = {
        "balls",
        "biped_with_loops",
        "compiler",
        "fused",
        "held",
        "linkage_gripper",
        "references",
        "snake",
    }
    assert np.abs(run.v[-1]).max() < (5.0 if name in swings else 0.02)
    weight = robot.total_mass * np.linalg.norm(robot.gravity)
    assert abs(run.summary["energy_balance"]) < 0.005 * weight  # as if it were 5 mm higher


def test_shapes_are_where_mujoco_has_them(zoo):
    robot = rk.load(zoo["meshes"])
    beside, q = Beside(zoo["meshes"], robot), robot.configuration("initial")
    q[7] = 0.4
    beside.go_to(q, np.zeros(robot.nv))
    poses = rk.forward_kinematics(robot, q)
    m, d = beside.model, beside.data
    for link in robot.links:
        geoms = [k for k in range(m.ngeom) if m.body(int(m.geom_bodyid[k])).name == link.name]
        assert (
            len(link.collisions) == len(link.visuals) == (len(geoms) if link.name in ("body", "arm") else 0)
        )
        for k, shape in zip(geoms, link.collisions, strict=False):
            R, p = poses[link.name]
            points = np.vstack([piece.vertices for piece in read_mesh(shape.geometry.path)])
            points = points * shape.geometry.scale @ shape.placement.rotation.T + shape.placement.position
            a, n = int(m.mesh_vertadr[m.geom_dataid[k]]), int(m.mesh_vertnum[m.geom_dataid[k]])
            theirs = m.mesh_vert[a : a + n] @ d.geom_xmat[k].reshape(3, 3).T + d.geom_xpos[k]
            apart = np.linalg.norm((points @ R.T + p)[:, None] - theirs, axis=2)
            assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-7
    red = robot.link("body").visuals[0]
    assert red.rgba == (1.0, 0.0, 0.0, 1.0) and red.geometry.scale == (0.1, 0.2, -0.15)


def test_visual_and_collision_groups(zoo):
    robot = rk.load(zoo["quadruped"])
    base, calf = robot.link("base"), robot.link("FL_calf")
    assert [len(base.visuals), len(base.collisions), len(calf.visuals), len(calf.collisions)] == [1, 1, 0, 2]
    assert base.visuals[0].rgba == (0.2, 0.2, 0.2, 1.0)


# Beside the robot
# ----------------


def test_actuators_and_keyframes(zoo):
    robot = rk.load(zoo["quadruped"])
    (servo,) = robot.scene.actuators
    assert (
        isinstance(servo, rk.PD)
        and servo.kp == dict.fromkeys(servo.joints, 100.0)
        and len(servo.joints) == 12
    )
    assert robot.joint("FL_hip_joint").effort == 24.0 and robot.joint("FL_hip_joint").friction == 0.2
    q = robot.configuration("home")
    assert q[:7].tolist() == [1, 0, 0, 0, 0, 0, 0.27] and q[7:10].tolist() == [0, 0.9, -1.8]
    assert robot.configuration("initial")[6] == 0.4 and robot.scene.dt == 0.004
    with pytest.raises(rk.UnknownName, match="home"):
        robot.configuration("hom")
    arm = rk.load(zoo["arm_with_gripper"])
    (servo,) = arm.scene.actuators
    assert (servo.kp["joint1"], servo.kd["joint3"], arm.joint("joint1").effort) == (4500.0, 350.0, 87.0)
    # A tendon of coupled fingers pulls as one of them: here half of each, and both move alike.
    assert (servo.kp["finger_joint2"], servo.kd["finger_joint2"]) == (100.0, 10.0)
    assert servo.effort == {"finger_joint2": 100.0}
    rover = rk.load(zoo["mobile_base"])
    servo, wheels = rover.scene.actuators
    assert isinstance(wheels, rk.Velocity) and wheels.gain == {"left_wheel": 4.0, "right_wheel": 4.0}
    assert servo.kp == {"lift": 500.0} and servo.kd["lift"] > 0.0


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="MuJoCo 4 has them")
def test_actuators_beside_those_with_several_controls_and_forces(tmp_path):
    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><worldbody><site name="t"/><body><joint name="a"/><geom size="0.1"/><site name="s"/></body>'
        '<body><joint name="b" actuatorfrcrange="-40 40"/><geom size="0.1"/></body></worldbody><actuator>'
        '<orientation name="turn" site="s" refsite="t" kp="10" kv="1"/>'
        '<pid name="servo" joint="a" kp="10" kv="1" gear="3"/>'
        '<motor name="m" joint="b" ctrlrange="-7 7" gear="2"/></actuator></mujoco>'
    )
    robot = rk.load(path)
    servo, motor = robot.scene.actuators
    assert (servo.kp, servo.kd, motor.joints) == ({"a": 90.0}, {"a": 9.0}, ("b",))
    assert robot.joint("b").effort == 14.0
    (left,) = [d for d in robot.diagnostics if d.severity == "warning"]
    assert left.element == "1 actuator ('turn')"


def test_a_servo_holds_what_mujocos_holds(zoo):
    # The same gains and the same target: at rest, joints hang by the same angle.
    path = zoo["arm_with_gripper"]
    robot = rk.load(path)
    q0 = robot.configuration("home")
    run = rk.simulate(robot, q0, duration=2.0, actuators=robot.scene.actuators)
    beside = Beside(path, robot)
    beside.go_to(q0, np.zeros(robot.nv))
    beside.data.ctrl[:3] = q0[:3]
    mujoco.mj_step(beside.model, beside.data, 1000)
    assert np.abs(run.q[-1, :3] - beside.data.qpos[:3]).max() < 1e-6


def test_a_tendon_closes_a_coupled_gripper_as_mujocos_does(zoo):
    path = zoo["arm_with_gripper"]
    robot = rk.load(path, mimic="couple")
    q0 = robot.configuration("home")
    (servo,) = robot.scene.actuators
    shut = dataclasses.replace(servo, target={"finger_joint2": 0.01})
    run = rk.simulate(robot, q0, duration=1.0, actuators=shut)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.ctrl[:] = [*data.qpos[:3], 0.01 * 100.0 / 0.01568627451]
    mujoco.mj_step(model, data, 500)
    finger = robot.joint("finger_joint2").q_slice.start
    assert run.q[-1, finger] == pytest.approx(data.qpos[3:].mean(), abs=1e-4)
    assert run.q[-1, finger] == pytest.approx(0.01, abs=2e-3)


def test_a_spring_stands_beside_the_motor_of_its_joint(zoo):
    robot = rk.load(zoo["references"])
    (motor,), (spring,) = robot.scene.actuators, robot.scene.springs
    assert isinstance(motor, rk.Torque) and "turn" in motor.joints
    assert (spring.joint, spring.stiffness, spring.damping) == ("turn", 5.0, 0.0)
    assert spring.rest == pytest.approx(np.radians(40))
    (said,) = [d for d in robot.diagnostics if "spring" in d.element]
    assert said.code == "rewritten" and "springs=robot.scene.springs" in said.message


SPRINGS = """<mujoco><option gravity="0 0 -3" timestep="1e-4" integrator="RK4"/>
<worldbody>
  <body name="post" pos="0.1 0 1"><site name="w" pos="0 0 0.2"/></body>
  <body name="a"><joint name="h" type="slide" {0} damping="2 {2}" springref="0.1"/>
    <joint name="k" axis="0 1 0" stiffness="4" springref="20"/>
    <geom size="0.1"/><site name="s" pos="0.2 0 0"/>
    <body name="b" pos="0.5 0 0"><joint name="l" axis="0 1 0" damping="0.1"/>
      <geom size="0.1" pos="0.1 0 0"/><site name="e" pos="0.3 0 0"/></body></body>
</worldbody>
<tendon>
  <spatial name="bent" stiffness="10 {1}" damping="2 {2}" springlength="0.1 0.8">
    <site site="w"/><site site="s"/></spatial>
  <spatial name="rope" stiffness="30" springlength="0 0.4"><site site="w"/><site site="e"/></spatial>
  <spatial name="band" stiffness="40" damping="0.6" springlength="0.4 0.6">
    <site site="s"/><site site="e"/></spatial>
  <spatial name="plain" stiffness="40" damping="0.6"><site site="e"/><site site="w"/></spatial>
  <fixed name="f" stiffness="4 {1}" damping="0.2 {2}" springlength="0.1 0.3">
    <joint joint="l" coef="-2"/></fixed>
  <fixed name="g" stiffness="4" damping="0.2" springlength="-0.1 0.1"><joint joint="k" coef="-2"/></fixed>
</tendon></mujoco>"""
POWERS = SPRINGS.format('stiffness="10 3 5"', "3 5", "0.3 0.7")
LINEAR = SPRINGS.format('stiffness="10"', "0", "0")


BOTH = [LINEAR, *([POWERS] if int(mujoco.__version__.split(".")[0]) > 3 else [])]


@pytest.mark.parametrize("text", BOTH)
def test_springs_pull_as_mujocos_do(text, tmp_path):
    (tmp_path / "r.xml").write_text(text)
    robot = rk.load(tmp_path / "r.xml")
    springs = robot.scene.springs
    assert {s.name.partition("_")[0] for s in springs} == {
        "h",
        "k",
        "bent",
        "rope",
        "band",
        "plain",
        "f",
        "g",
    }
    assert {s.a for s in springs if isinstance(s, rk.Spring)} >= {"world", "a"}  # furniture is of the world
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng, dt = np.random.default_rng(0), 1e-6
    damping = np.array([joint.damping for joint in robot.joints])
    for _ in range(4):
        q, v = rng.normal(size=3), rng.normal(size=3)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        # M dv/dt of one short step, with springs and without
        both = [rk.simulate(robot, q, v, duration=dt, dt=dt, springs=given).v[-1] for given in (springs, ())]
        force = rk.crba(robot, q) @ (both[0] - both[1]) / dt - damping * v
        assert far(force, data.qfrc_passive) < 1e-3
    data.qpos[:], data.qvel[:] = q, v
    run = rk.simulate(robot, q, v, duration=0.2, dt=1e-4, springs=springs)
    while data.time < 0.2 - 1e-9:
        mujoco.mj_step(model, data)
    assert far(run.q[-1], data.qpos) < 1e-4


def test_a_files_springs_on_the_command_line_and_the_page(tmp_path, capsys):
    from robokit.cli import main
    from robokit.viewer import write_page

    (tmp_path / "r.xml").write_text(LINEAR)
    where = ["--duration", "0.05", "-o", f"{tmp_path}/page.html", "--no-open", "--save", f"{tmp_path}/r.npz"]
    assert main(["simulate", f"{tmp_path}/r.xml", "--scene", *where]) == 0
    robot = rk.load(tmp_path / "r.xml")
    run = rk.Trajectory.load(tmp_path / "r.npz")
    assert [s.name for s in run.springs] == [s.name for s in robot.scene.springs]
    assert max(np.abs(s.force).max() for s in run.springs) > 1.0
    done = rk.convert(robot, tmp_path / "r.sdf", to="sdf")
    assert any(f"springs ({len(robot.scene.springs)})" in each for each in done.said)
    write_page(robot, tmp_path / "live.html", live=True, walk=False)
    if len(BOTH) > 1:
        (tmp_path / "p.xml").write_text(POWERS)
        with pytest.warns(UserWarning, match="no springs whose force is a function: h, f, bent"):
            write_page(rk.load(tmp_path / "p.xml"), tmp_path / "live.html", live=True, walk=False)


def test_springs_follow_the_edits_of_a_robot(tmp_path):
    (tmp_path / "r.xml").write_text(LINEAR)
    robot = rk.load(tmp_path / "r.xml")
    less = lock_joints(robot, {"l": 0.0})
    kept = {s.name.partition("_")[0] for s in less.scene.springs}
    assert kept == {*"hkg", "bent", "rope", "plain"}  # the band is between parts of one body now
    assert "springs" in repr(less.scene)
    rk.simulate(less, duration=0.01, springs=less.scene.springs)


def test_a_tendon_of_constant_length_is_a_rod(tmp_path):
    rod = '<tendon><spatial name="rod"><site site="w"/><site site="e"/></spatial></tendon>'
    text = re.sub("<tendon>.*</tendon>", rod, LINEAR, flags=re.S)
    held = '<equality><tendon tendon1="rod" polycoef="0.1 0 0 0 0"/></equality></mujoco>'
    (tmp_path / "r.xml").write_text(text.replace("</mujoco>", held))
    robot = rk.load(tmp_path / "r.xml")
    (loop,) = robot.loop_joints
    model = mujoco.MjModel.from_xml_string(text)
    assert (loop.kind, loop.name) == ("distance", "rod")
    assert loop.length == pytest.approx(model.tendon_length0[0] + 0.1)
    assert not [d for d in robot.diagnostics if "tendon" in d.element or "loop" in d.element]


def test_the_ground_and_what_stands_on_it(zoo):
    robot = rk.load(zoo["scenery"])
    ground = robot.scene.ground
    assert ground.terrain.heights.shape == (4, 3) and ground.terrain.heights.max() == pytest.approx(0.2)
    model = mujoco.MjModel.from_xml_path(str(zoo["scenery"]))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    at, cell = ground.terrain.origin, ground.terrain.cell
    for i in range(4):
        for j in range(3):
            x, y = at[0] + 0.999 * cell[0] * i + 1e-3, at[1] + 0.999 * cell[1] * j + 1e-3
            down = mujoco.mj_rayHfield(model, data, 0, np.array([x, y, 5.0]), np.array([0, 0, -1.0]))
            down = down[0] if isinstance(down, tuple) else down
            assert 5.0 - down == pytest.approx(at[2] + ground.terrain.heights[i, j], abs=2e-3)
    assert ground.up == pytest.approx([np.sin(np.radians(8)), 0, np.cos(np.radians(8))])
    assert [solid.kind for solid in ground.shapes] == ["box", "cylinder"]
    assert ground.shapes[1].placement.position.tolist() == [-1.0, 0.0, 0.2]
    assert ("ball", "tail") in robot.scene.apart and robot.nbodies == 2
    assert rk.load(zoo["humanoid"]).scene.ground.friction == 0.8  # MuJoCo: the larger of the two
    rover = rk.load(zoo["mobile_base"]).scene.ground
    assert (rover.torsional, rover.rolling) == (0.01, 0.001) and rover.friction["left"] == 1.2


def test_excluded_bodies_pass_through_each_other(zoo):
    robot = rk.load(zoo["dual_arm"])
    pairs = rk.collision_pairs(robot)
    assert ("l_fore", "r_fore") not in pairs and "excluded by the file" in repr(pairs)
    assert len(rk.load(zoo["humanoid"]).scene.apart) == 1


def test_constraints(zoo):
    hand = rk.load(zoo["hand"])
    assert hand.joint("B_dip").mimic == rk.Mimic("B_pip", 0.8, 0.05)
    assert hand.joint("A_dip").mimic == rk.Mimic("A_pip", 0.8, 0.0)
    assert hand.joint("C_dip").mimic is None
    assert rk.load(zoo["hand"], mimic="couple").nv == hand.nv - 2
    (loop,) = rk.load(zoo["biped_with_loops"]).loop_joints
    assert (loop.name, loop.kind, loop.predecessor, loop.successor) == ("rod_end", "spherical", "rod", "shin")
    held = rk.load(zoo["held"])
    (loop,) = held.loop_joints
    assert held.base == "floating" and "world" in (loop.predecessor, loop.successor)
    bar = rk.load(zoo["four_bar"])
    q = rk.close_loops(bar, bar.configuration({"crank": 0.2}))
    beside = Beside(zoo["four_bar"], bar)
    beside.go_to(q, np.zeros(3))
    assert np.abs(beside.data.site_xpos[0] - beside.data.site_xpos[1]).max() < 1e-9


# Files as they are met
# ---------------------

PLATE = """<mujoco model="plate"{0}><compiler meshdir="assets"/><asset><mesh file="b.obj"/></asset><worldbody>
<geom type="plane" name="wall" size="1 1 1" zaxis="1 0 0" pos="-1 0 0"/>
<geom type="plane" name="floor" size="1 1 1"/>
<body name="plate" pos="0 0 .2"><freejoint/><geom type="mesh" mesh="b"/>
<geom size=".1" friction=".4 .02 .01" {1}/></body></worldbody></mujoco>"""


@pytest.fixture
def plate(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "b.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    (tmp_path / "plate.xml").write_text(PLATE.format("", ""))
    return tmp_path


def test_meshes_of_a_file_named_from_its_folder(plate, monkeypatch):
    monkeypatch.chdir(plate)
    (plate / "x.xml.xacro").write_text(PLATE.format(' xmlns:xacro="http://www.ros.org/wiki/xacro"', ""))
    for name in ("plate.xml", "x.xml.xacro"):
        robot = rk.load(name)
        mesh = robot.link("plate").collisions[0].geometry
        assert mesh.path == plate / "assets" / "b.obj" and mesh.path.is_file()
    with_nan = plate / "nan.xml"
    with_nan.write_text((plate / "plate.xml").read_text().replace("<geom size", '<geom mass="nan" size'))
    assert any("NaN" in d.message for d in rk.load("nan.xml").diagnostics)
    assert not (plate / "MUJOCO_LOG.TXT").exists()


@pytest.mark.parametrize("priority, friction", [("", 1.0), ('priority="1"', 0.4)])
def test_a_geom_of_higher_priority_has_its_own_friction(priority, friction, plate):
    text = PLATE.format("", priority).replace('<geom type="mesh" mesh="b"/>', "")
    (plate / "p.xml").write_text(text)
    robot = rk.load(plate / "p.xml")
    ground = robot.scene.ground
    assert ground.friction == friction and ground.height == 0.0 and ground.normal is None
    (wall,) = [d for d in robot.diagnostics if d.severity == "warning"]
    assert "'wall'" in wall.element


def test_a_urdf_names_limits_that_there_are_not(tmp_path):
    (tmp_path / "r.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint name="s" type="slide"/><geom size=".1"/><body name="b">'
        '<joint name="h" range="-9 9"/><geom size=".1"/></body></body></worldbody></mujoco>'
    )
    robot = rk.load(tmp_path / "r.xml")
    rk.convert(robot, tmp_path / "r.urdf")
    pinocchio = pytest.importorskip("pinocchio")
    assert pinocchio.buildModelFromUrdf(str(tmp_path / "r.urdf")).nv == 2
    again = rk.load(tmp_path / "r.urdf", strict=True)
    for name in ("s", "h"):
        mine, back = robot.joint(name), again.joint(name)
        assert (mine.lower, mine.upper, mine.effort, mine.velocity) == (
            back.lower,
            back.upper,
            back.effort,
            back.velocity,
        )


def test_flags_that_switch_off_what_moves_a_robot_are_said(tmp_path):
    flags = '<option><flag limit="disable" equality="disable"/></option>'
    body = '<worldbody><body name="a"><joint/><geom size=".1"/></body></worldbody>'
    (tmp_path / "r.xml").write_text(f"<mujoco>{flags}{body}</mujoco>")
    (said,) = [d for d in rk.load(tmp_path / "r.xml").diagnostics if d.severity == "warning"]
    assert "'equality'" in said.element and "'limit'" in said.element


# Bases and trees
# ---------------


def test_what_the_base_is(zoo, tmp_path):
    dog, arm = zoo["quadruped"], zoo["arm_with_gripper"]
    assert rk.load(dog).base == "floating" and rk.load(arm).base == "fixed"
    assert rk.load(dog, base="fixed").nv == 12
    free = rk.load(arm, base="floating")
    assert free.nv == rk.load(arm).nv + 6 and free.body_name(1) == "link0"
    several = zoo["several"]
    world = rk.load(several)
    assert world.joint_names == ("rail", "pivot", "box_free", "ball_free")
    assert rk.load(several, root="box").base == "floating" and rk.load(several, root="cart").nv == 2
    with pytest.raises(rk.LoadError, match="'cart', 'box', 'ball'; root=NAME"):
        rk.load(several, base="floating")
    with pytest.raises(rk.UnknownName, match="did you mean 'ball'"):
        rk.load(several, root="bal")


def test_a_weld_to_a_mocap_body_holds_to_the_world(tmp_path):
    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><worldbody><body name="target" mocap="true" pos="0.2 0 1"/><body name="hand" pos="0 0 1">'
        '<freejoint/><geom size="0.1"/></body>'
        '<body name="box" pos="1 0 1"><freejoint/><geom size="0.1"/></body>'
        '</worldbody><equality><weld name="w" body1="hand" body2="target"/>'
        '<connect name="c" body1="hand" body2="box" anchor="0.5 0 0"/></equality></mujoco>'
    )
    robot = rk.load(path, root="hand")
    assert robot.name == "r"
    (loop,) = robot.loop_joints
    assert (loop.kind, loop.successor) == ("fixed", "world") and loop.successor_placement.position[0] == 0.2
    assert any("'c'" in d.element and d.code == "left-out" for d in robot.diagnostics)
    assert [loop.name for loop in rk.load(path).loop_joints] == ["w", "c"]


def test_a_free_joint_with_a_rotor(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint type="free" armature="0.3"/><geom size="0.1"/></body>'
        "</worldbody></mujoco>"
    )
    robot = rk.load(path)
    beside = Beside(path, robot)
    q, v = robot.random_configuration(1), np.arange(1.0, 7.0)
    J, rate = beside.go_to(q, v)
    H = beside.H()
    assert far(rk.crba(robot, q), J.T @ H @ J) < 1e-12
    # Along the axes of the world, the armature also resists what the turning body's axes make of v.
    along_the_world = np.concatenate([np.zeros(3), 0.3 * np.cross(v[:3], v[3:])])
    theirs = J.T @ (beside.data.qfrc_bias + H @ rate)
    assert far(rk.bias_forces(robot, q, v) + along_the_world, theirs) < 1e-12
    assert any("of the world" in d.message for d in robot.diagnostics)


# What is said
# ------------

LACKING = {
    "sensor": '<sensor><gyro site="s" name="turning"/></sensor>',
    "camera": "<worldbody><camera name='eye'/></worldbody>",
    "light": "<worldbody><light name='lamp'/></worldbody>",
    "tendon with springs through space": '<tendon><spatial name="rope" stiffness="3"><site site="s"/>'
    '<site site="t"/><site site="s"/></spatial></tendon>',
    "tendon with springs of several joints": "<worldbody><body><joint name='k'/><geom size='1'/></body>"
    '</worldbody><tendon><fixed name="sum" stiffness="3"><joint joint="h" coef="1"/>'
    '<joint joint="k" coef="1"/></fixed></tendon>',
    "tendon with more than a spring": '<tendon><spatial name="leash" limited="true" range="0 1">'
    '<site site="s"/><site site="t"/></spatial></tendon>',
    "actuator": '<actuator><motor name="jet" site="s" gear="0 0 1 0 0 0"/></actuator>',
    "muscle": '<actuator><muscle name="biceps" joint="h" lengthrange="0 1"/></actuator>',
    "option": '<option density="1.2"/>',
    "body with gravity of their own": '<worldbody><body name="c" gravcomp="1"><freejoint/><geom size="1"/>'
    "</body></worldbody>",
    "limit of ball joints": '<worldbody><body name="c"><joint name="cone" type="ball" limited="true" '
    'range="0 1"/><geom size="1"/></body></worldbody>',
    "surface of bodies": '<worldbody><body name="c"><geom name="tray" type="plane" size="1 1 1"/><body>'
    '<joint/><geom size="1"/></body></body></worldbody>',
    "keyframe": '<keyframe><key name="run" qvel="1"/></keyframe>',
    "inactive constraint": '<equality><joint name="lock" joint1="h" active="false"/></equality>',
    "coupling of joints": '<equality><joint name="hold" joint1="h" polycoef="0.3 0 0 0 0"/></equality>',
    "skin": "",
    "disabled actuator": '<option actuatorgroupdisable="2"/><actuator>'
    '<motor name="off" joint="h" group="2"/></actuator>',
    "pair with friction of their own": '<worldbody><body><joint/><geom name="g1" size="1"/></body><body>'
    '<joint/><geom name="g2" size="1"/></body></worldbody><contact><pair name="icy" geom1="g1" geom2="g2" '
    'friction="0.1 0.1"/></contact>',
}

LACKING_OF_MUJOCO_4 = {
    "joint with springs that yield": '<worldbody><body><joint name="clay" stiffness="1" springyield="2"/>'
    '<geom size="1"/></body></worldbody>',
    "spring of ball or free joints": '<worldbody><body><joint name="soft" type="ball" stiffness="0 0 1"/>'
    '<geom size="1"/></body></worldbody>',
    "geom with adhesion": '<worldbody><geom name="glue" size="1" adhesion="3"/></worldbody>',
    "geom with a surface velocity": '<worldbody><geom name="belt" size="1" surfacevel="1 0 0"/></worldbody>',
}
if int(mujoco.__version__.split(".")[0]) >= 4:
    LACKING |= LACKING_OF_MUJOCO_4


@pytest.mark.parametrize("what", [what for what, text in LACKING.items() if text])
def test_what_the_robot_lacks_is_said(what, tmp_path):
    path = tmp_path / "r.xml"
    plain = (
        '<mujoco><worldbody><site name="t"/><body name="b"><joint name="h"/><geom size="0.1"/>'
        '<site name="s"/></body></worldbody>{}</mujoco>'
    )
    path.write_text(plain.format(""))
    assert rk.load(path).diagnostics == []
    path.write_text(plain.format(LACKING[what]))
    word = {"muscle": "actuator"}.get(what, what)
    found = [d for d in rk.load(path).diagnostics if d.element.startswith(f"1 {word} (")]
    assert len(found) == 1, rk.load(path).diagnostics
    name = LACKING[what].split('name="')[-1].split('"')[0] if "name=" in LACKING[what] else ""
    assert name in found[0].element or what in ("camera", "light", "coupling of joints")
    warned = found[0].severity == "warning"
    if warned:
        with pytest.raises(rk.LoadError, match="refused by strict=True"):
            rk.load(path, strict=True)


# Bad files
# ---------

BAD = {
    "bad number": ('<mujoco><worldbody><body><geom size="x"/></body></worldbody></mujoco>', "size"),
    "broken XML": ("<mujoco><worldbody><body>", "MuJoCo cannot load it"),
    "no mesh": (
        '<mujoco><asset><mesh name="m" file="no.obj"/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>',
        "no.obj",
    ),
    "itself": ('<mujoco><include file="r.xml"/><worldbody/></mujoco>', "already included"),
    "no mass": ('<mujoco><worldbody><body name="hollow"><freejoint/></body></worldbody></mujoco>', "hollow"),
    "nothing": ("<mujoco/>", "no body"),
    "huge gear": (
        '<mujoco><worldbody><body><joint name="h"/><geom size="1"/></body></worldbody><actuator>'
        '<motor joint="h" gear="1e200"/></actuator></mujoco>',
        "joint 'h': its (armature|damping) is nan",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_one_clear_error(what, tmp_path):
    path = tmp_path / "r.xml"
    path.write_text(BAD[what][0])
    with pytest.raises(rk.LoadError, match=BAD[what][1]) as caught:
        rk.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_hostile_file_ends(tmp_path, monkeypatch):
    from robokit.formats import other_programs

    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><worldbody><replicate count="100000000"><body><freejoint/><geom size="1"/></body>'
        "</replicate></worldbody></mujoco>"
    )
    monkeypatch.setattr(other_programs._child, "seconds", 4.0)
    with pytest.raises(rk.LoadError, match=r"stopped after 4 s|GiB of memory|ended with"):
        rk.load(path)


# Everything that takes a robot
# -----------------------------

COMMANDS = {
    "info": ["info"],
    "view": ["view", "-o", "page.html", "--no-open"],
    "fall": ["fall", "--duration", "0.05", "-o", "fall.html", "--no-open"],
    "simulate": ["simulate", "--neutral", "--duration", "0.05", "-o", "run.html", "--no-open"],
    "check": ["check"],
    "parity": ["parity", "--states", "1"],
    "mjcf": ["mjcf", "-o", "out.xml"],
    "sparsity": ["sparsity", "-o", "H.png"],
    "cost": ["cost"],
    "codegen": ["codegen", "--function", "crba", "-o", "c"],
    "sweep": ["sweep", "--count", "4", "--duration", "0.02", "--workers", "0", "-o", "falls"],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Where all commands write: the child that has imported MuJoCo belongs to a folder."""
    return tmp_path_factory.mktemp("written")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_an_mjcf(command, zoo, written, monkeypatch, capsys):
    from robokit.cli import main

    monkeypatch.chdir(written)
    name, *options = COMMANDS[command]
    status = main([name, str(zoo["quadruped"]), *options])
    out = capsys.readouterr()
    assert status == 0, out
    assert "quadruped" in out.out and "Traceback" not in out.err
    for file in (text for text in options if text.endswith((".html", ".xml", ".png"))):
        assert (written / file).stat().st_size > 1000


def test_a_files_own_scene_on_the_command_line(zoo, tmp_path, capsys):
    from robokit.cli import main

    where = ["--duration", "1", "-o", str(tmp_path / "page.html"), "--no-open"]
    assert (
        main(
            [
                "simulate",
                str(zoo["quadruped"]),
                "--scene",
                "--start",
                "home",
                "--save",
                f"{tmp_path}/r.npz",
                *where,
            ]
        )
        == 0
    )
    run = rk.Trajectory.load(tmp_path / "r.npz")
    assert run.q[0, 6] == 0.27 and 0.2 < run.q[-1, 6] < 0.3  # its servos hold it up
    capsys.readouterr()
    assert main(["simulate", "arm", "--scene", *where]) == 2 and "has none" in capsys.readouterr().err
    assert main(["simulate", str(zoo["quadruped"]), "--start", "hom", *where]) == 2
    assert "did you mean 'home'" in capsys.readouterr().err


def test_check_says_what_a_file_has(zoo, tmp_path, capsys):
    from robokit.cli import main

    assert main(["check", str(zoo["hand"])]) == 0
    out = capsys.readouterr().out
    assert "'C_dip'" in out and "left-out" in out and "9 moving joints" in out
    assert main(["check", "--strict", str(zoo["hand"])]) == 1
    bad = tmp_path / "bad.xml"
    bad.write_text(BAD["bad number"][0])
    capsys.readouterr()
    assert main(["check", "--json", str(bad)]) == 1 and '"file-refused"' in capsys.readouterr().out
    heavy = tmp_path / "heavy.xml"
    heavy.write_text(
        '<mujoco><worldbody><body name="b"><joint name="j" limited="true" range="20 30"/><geom size="0.01" '
        'mass="5"/></body></worldbody></mujoco>'
    )
    main(["check", str(heavy)])
    assert "limit-excludes-zero" in capsys.readouterr().out


def test_a_root_on_the_command_line(zoo, capsys):
    from robokit.cli import main

    assert main(["info", str(zoo["several"]), "--root", "box"]) == 0
    assert "floating base, 1 moving body" in capsys.readouterr().out
    assert main(["info", "arm", "--root", "box"]) == 2
    assert "root=" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["humanoid", "biped_with_loops"])
def test_the_page_and_a_saved_run(name, zoo, tmp_path):
    robot = rk.load(zoo[name])
    run = rk.simulate(robot, robot.configuration("initial"), duration=0.05, ground=robot.scene.ground)
    run.to_html(tmp_path / "page.html")
    run.save(tmp_path / "run.npz")
    again = rk.Trajectory.load(tmp_path / "run.npz")
    assert again.robot.joint_names == robot.joint_names and np.array_equal(again.q, run.q)
