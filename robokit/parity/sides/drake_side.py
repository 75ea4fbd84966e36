"""SDF, or a URDF, as Drake reads it, for the referee."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.geometry import Placement
from robokit.parity.sides.sdf_files import SdfFiles
from robokit.parity.sides.side import (
    WORLD,
    Law,
    Side,
    SideBody,
    SideJoint,
    SideLoop,
    SideShape,
    along,
    outwards,
    parents_first,
)
from robokit.parity.state import one_line
from robokit.urdf.description import InertialDescription, Origin

KINDS = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "weld": "fixed",
    "ball_rpy": "spherical",
    "planar": "planar",
    "quaternion_floating": "floating",
    "rpy_floating": "floating",
}
"""Drake's types of joints."""


def drake_side(path: str | os.PathLike[str], package_dirs: Sequence[str] = ()) -> Side:
    """Read a file through Drake.

    Args:
        path: an SDF or a URDF.
        package_dirs: folders searched first for ``model://`` and ``package://``.

    Raises:
        RobokitError: Drake refuses the file.
    """
    if Path(path).suffix.lower() in (".urdf", ".xacro"):
        side = _loaded(path, Path(path), Path(path), "URDF through Drake")
        side.base, side.gravity = None, None  # Drake's own: a URDF says neither
        if any(joint.effort is None and joint.kind in ("revolute", "prismatic") for joint in side.joints):
            side.notes.append("limits of effort are not compared: Drake keeps them with <transmission>s only")
        return side
    files = SdfFiles(Path(path), package_dirs)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        plain = files.write(Path(first))
        left_out = files.meshes_left_out
        side = _loaded(path, plain, plain if left_out else files.write(Path(second), meshes=False), "SDF")
    if left_out and side.shapes == "all":
        side.shapes = "primitives"
    side.notes += dict.fromkeys(files.notes)
    _passive(side, files)
    return side


def _loaded(path: str | os.PathLike[str], file: Path, second: Path, format: str) -> Side:
    """The side of a file; of the second, without shapes, if Drake refuses the first.

    Args:
        path: what messages name.
    """
    notes = []
    with _quiet():
        try:
            plant, graph, loops = _read(file, True)
        except Exception as first:  # of any type: meshes that are not there, or that Drake cannot read
            try:
                plant, graph, loops = _read(second, False)
            except Exception as refusal:
                raise RobokitError(f"{path}: Drake cannot load it: {_said(refusal, second)}") from None
            notes.append(f"read without shapes ({_said(first, file)[:120]})")
    side = _side(plant, graph, format, os.fspath(path))
    side.notes, side.loops = notes, loops
    if plant.num_constraints():
        notes.append(f"B has {plant.num_constraints()} constraints of Drake's own, which are not compared")
    return side


def _said(refusal: Exception, file: Path) -> str:
    """What Drake says, without the place in the file that it was given, which is a copy."""
    places = "|".join(re.escape(path) for path in (os.path.abspath(file), str(file)))
    return re.sub(rf"/?({places})(:\d+)?:? *", "", one_line(refusal)).removeprefix("error: ")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(path: str | os.PathLike[str], shapes: bool) -> tuple[Any, Any, list[SideLoop]]:
    from pydrake.geometry import SceneGraph
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant, graph = MultibodyPlant(0.001), None
    if shapes:
        graph = SceneGraph()
        plant.RegisterAsSourceForSceneGraph(graph)
    parser = Parser(plant)
    packages = parser.package_map()
    for parent in list(Path(path).absolute().parents)[:4]:  # package://NAME/... of the file's own package
        if parent.name and not packages.Contains(parent.name):
            packages.Add(parent.name, str(parent))
    parser.AddModels(os.fspath(path))
    loops = _opened(plant)
    plant.Finalize()
    return plant, graph, loops


def _opened(plant: Any) -> list[SideLoop]:
    """Take the joints that close loops out of a plant, which Drake refuses to build with them."""
    group = {k: {k} for k in range(plant.num_bodies())}
    loops = []
    names = _names(plant, [plant.get_body(_index(k)) for k in range(plant.num_bodies())])
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        a, b = int(joint.parent_body().index()), int(joint.child_body().index())
        if group[a] is not group[b]:
            group[a] |= group[b]
            for member in group[b]:
                group[member] = group[a]
            continue
        kind, turn = KINDS.get(joint.type_name(), joint.type_name()), Placement()
        if kind in ("revolute", "prismatic"):
            own = joint.revolute_axis() if kind == "revolute" else joint.translation_axis()
            turn = along(np.zeros(3), np.array(own))
        first = _placement(joint.frame_on_parent().GetFixedPoseInBodyFrame()) @ turn
        second = _placement(joint.frame_on_child().GetFixedPoseInBodyFrame()) @ turn
        ends = [names[_key(plant, body)] for body in (joint.parent_body(), joint.child_body())]
        loops.append(SideLoop(joint.name(), kind, ends[0], ends[1], first, second))
        for k in range(plant.num_actuators() - 1, -1, -1):
            if plant.has_joint_actuator(_actuator(k)):
                actuator = plant.get_joint_actuator(_actuator(k))
                if int(actuator.joint().index()) == int(index):
                    plant.RemoveJointActuator(actuator)
        plant.RemoveJoint(joint)
    return loops


def _side(plant: Any, graph: Any, format: str, file: str) -> Side:
    context = plant.CreateDefaultContext()
    joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
    for joint in joints:
        if joint.num_positions() == 1:
            start = joint.position_start()
            q = plant.GetPositions(context)
            q[start] = 0.0
            plant.SetPositions(context, q)
    everything = [plant.get_body(_index(k)) for k in range(plant.num_bodies())]
    names, named = _names(plant, everything), _names(plant, joints)
    bodies = {}
    for each in everything:
        name = names[_key(plant, each)]
        bodies[name] = _body(plant, each, context, name)
    drives: dict[int, list[Any]] = {}
    for k in range(plant.num_actuators()):
        actuator = plant.get_joint_actuator(_actuator(k))
        drives.setdefault(int(actuator.joint().index()), []).append(actuator)
    found = []
    for joint in joints:
        ends = [names[_key(plant, body)] for body in (joint.parent_body(), joint.child_body())]
        own = named[_key(plant, joint)]
        found.append(_joint(joint, own, ends, context, drives.get(int(joint.index()), [])))
    free = [names[_key(plant, plant.get_body(index))] for index in plant.GetFloatingBaseBodies()]
    found = [joint for joint in found if joint.kind != "floating" or joint.parent != WORLD]
    found += [SideJoint("", "floating", WORLD, name) for name in free]
    found = outwards(found)
    side = Side(format, file, "", parents_first(bodies, found), found)
    side.gravity = np.array(plant.gravity_field().gravity_vector())
    side.base = "floating" if any(j.kind == "floating" and j.parent == WORLD for j in found) else "fixed"
    if graph is None:
        side.shapes = "none"
    else:
        _shapes(plant, graph, bodies, names)
    return side


def _key(plant: Any, part: Any) -> tuple[str, str]:
    """Scope of a body or joint and its name in it."""
    return str(plant.GetModelInstanceName(part.model_instance())), str(part.name())


def _names(plant: Any, parts: list[Any]) -> dict[tuple[str, str], str]:
    """Scope and name -> name, with its scope where two models have a part of that name."""
    keys = [_key(plant, part) for part in parts]
    count = Counter(name for _, name in keys)
    return {(scope, name): name if count[name] == 1 else f"{scope}::{name}" for scope, name in keys}


def _index(k: int) -> Any:
    from pydrake.multibody.tree import BodyIndex

    return BodyIndex(k)


def _actuator(k: int) -> Any:
    from pydrake.multibody.tree import JointActuatorIndex

    return JointActuatorIndex(k)


def _body(plant: Any, body: Any, context: Any, name: str) -> SideBody:
    X = plant.EvalBodyPoseInWorld(context, body)
    out = SideBody(name, _placement(X), static=int(body.index()) == 0)
    if not out.static:
        M = body.CalcSpatialInertiaInBodyFrame(context)
        out.mass = float(M.get_mass())
        if out.mass > 0.0:
            out.com = np.array(M.get_com())
            out.inertia = np.array(M.Shift(M.get_com()).CalcRotationalInertia().CopyToFullMatrix3())
    return out


def _joint(joint: Any, name: str, ends: list[str], context: Any, actuators: list[Any]) -> SideJoint:
    kind = KINDS.get(joint.type_name(), joint.type_name())
    X = joint.frame_on_parent().CalcPoseInWorld(context)
    axis = np.zeros(3)
    if kind == "revolute":
        axis = X.rotation().matrix() @ joint.revolute_axis()
    elif kind == "prismatic":
        axis = X.rotation().matrix() @ joint.translation_axis()
    out = SideJoint(
        name,
        kind,
        ends[0],
        ends[1],
        axis,
        np.array(X.translation()),
    )
    out.lower = out.upper = None
    out.laws = None
    if kind in ("revolute", "prismatic"):
        out.lower, out.upper = float(joint.position_lower_limit()), float(joint.position_upper_limit())
        out.velocity = float(joint.velocity_upper_limit())
        out.damping = float(joint.default_damping())
        out.drives = len(actuators)
        if actuators:  # Drake keeps limits of effort with actuators
            out.effort = float(actuators[0].effort_limit())
            gear = float(actuators[0].default_gear_ratio())
            out.armature = sum(float(a.default_rotor_inertia()) for a in actuators) * gear * gear
    return out


def _shapes(plant: Any, graph: Any, bodies: dict[str, SideBody], names: dict[tuple[str, str], str]) -> None:
    inspector = graph.model_inspector()
    for k in range(plant.num_bodies()):
        body = plant.get_body(_index(k))
        for geometry in plant.GetCollisionGeometriesForBody(body):
            shape = inspector.GetShape(geometry)
            kind, size, file = _kind(shape)
            own = bodies[names[_key(plant, body)]]
            pose = _placement(inspector.GetPoseInFrame(geometry))
            own.collisions = (*own.collisions, SideShape(kind, size, pose, file))


def _kind(shape: Any) -> tuple[str, tuple[float, ...], str]:
    name = type(shape).__name__
    if name == "Box":
        return "box", tuple(map(float, shape.size())), ""
    if name == "Sphere":
        return "sphere", (float(shape.radius()),), ""
    if name in ("Cylinder", "Capsule"):
        return name.lower(), (float(shape.radius()), float(shape.length())), ""
    if name in ("Mesh", "Convex"):
        scale = shape.scale3() if hasattr(shape, "scale3") else np.full(3, shape.scale())
        return "mesh", tuple(map(float, scale)), str(shape.source().description())
    return "other", (), ""


def _placement(X: Any) -> Placement:
    return Placement(np.array(X.rotation().matrix()), np.array(X.translation()))


def _passive(side: Side, files: SdfFiles) -> None:
    """Friction, effort and mimic laws, which Drake does not keep or does not show, from the SDF itself."""
    joints = {joint.name: joint for joint in side.joints}
    for scope, element in files.elements("joint"):
        name = element.get("name", "")
        joint = joints.get(f"{scope}::{name}") or joints.get(name)
        axis = element.find("axis")
        if joint is None or axis is None or joint.kind not in ("revolute", "prismatic"):
            continue
        joint.drives = None  # Drake's own: a limit of effort in SDF is no actuator
        joint.friction = _number(axis, "dynamics/friction", 0.0)
        stiffness = _number(axis, "dynamics/spring_stiffness", 0.0)
        joint.stiffness = stiffness
        effort = _number(axis, "limit/effort", -1.0)
        joint.effort = math.inf if effort < 0.0 else effort
        joint.laws = tuple(
            Law(
                mimic.get("joint", ""),
                k := _number(mimic, "multiplier", 1.0),
                _number(mimic, "offset", 0.0) - k * _number(mimic, "reference", 0.0),
            )
            for mimic in axis.iterfind("mimic")
        )
    for scope, link in files.elements("link"):
        name = link.get("name", "")
        body = side.bodies.get(f"{scope}::{name}") or side.bodies.get(name)
        if body is not None and (link.findtext("gravity") or "1").strip().lower() in ("0", "false"):
            body.gravity = 0.0
        inertial = link.find("inertial")
        if body is not None and inertial is not None and inertial.get("auto", "0") in ("0", "false"):
            _inertia_as_written(body, inertial)
    side.gravity = None  # a model alone says none
    for _, gravity in files.elements("gravity"):
        numbers = (gravity.text or "").split()
        if gravity.getparent().tag == "world" and len(numbers) == 3:
            side.gravity = np.array([float(x) for x in numbers])


def _inertia_as_written(body: SideBody, inertial: Any) -> None:
    """What the file says: Drake puts a ball of water in the place of an inertia that no body can have."""
    entries = (("ixx", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyy", 1.0), ("iyz", 0.0), ("izz", 1.0))
    xx, xy, xz, yy, yz, zz = (_number(inertial, f"inertia/{name}", absent) for name, absent in entries)
    said = InertialDescription(
        _number(inertial, "mass", 1.0), (xx, xy, xz, yy, yz, zz), _origin(inertial.find("pose"))
    )
    body.mass, body.com, body.inertia = said.mass, np.array(said.origin.xyz), said.matrix()


def _origin(pose: Any) -> Origin:
    """A <pose>: position, then roll, pitch and yaw or a quaternion xyzw."""
    numbers = [float(x) for x in (pose.text or "").split()] if pose is not None else []
    x, y, z, *turn = numbers if len(numbers) in (6, 7) else [0.0] * 6
    if len(turn) == 4:
        return Origin((x, y, z), quat_xyzw=(turn[0], turn[1], turn[2], turn[3]))
    unit = math.pi / 180.0 if pose is not None and pose.get("degrees", "0") in ("1", "true") else 1.0
    return Origin((x, y, z), (unit * turn[0], unit * turn[1], unit * turn[2]))


def _number(element: Any, path: str, absent: float) -> float:
    return float(element.findtext(path) or absent)
