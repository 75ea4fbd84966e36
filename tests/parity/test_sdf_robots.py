"""SDF as full robots: mass matrix, bias forces and poses beside Drake's own reading of the same files."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import robokit as rk
from robokit.errors import LoadError
from robokit.formats.drake import DrakeFiles, _take_out_loops
from robokit.parity.comparison import _inertias_as_written
from robokit.spatial.rotation import quat_wxyz_to_rotation

pytestmark = pytest.mark.parity

SOLID = """<inertial><pose>{c}</pose><mass>{m}</mass><inertia><ixx>0.02</ixx><ixy>0.001</ixy><ixz>-0.002</ixz>
<iyy>0.03</iyy><iyz>0.0015</iyz><izz>0.025</izz></inertia></inertial>"""


def solid(mass=1.0, com="0.03 -0.02 0.1 0.2 0.3 -0.4"):
    return SOLID.format(m=mass, c=com)


def model(body, version="1.11", name="robot", attributes="", head=""):
    return f'<sdf version="{version}"><model name="{name}" {attributes}>{head}{body}</model></sdf>'


BASE = f'<link name="base">{solid(2)}</link>'
ARM = f'<link name="arm"><pose>0.1 0 0.3 0 0.4 0.2</pose>{solid()}</link>'
HINGE = "<axis><xyz>{}</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis>"

CASES = {
    "frames, relative_to, expressed_in, degrees and quaternions": model(
        f"""<frame name="bench"><pose>0.1 0.2 0.3 0.1 0.2 0.3</pose></frame>
        <frame name="tip" attached_to="upper"><pose degrees="true">0 0 0.4 30 0 -45</pose></frame>
        <link name="base"><pose relative_to="bench">0.5 0 0 0 0.3 0</pose>{solid(2)}</link>
        <link name="upper"><pose relative_to="base" rotation_format="quat_xyzw">0 0.1 0.2 0.5 0.1 -0.3
        0.8062257748298549</pose>
        {solid(1.5)}</link>
        <link name="hand"><pose relative_to="tip">0.01 0.02 0.03 0 0 0.5</pose>{solid(0.5)}</link>
        <joint name="a" type="revolute"><pose>0.05 0 -0.1 0.3 0 0</pose><parent>base</parent>
        <child>upper</child><axis><xyz expressed_in="bench">1 2 3</xyz></axis></joint>
        <joint name="b" type="prismatic"><pose relative_to="tip">0 0 0 0.1 0 0</pose><parent>upper</parent>
        <child>hand</child><axis><xyz expressed_in="__model__">0 1 -1</xyz></axis></joint>
        <joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>""",
        head="<pose>1 2 3 0.1 0 0.2</pose>",
    ),
    "axes before 1.5 are the model's": model(
        f"""<link name="base"><pose>0 0 1 0.4 0 0.2</pose>{solid(2)}</link>
        <link name="arm"><pose>0.3 0 1 0 0.7 0</pose>{solid()}</link>
        <joint name="a" type="revolute"><pose>0 0 0.1 0 0 0</pose><parent>base</parent><child>arm</child>
        {HINGE.format("0 0.6 0.8")}</joint>""",
        version="1.4",
    ),
    "axes of 1.6 may be the parent model's": model(
        f"""<link name="base"><pose>0 0 1 0.4 0 0.2</pose>{solid(2)}</link>
        <link name="arm"><pose>0.3 0 1 0 0.7 0</pose>{solid()}</link>
        <link name="leg"><pose frame="arm">0.3 0 1 0 0.7 0</pose>{solid()}</link>
        <joint name="a" type="revolute"><parent>base</parent><child>arm</child>
        <axis><xyz>0 0.6 0.8</xyz><use_parent_model_frame>1</use_parent_model_frame></axis></joint>
        <joint name="b" type="continuous"><parent>arm</parent><child>leg</child>
        <axis><xyz>1 0.6 0.8</xyz></axis></joint>""",
        version="1.6",
    ),
    "screw": model(
        f"""<link name="base">{solid(2)}</link><link name="nut"><pose>0.1 0 0.3 0 0 0.2</pose>{solid()}</link>
        <joint name="a" type="screw"><pose>0.02 0 0 0.2 0 0</pose><parent>base</parent><child>nut</child>
        <screw_thread_pitch>0.06</screw_thread_pitch><axis><xyz>0 1 1</xyz></axis></joint>"""
    ),
    "ball with its frame off the link": model(
        f"""{BASE}{ARM}
        <joint name="a" type="ball"><pose>0.02 0 -0.1 0.2 0 0.1</pose><parent>base</parent><child>arm</child>
        </joint><link name="hand"><pose relative_to="arm">0 0 0.3 0 0 0</pose>{solid(0.3)}</link>
        <joint name="b" type="revolute"><parent>arm</parent><child>hand</child>
        {HINGE.format("0 1 0")}</joint>"""
    ),
    "universal": model(
        f"""{BASE}{ARM}
        <joint name="a" type="universal"><pose>0.02 0 -0.1 0.2 0 0.1</pose><parent>base</parent>
        <child>arm</child><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>"""
    ),
    "child nearer to the world than its parent": model(
        f"""<link name="base"><pose>0 0 0.1 0 0.1 0</pose>{solid(2)}</link>
        <link name="arm"><pose>0.1 0 0.3 0 0.4 0.2</pose>{solid()}</link>
        <joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
        <joint name="a" type="revolute"><pose>0.02 0 -0.1 0.2 0 0.1</pose><parent>arm</parent>
        <child>base</child>{HINGE.format("0.6 0 0.8")}</joint>"""
    ),
    "nested models, frames as ends, placement frames": model(
        f"""<link name="base">{solid(2)}</link>
        <model name="camera" placement_frame="mount"><pose relative_to="base">0.2 0.1 0 0 0 0.3</pose>
        <link name="body"><pose>0.1 0 0 0 0 0</pose>{solid(0.4)}</link>
        <link name="lens"><pose relative_to="body">0 0 0.05 0 0.1 0</pose>{solid(0.1)}</link>
        <frame name="mount" attached_to="body"><pose>0 0.02 0 0.3 0 0</pose></frame>
        <joint name="focus" type="prismatic"><parent>body</parent><child>lens</child>
        <axis><xyz>0 0 1</xyz></axis></joint></model>
        <frame name="plate" attached_to="base"><pose>0 0 0.3 0 0 0.1</pose></frame>
        <joint name="pan" type="revolute"><parent>plate</parent><child>camera::mount</child>
        {HINGE.format("0 0 1")}</joint>"""
    ),
    "rotor inertia, damping, friction, effort and velocity": model(
        f"""{BASE}{ARM}
        <joint name="a" type="revolute"><parent>base</parent><child>arm</child><axis><xyz>0 1 0</xyz>
        <limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>4</velocity></limit>
        <dynamics><damping>0.7</damping><friction>0.2</friction></dynamics></axis>
        <drake:rotor_inertia xmlns:drake="http://drake.mit.edu">0.002</drake:rotor_inertia>
        <drake:gear_ratio xmlns:drake="http://drake.mit.edu">5</drake:gear_ratio></joint>"""
    ),
    "a tree of three with a fixed link": model(
        f"""{BASE}<link name="plate"><pose>0 0.2 0.1 0 0.5 0</pose>{solid(0.7)}</link>{ARM}
        <link name="leg">{solid(0.9)}</link>
        <joint name="f" type="fixed"><parent>base</parent><child>plate</child></joint>
        <joint name="a" type="continuous"><parent>plate</parent><child>arm</child>
        <axis><xyz>0 1 0.5</xyz></axis></joint><joint name="b" type="prismatic"><pose>0 0 0.1 0 0 0</pose>
        <parent>plate</parent><child>leg</child>{HINGE.format("1 0 0")}</joint>"""
    ),
}


def drake_plant(file):
    """Drake's plant of a file, its bodies and joints by their names in the robot."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    logging.getLogger("drake").setLevel(logging.ERROR)
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(file))
    _take_out_loops(plant)
    plant.Finalize()

    def name(part):
        instance = plant.GetModelInstanceName(part.model_instance())
        return f"{instance}::{part.name()}".split("::", 1)[1]

    bodies = {name(body): body for body in map(plant.get_body, body_indices(plant))}
    return plant, bodies, {name(joint): joint for joint in map(plant.get_joint, plant.GetJointIndices())}


def body_indices(plant):
    from pydrake.multibody.tree import BodyIndex

    return [BodyIndex(k) for k in range(plant.num_bodies())]


def of_spherical(joint, rpy):
    """The robot's rotation for Drake's angles of a ball, and the map of Drake's velocity to the robot's."""
    from pydrake.math import RollPitchYaw

    R_FM = RollPitchYaw(rpy).ToRotationMatrix().matrix()
    R_CM = joint.frame_on_child().GetFixedPoseInBodyFrame().rotation().matrix()
    return R_CM @ R_FM @ R_CM.T, R_CM @ R_FM.T


def quat_of(R):
    from pydrake.math import RotationMatrix

    return RotationMatrix(R).ToQuaternion().wxyz()


def map_of(robot, plant, bodies, joints, q_there):
    """The robot's q for Drake's, and T with robokit's v = T Drake's v."""
    q, T = robot.neutral(), np.zeros((robot.nv, plant.num_velocities()))
    for joint in robot.joints:
        if joint.kind == "floating":
            body = bodies[joint.child_link]
            k, v = body.floating_positions_start(), body.floating_velocities_start_in_v()
            R = np.array(quat_wxyz_to_rotation(q_there[k : k + 4].tolist()).rows)
            q[joint.q_slice] = q_there[k : k + 7]
            T[joint.v_slice, v : v + 6] = np.kron(np.eye(2), R.T)
            continue
        # A joint between models belongs to its child's for Drake.
        plain = {name.rpartition("::")[2]: each for name, each in joints.items()}
        theirs = joints.get(joint.name) or plain.get(joint.name) or joints[joint.name.removesuffix("_2")]
        k, v = theirs.position_start(), theirs.velocity_start()
        if joint.kind == "spherical":
            R, T[joint.v_slice, v : v + 3] = of_spherical(theirs, q_there[k : k + 3])
            q[joint.q_slice] = quat_of(R)
            continue
        more = int(joint.name.endswith("_2") and joint.name not in joints)
        q[joint.q_slice], T[joint.v_slice, v + more] = q_there[k + more], 1.0
    return q, T


def compare(robot, plant, bodies, joints, states=3, tolerance=1e-9):
    """The largest relative difference of H, bias forces with gravity, and poses at random states."""
    from pydrake.multibody.tree import MultibodyForces

    context, rng = plant.CreateDefaultContext(), np.random.default_rng(3)
    known = [link for link in robot.links if link.name in bodies and link.name != "world"]
    _inertias_as_written(
        type("Some", (), {"links": known})(), [bodies[link.name] for link in known], context, []
    )
    worst = 0.0
    for _ in range(states):
        there = rng.uniform(-1.0, 1.0, plant.num_positions())
        for index in plant.GetFloatingBaseBodies():
            k = plant.get_body(index).floating_positions_start()
            there[k : k + 4] /= np.linalg.norm(there[k : k + 4])
        v_there = rng.uniform(-1.0, 1.0, plant.num_velocities())
        q, T = map_of(robot, plant, bodies, joints, there)
        v = T @ v_there
        plant.SetPositions(context, there)
        plant.SetVelocities(context, v_there)
        H = plant.CalcMassMatrix(context)
        worst = max(worst, relative(T.T @ rk.crba(robot, q) @ T, H))
        a = np.zeros(robot.nv)
        for joint in robot.joints:  # Drake's rates of a free body are in world axes, ours turn with it
            if joint.kind == "floating":
                s = joint.v_slice.start
                a[s + 3 : s + 6] = -np.cross(v[s : s + 3], v[s + 3 : s + 6])
        gravity = plant.CalcGravityGeneralizedForces(context)
        none = MultibodyForces(plant)
        C = plant.CalcInverseDynamics(context, np.zeros(plant.num_velocities()), none) - gravity
        worst = max(worst, relative(T.T @ rk.rnea(robot, q, v, a), C))
        poses = rk.forward_kinematics(robot, q)
        for link in known:
            X = plant.EvalBodyPoseInWorld(context, bodies[link.name])
            R, p = poses[link.name]
            worst = max(worst, float(np.abs(R - X.rotation().matrix()).max()), relative(p, X.translation()))
    assert worst < tolerance, worst


def relative(a, b):
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", CASES)
def test_own_files_move_as_drake_moves_them(name, tmp_path):
    file = tmp_path / "robot.sdf"
    file.write_text(CASES[name])
    robot = rk.load(file)
    assert robot.nv and not [d for d in robot.diagnostics if d.severity == "warning"]
    compare(robot, *drake_plant(file))


def cassies():
    from robokit.robot_names import example_files

    files = example_files()
    folder = next(f for f in files[0].parents if f.name == "robots") / "cassie_description" / "robots"
    return sorted(folder.glob("cassie*.sdf"))


def test_public_files_move_as_drake_moves_them(tmp_path):
    import pydrake

    shared = Path(pydrake.__file__).parent / "share" / "drake" / "examples"
    files = [*cassies(), *sorted(shared.rglob("*.sdf"))]
    done = 0
    for k, file in enumerate(files):
        try:
            robot = rk.load(file)
        except LoadError as problem:
            assert "choose one" in str(problem)
            continue
        if not robot.nv:
            continue
        folder = tmp_path / str(k)
        folder.mkdir()
        plain = DrakeFiles(file).write(folder, meshes=False)
        compare(robot, *drake_plant(plain), states=1)
        done += 1
    assert done >= 8
