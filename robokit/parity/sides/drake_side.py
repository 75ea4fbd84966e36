"""SDF, or a URDF, as Drake reads it, for the referee."""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.geometry import Placement
from robokit.parity.sides.side import WORLD, Law, Side, SideBody, SideJoint, SideShape, parents_first
from robokit.parity.state import one_line

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


def drake_side(path: str | os.PathLike[str]) -> Side:
    """Read a file through Drake.

    Raises:
        RobokitError: Drake refuses the file.
    """
    notes: list[str] = []
    with _quiet():
        try:
            plant, graph = _read(path, True)
        except Exception as first:  # of any type: meshes that are not there, or that Drake cannot read
            try:
                plant, graph = _read(path, False)
            except Exception as refusal:
                raise RobokitError(f"{path}: Drake cannot load it: {one_line(refusal)}") from None
            notes.append(f"read without shapes ({one_line(first)[:120]})")
    urdf = Path(path).suffix.lower() in (".urdf", ".xacro")
    side = _side(plant, graph, "URDF through Drake" if urdf else "SDF", os.fspath(path))
    side.notes = notes
    if urdf:
        side.base, side.gravity = None, None  # Drake's own: a URDF says neither
    else:
        _passive(side, Path(path))
    return side


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(path: str | os.PathLike[str], shapes: bool) -> tuple[Any, Any]:
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
    plant.Finalize()
    return plant, graph


def _side(plant: Any, graph: Any, format: str, file: str) -> Side:
    context = plant.CreateDefaultContext()
    joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
    for joint in joints:
        if joint.num_positions() == 1:
            start = joint.position_start()
            q = plant.GetPositions(context)
            q[start] = 0.0
            plant.SetPositions(context, q)
    bodies = {}
    for k in range(plant.num_bodies()):
        body = _body(plant, plant.get_body(_index(k)), context)
        bodies[body.name] = body
    drives: dict[int, list[Any]] = {}
    for k in range(plant.num_actuators()):
        actuator = plant.get_joint_actuator(_actuator(k))
        drives.setdefault(int(actuator.joint().index()), []).append(actuator)
    found = [_joint(plant, joint, context, drives.get(int(joint.index()), [])) for joint in joints]
    carried = {joint.child for joint in found}
    free = [name for name in bodies if name not in carried and not bodies[name].static]
    found += [SideJoint("", "floating", WORLD, name) for name in free]
    side = Side(format, file, "", parents_first(bodies, found), found)
    side.gravity = np.array(plant.gravity_field().gravity_vector())
    side.base = "floating" if any(j.kind == "floating" and j.parent == WORLD for j in found) else "fixed"
    if graph is None:
        side.shapes = "none"
    else:
        _shapes(plant, graph, bodies)
    return side


def _index(k: int) -> Any:
    from pydrake.multibody.tree import BodyIndex

    return BodyIndex(k)


def _actuator(k: int) -> Any:
    from pydrake.multibody.tree import JointActuatorIndex

    return JointActuatorIndex(k)


def _body(plant: Any, body: Any, context: Any) -> SideBody:
    X = plant.EvalBodyPoseInWorld(context, body)
    out = SideBody(body.name(), _placement(X), static=int(body.index()) == 0)
    if not out.static:
        M = body.CalcSpatialInertiaInBodyFrame(context)
        out.mass = float(M.get_mass())
        if out.mass > 0.0:
            out.com = np.array(M.get_com())
            out.inertia = np.array(M.Shift(M.get_com()).CalcRotationalInertia().CopyToFullMatrix3())
    return out


def _joint(plant: Any, joint: Any, context: Any, actuators: list[Any]) -> SideJoint:
    kind = KINDS.get(joint.type_name(), "other")
    X = joint.frame_on_parent().CalcPoseInWorld(context)
    axis = np.zeros(3)
    if kind == "revolute":
        axis = X.rotation().matrix() @ joint.revolute_axis()
    elif kind == "prismatic":
        axis = X.rotation().matrix() @ joint.translation_axis()
    out = SideJoint(
        joint.name(),
        kind,
        joint.parent_body().name(),
        joint.child_body().name(),
        axis,
        np.array(X.translation()),
    )
    out.lower = out.upper = None
    out.laws = None
    if joint.num_velocities() == 1:
        out.lower, out.upper = float(joint.position_lower_limit()), float(joint.position_upper_limit())
        out.velocity = float(joint.velocity_upper_limit())
        out.damping = float(joint.default_damping())
        out.drives = len(actuators)
        if actuators:  # Drake keeps limits of effort with actuators
            out.effort = float(actuators[0].effort_limit())
            gear = float(actuators[0].default_gear_ratio())
            out.armature = sum(float(a.default_rotor_inertia()) for a in actuators) * gear * gear
    return out


def _shapes(plant: Any, graph: Any, bodies: dict[str, SideBody]) -> None:
    inspector = graph.model_inspector()
    for k in range(plant.num_bodies()):
        body = plant.get_body(_index(k))
        for geometry in plant.GetCollisionGeometriesForBody(body):
            shape = inspector.GetShape(geometry)
            kind, size, file = _kind(shape)
            own = bodies[body.name()]
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


def _passive(side: Side, path: Path) -> None:
    """Friction, effort and mimic laws, which Drake does not keep or does not show, from the SDF itself."""
    from lxml import etree

    parser = etree.XMLParser(remove_comments=True, resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.parse(str(path), parser).getroot()
    joints = {joint.name: joint for joint in side.joints}
    for element in root.iter("joint"):
        joint = joints.get(element.get("name", ""))
        axis = element.find("axis")
        if joint is None or axis is None or joint.kind not in ("revolute", "prismatic"):
            continue
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
    for link in root.iter("link"):
        body = side.bodies.get(link.get("name", ""))
        if body is not None and (link.findtext("gravity") or "1").strip().lower() in ("0", "false"):
            body.gravity = False
    gravity = root.findtext("world/gravity")
    if gravity is not None and len(gravity.split()) == 3:
        side.gravity = np.array([float(x) for x in gravity.split()])
    else:
        side.gravity = None  # a model alone says none


def _number(element: Any, path: str, absent: float) -> float:
    try:
        return float(element.findtext(path) or absent)
    except ValueError:
        return absent
