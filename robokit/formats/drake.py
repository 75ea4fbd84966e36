"""SDF, or a URDF, as Drake reads it.

Drake stops at every element and attribute that its parser does not know, and models made for Gazebo are full
of them: sensors, plugins, extensions. So Drake reads a copy with bodies, joints, frames and collision shapes.
"""

from __future__ import annotations

import contextlib
import copy
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
from robokit.formats.description import (
    WORLD,
    DescribedBody,
    DescribedJoint,
    DescribedLoop,
    DescribedShape,
    Description,
    Law,
    frame_along,
    joints_outwards,
    parents_first,
)
from robokit.formats.other_programs import one_line
from robokit.formats.sdf import (
    NEWEST,
    SdfFiles,
    closing_joints,
    idle,
    inertial_of,
    number,
    origin_of,
    version_of,
)
from robokit.model.geometry import Placement
from robokit.urdf.mesh_files import Resolver

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


def read_drake(path: str | os.PathLike[str], package_dirs: Sequence[str] = ()) -> Description:
    """Read an SDF or a URDF through Drake; RobokitError where it refuses the file.

    ``package_dirs``: folders searched first for ``model://`` and ``package://``.
    """
    if Path(path).suffix.lower() in (".urdf", ".xacro"):
        side = _load(path, Path(path), Path(path), "URDF through Drake")
        side.base, side.gravity = None, None  # Drake's own: a URDF says neither
        if any(joint.effort is None and joint.kind in ("revolute", "prismatic") for joint in side.joints):
            side.notes.append("effort limits are not compared: Drake keeps them with <transmission>s only")
        return side
    files = DrakeFiles(Path(path), package_dirs)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        plain = files.write(Path(first))
        left_out = files.meshes_left_out
        side = _load(path, plain, plain if left_out else files.write(Path(second), meshes=False), "SDF")
    if left_out and side.shapes == "all":
        side.shapes = "primitives"
    side.notes += dict.fromkeys(files.notes)
    _passive(side, files)
    return side


def _load(path: str | os.PathLike[str], file: Path, second: Path, format: str) -> Description:
    """The side of a file; of the second, without shapes, if Drake refuses it. ``path`` is for messages."""
    notes = []
    with quiet_drake():
        try:
            plant, graph, loops = _read(file, True)
        except Exception as first:  # of any type: meshes that are not there, or that Drake cannot read
            try:
                plant, graph, loops = _read(second, False)
            except Exception as refusal:
                raise RobokitError(
                    f"{path}: Drake cannot load it: {_refusal_text(refusal, second)}"
                ) from None
            notes.append(f"read without shapes ({_refusal_text(first, file)[:120]})")
    side = _describe(plant, graph, format, os.fspath(path))
    side.notes, side.loops = notes, loops
    if plant.num_constraints():
        notes.append(f"B has {plant.num_constraints()} constraints of Drake's own, which are not compared")
    return side


def _refusal_text(refusal: Exception, file: Path) -> str:
    """What Drake says, without the place in the file that it was given, which is a copy."""
    places = "|".join(re.escape(path) for path in (os.path.abspath(file), str(file)))
    return re.sub(rf"/?({places})(:\d+)?:? *", "", one_line(refusal)).removeprefix("error: ")


@contextlib.contextmanager
def quiet_drake() -> Iterator[None]:
    """Without Drake's warnings, on standard error."""
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(path: str | os.PathLike[str], shapes: bool) -> tuple[Any, Any, list[DescribedLoop]]:
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
    loops = _take_out_loops(plant)
    plant.Finalize()
    return plant, graph, loops


def _take_out_loops(plant: Any) -> list[DescribedLoop]:
    """Take the joints that close loops out of a plant, which Drake refuses to build with them."""
    loops = []
    names = _names(plant, [plant.get_body(_index(k)) for k in range(plant.num_bodies())])
    joints = [(index, plant.get_joint(index)) for index in plant.GetJointIndices()]
    between = [
        (names[_key(plant, joint.parent_body())], names[_key(plant, joint.child_body())])
        for _, joint in joints
    ]
    for k in closing_joints(between):
        index, joint = joints[k]
        kind, turn = KINDS.get(joint.type_name(), joint.type_name()), Placement()
        if kind in ("revolute", "prismatic"):
            own = joint.revolute_axis() if kind == "revolute" else joint.translation_axis()
            turn = frame_along(np.zeros(3), np.array(own))
        first = _placement(joint.frame_on_parent().GetFixedPoseInBodyFrame()) @ turn
        second = _placement(joint.frame_on_child().GetFixedPoseInBodyFrame()) @ turn
        loops.append(DescribedLoop(joint.name(), kind, *between[k], first, second))
        for each in list(plant.GetJointActuatorIndices()):
            actuator = plant.get_joint_actuator(each)
            if int(actuator.joint().index()) == int(index):
                plant.RemoveJointActuator(actuator)
        plant.RemoveJoint(joint)
    return loops


def _describe(plant: Any, graph: Any, format: str, file: str) -> Description:
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
        pose = plant.EvalBodyPoseInWorld(context, each)
        out = DescribedBody(name, _placement(pose), static=int(each.index()) == 0)
        if not out.static:
            M = each.CalcSpatialInertiaInBodyFrame(context)
            out.mass = float(M.get_mass())
            if out.mass > 0.0:
                out.com = np.array(M.get_com())
                out.inertia = np.array(M.Shift(M.get_com()).CalcRotationalInertia().CopyToFullMatrix3())
        bodies[name] = out
    drives: dict[int, list[Any]] = {}
    for each in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(each)
        drives.setdefault(int(actuator.joint().index()), []).append(actuator)
    found = []
    for joint in joints:
        ends = [names[_key(plant, body)] for body in (joint.parent_body(), joint.child_body())]
        own = named[_key(plant, joint)]
        found.append(_joint(joint, own, ends, context, drives.get(int(joint.index()), [])))
    free = [names[_key(plant, plant.get_body(index))] for index in plant.GetFloatingBaseBodies()]
    found = [joint for joint in found if joint.kind != "floating" or joint.parent != WORLD]
    found += [DescribedJoint("", "floating", WORLD, name) for name in free]
    found = joints_outwards(found)
    side = Description(format, file, "", parents_first(bodies, found), found)
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


def _joint(joint: Any, name: str, ends: list[str], context: Any, actuators: list[Any]) -> DescribedJoint:
    kind = KINDS.get(joint.type_name(), joint.type_name())
    X = joint.frame_on_parent().CalcPoseInWorld(context)
    axis = np.zeros(3)
    if kind == "revolute":
        axis = X.rotation().matrix() @ joint.revolute_axis()
    elif kind == "prismatic":
        axis = X.rotation().matrix() @ joint.translation_axis()
    out = DescribedJoint(name, kind, ends[0], ends[1], axis, np.array(X.translation()))
    out.lower = out.upper = out.laws = None
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


def _shapes(
    plant: Any, graph: Any, bodies: dict[str, DescribedBody], names: dict[tuple[str, str], str]
) -> None:
    inspector = graph.model_inspector()
    for k in range(plant.num_bodies()):
        body = plant.get_body(_index(k))
        for geometry in plant.GetCollisionGeometriesForBody(body):
            shape = inspector.GetShape(geometry)
            kind, size, file = _kind(shape)
            own = bodies[names[_key(plant, body)]]
            pose = _placement(inspector.GetPoseInFrame(geometry))
            own.collisions = (*own.collisions, DescribedShape(kind, size, pose, file))


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


def _passive(side: Description, files: SdfFiles) -> None:
    """Friction, effort and mimic laws, which Drake does not keep or does not show, from the SDF itself."""
    joints = {joint.name: joint for joint in side.joints}
    for scope, element in files.elements("joint"):
        name = element.get("name", "")
        joint = joints.get(f"{scope}::{name}") or joints.get(name)
        axis = element.find("axis")
        if joint is None or axis is None or joint.kind not in ("revolute", "prismatic"):
            continue
        joint.drives = None  # Drake's own: a limit of effort in SDF is no actuator
        joint.friction = number(axis, "dynamics/friction", 0.0)
        joint.stiffness = number(axis, "dynamics/spring_stiffness", 0.0)
        effort = number(axis, "limit/effort", -1.0)
        joint.effort = math.inf if effort < 0.0 else effort
        joint.laws = tuple(
            Law(
                mimic.get("joint", ""),
                k := number(mimic, "multiplier", 1.0),
                number(mimic, "offset", 0.0) - k * number(mimic, "reference", 0.0),
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
            # Drake puts a ball of water in the place of an inertia that no body can have.
            said = inertial_of(inertial)._replace(origin=origin_of(inertial.find("pose")))
            body.mass, body.com, body.inertia = said.mass, np.array(said.origin.xyz), said.matrix()
    side.gravity = None  # only a world has a gravity
    for _, gravity in files.elements("gravity"):
        numbers = (gravity.text or "").split()
        if gravity.getparent().tag == "world" and len(numbers) == 3:
            side.gravity = np.array([float(x) for x in numbers])


# ---- An SDF and the models that it includes, without what Drake refuses and a comparison does not need

KEPT_ELEMENTS: dict[str, tuple[str, ...]] = {
    "sdf": ("model", "world"),
    "world": ("name", "model", "include", "joint", "frame", "gravity"),
    "model": ("link", "joint", "frame", "model", "include", "pose", "static"),
    "include": ("uri", "name", "pose", "static", "placement_frame"),
    "frame": ("pose",),
    "link": ("pose", "inertial", "collision", "gravity"),
    "inertial": ("pose", "mass", "inertia", "density"),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "collision": ("pose", "geometry", "density"),
    "geometry": ("box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh", "plane"),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
    "mesh": ("uri", "scale", "submesh"),
    "plane": ("normal", "size"),
    "submesh": ("name", "center"),
    "joint": ("parent", "child", "pose", "axis", "axis2", "screw_thread_pitch", "thread_pitch"),
    "axis": ("xyz", "limit", "dynamics", "use_parent_model_frame"),
    "limit": ("lower", "upper", "effort", "velocity", "stiffness", "dissipation"),
    "dynamics": ("damping", "friction"),  # with springs Drake does not let joints of loops be taken out
}
"""Element -> the elements in it that say where bodies are, what they weigh, how they move and collide."""

KEPT_ELEMENTS["axis2"] = KEPT_ELEMENTS["axis"]

KEPT_ATTRIBUTES = {
    "sdf": ("version",),
    "world": ("name",),
    "model": ("name", "canonical_link", "placement_frame"),
    "include": ("merge", "placement_frame"),
    "frame": ("name", "attached_to"),
    "link": ("name",),
    "inertial": ("auto",),
    "collision": ("name",),
    "joint": ("name", "type"),
    "pose": ("relative_to", "rotation_format", "degrees", "frame"),
    "xyz": ("expressed_in",),
}
"""Element -> its attributes; the others have none."""

UNSAID = ("visual", "self_collide", "enable_wind", "allow_auto_disable", "surface", "physics", "mimic")
"""What every model has and no comparison needs, or what is read from the file itself: no note is due."""

DYNAMIC = (
    "fluid_added_mass",
    "velocity_decay",
    "gearbox",
    "mesh",
    "heightmap",
    "polyline",
    "cone",
    "kinematic",
)
"""What changes motions and is not compared: drag, added mass, coupled joints, shapes of few programs."""

OLD = {"use_parent_model_frame": (1, 7), "pose frame": (1, 7)}
"""Element, or element and attribute -> the first version of SDF that does not have it."""

MESHES = (".obj", ".vtk", ".gltf")  # endings of the mesh files that Drake reads


class DrakeFiles(SdfFiles):
    """An SDF and what it includes, written again for Drake.

    ``meshes_left_out``: whether a collision mesh was left out.
    """

    def __init__(self, path: Path, package_dirs: Sequence[str | os.PathLike[str]] = ()) -> None:
        super().__init__(path, package_dirs)
        self._left: Counter[str] = Counter()
        self.meshes_left_out = False

    def write(self, folder: Path, meshes: bool = True) -> Path:
        """Write copies of all files into an empty folder; the path of the first.

        ``meshes``: whether collision meshes are kept.
        """
        from lxml import etree

        self._left.clear()
        names = {real: folder / f"{k}.sdf" for k, real in enumerate(self._trees)}
        for real, root in self._trees.items():
            including = [self._included.get(element) for element in root.iter("include")]
            own = copy.deepcopy(root)
            for element, found in zip(list(own.iter("include")), including, strict=True):
                if found is None:
                    element.getparent().remove(element)
                else:
                    element.find("uri").text = names[found.resolve()].as_uri()
            self._strip(own, version_of(own))
            finder = Resolver(real.parent, self._package_dirs)
            for mesh in list(own.iter("mesh")):
                uri = mesh.find("uri")
                path = finder((uri.text or "").strip()).path if uri is not None else None
                if meshes and path is not None and Path(path).suffix.lower() in MESHES:
                    uri.text = Path(path).absolute().as_uri()
                    continue
                collision = mesh.getparent().getparent()
                if collision is not None and collision.getparent() is not None:
                    collision.getparent().remove(collision)
                    self.meshes_left_out = True
                    if meshes:
                        self._left["mesh"] += 1
            names[real].write_bytes(etree.tostring(own))
        for how, wanted in ("set aside, as they have no rigid-body dynamics", False), ("not compared", True):
            some = sorted((tag, n) for tag, n in self._left.items() if n and (tag in DYNAMIC) == wanted)
            if some:
                self.notes.append(f"{how}: {', '.join(f'<{tag}> ({n})' for tag, n in some)}")
        return names[self.path.resolve()]

    def _strip(self, element: Any, version: tuple[int, ...]) -> None:
        kept = KEPT_ELEMENTS.get(element.tag)
        known = KEPT_ATTRIBUTES.get(element.tag, ())
        for name in list(element.attrib):
            if name not in known or OLD.get(f"{element.tag} {name}", (*NEWEST, 1)) <= version:
                del element.attrib[name]
        for child in list(element):
            tag = str(child.tag)
            if "drake" in re.split("[:}]", tag)[0] or "drake" in tag.rpartition("}")[0]:
                continue  # Drake's own extensions say how joints move
            if kept is None or tag not in kept or OLD.get(tag, (*NEWEST, 1)) <= version:
                self._set_aside(element, child)
            elif tag == "joint" and child.get("type") == "gearbox":
                self._set_aside(element, child, "gearbox")
            elif tag == "geometry" and not any(each.tag in KEPT_ELEMENTS["geometry"] for each in child):
                for each in child:
                    self._left[str(each.tag)] += each.tag != "empty"
                element.getparent().remove(element)
                return
            else:
                self._strip(child, version)

    def _set_aside(self, element: Any, child: Any, name: str = "") -> None:
        tag = name or re.sub(r"^\{.*\}", "", str(child.tag))
        if tag not in UNSAID and not (tag in DYNAMIC and idle(child)):
            self._left[tag] += 1
        element.remove(child)
