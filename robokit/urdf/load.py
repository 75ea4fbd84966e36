"""URDF in, Robot out: ``load_urdf``, ``loads_urdf``, ``check_urdf``, ``from_yourdfpy`` and ``build``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robokit.arguments import one_of, path_argument
from robokit.conventions import FLOATING_BASE
from robokit.errors import Diagnostic, WrongType
from robokit.interpreter import without_collector
from robokit.model.builder import ModelBuilder, new_joint, unit_numbers
from robokit.model.edit import couple
from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Placement, Rows, Shape, Sphere
from robokit.model.joints import LOOP_TABLE
from robokit.model.parts import Calibration, Joint, Link, Mimic, Safety
from robokit.model.robot import Robot
from robokit.stages import stage
from robokit.urdf.checks import check, fixed_base_name
from robokit.urdf.description import (
    JOINT_TYPES,
    OWN_MARK,
    OWN_TYPES,
    DynamicsDescription,
    InertialDescription,
    JointDescription,
    LimitDescription,
    LinkDescription,
    LoopDescription,
    MaterialDescription,
    MimicDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
    Triple,
)
from robokit.urdf.findings import Report, refusal
from robokit.urdf.mesh_files import NoFiles, Resolver, folders
from robokit.urdf.source import NumberError, Reader, decode, parse_numbers, parse_xml, read_file
from robokit.urdf.structure import check_second_parents, own_base, with_loops, with_z_up, without_own_base
from robokit.urdf.xacro import expanded, is_xacro

if TYPE_CHECKING:
    from lxml import etree

# ==== elements of the file ========================================================================
# The parser: URDF text to description. Every element is read once, and every problem is collected.
#
# Iterative and linear in the size of the file. Elements are checked one by one and no other file is opened
# here; :mod:`robokit.urdf.checks` does the rest.
#
# Sections: the robot and its links and joints; visuals, collisions and materials; loop joints; transmissions.


_ROBOT = frozenset(("link", "joint", "material", "loop_joint", "transmission"))
_LINK = frozenset(("inertial", "visual", "collision"))
_INERTIAL = frozenset(("origin", "mass", "inertia"))

_PRODUCTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_MOMENTS = ("ixx", "iyy", "izz")

_OTHER_ROOTS = {
    "sdf": ("an SDF file of Gazebo", "rk.load reads it"),
    "gazebo": ("an SDF file of Gazebo", "rk.load reads it"),
    "model": ("an SDF model", "rk.load reads it"),
    "mujoco": ("a MuJoCo MJCF file", "rk.load reads it"),
    "mujocoinclude": ("a part of a MuJoCo MJCF file", "rk.load reads the file that includes it"),
    "COLLADA": ("a COLLADA mesh", "give the URDF that refers to it"),
    "html": ("an HTML page", "a download page was saved, not its file"),
    "package": ("a ROS package.xml", "give the .urdf file of the package"),
    "launch": ("a ROS launch file", "give the .urdf file that it loads"),
    "Robot": ("<robot> with a capital letter", "URDF's tags are lower case: <robot>"),
}


def parse_text(text: str | bytes, report: Report) -> RobotDescription | None:
    """Description of a text, or None where nothing can be read; problems go to the report."""
    decoded = text if isinstance(text, str) else decode(bytes(text), report)
    parsed = None if decoded is None else parse_xml(decoded, report)
    if parsed is None:
        return None
    root, lines = parsed
    reader = Reader(root, lines, report)
    return _described_robot(root, reader) if _is_robot(root, reader) else None


def _is_robot(root: etree._Element, reader: Reader) -> bool:
    tag = reader.tag(root)
    if tag == "robot":
        return True
    line = reader.line(root)
    what, hint = _OTHER_ROOTS.get(tag, ("", None))
    message = f"the outermost element is <{tag}>, not <robot>" + (f": this is {what}" if what else "")
    if tag.startswith("xacro:"):
        reader.report.add("xacro-unexpanded", "file", line, f"the outermost element is <{tag}>")
    else:
        reader.report.add("root-not-robot", "file", line, message, hint)
    return False


def _described_robot(root: etree._Element, reader: Reader) -> RobotDescription | None:
    report, line = reader.report, reader.line(root)
    reader.attributes(root, "robot", ("name", "version", OWN_MARK))
    reader.claim(root.get("version"))
    types = (*JOINT_TYPES, *OWN_TYPES) if root.get(OWN_MARK) == "true" else JOINT_TYPES
    name = reader.text(root, "name", "robot") or ""
    links, joints, materials, loops = [], [], [], []
    rotors: list[Rotor] = []
    for tag, element in reader.children(root, "robot", _ROBOT):
        if tag == "link":
            links.append(_link(element, reader))
        elif tag == "joint":
            joints.append(_described_joint(element, reader, types))
        elif tag == "loop_joint":
            loops.append(read_loop(element, reader))
        elif tag == "transmission":
            rotors += read_transmission(element, reader)
        else:
            materials.append(read_material(element, reader, "robot"))
    if not links and not report.has("xacro-unexpanded"):
        tags = {reader.tag(child) for child in root}
        if report.has("xacro-leftover"):
            message = "has xacro tags and no <link>: this is a macro file"
            report.add("xacro-unexpanded", "robot", line, message)
        elif tags & {"group", "disable_collisions", "group_state", "end_effector"}:
            message = "is an SRDF (groups of a robot), not a URDF"
            report.add("no-links", "robot", line, message, "give its URDF")
        else:
            report.add("no-links", "robot", line, "has no <link>")
    joints = with_rotors(joints, rotors, reader)
    old = reader.before((1, 1))
    return RobotDescription(
        name, tuple(links), tuple(joints), tuple(materials), report.file, line, tuple(loops), old
    )


def _name(element: etree._Element, reader: Reader, what: str) -> str:
    name = reader.text(element, "name", what)
    if name is None or not name.strip():
        found = "no name" if name is None else "an empty name"
        reader.report.add("name-missing", what, reader.line(element), f"has {found}", 'add name="..."')
    return name or ""


def _link(element: etree._Element, reader: Reader) -> LinkDescription:
    name = _name(element, reader, "link")
    where = f"link {name!r}"
    reader.attributes(element, where, ("name", "type"))
    inertial: InertialDescription | None = None
    visuals: list[ShapeDescription] = []
    collisions: list[ShapeDescription] = []
    weighed = False
    for tag, child in reader.children(element, where, _LINK):
        if tag != "inertial":
            shape = read_shape(child, reader, f"{where} {tag}")
            if shape is not None:
                (visuals if tag == "visual" else collisions).append(shape)
        elif weighed:
            reader.warn_repeated(tag, child, where)
        else:
            weighed = True
            inertial = _inertial(child, reader, where + " inertial")
    return LinkDescription(name, inertial, tuple(visuals), tuple(collisions), reader.line(element))


def _inertial(element: etree._Element, reader: Reader, where: str) -> InertialDescription | None:
    """An ``<inertial>``; None where a number is missing or bad, which refuses the file."""
    parts = reader.parts(element, where, _INERTIAL)
    origin = reader.origin(parts["origin"], where) if "origin" in parts else Origin()
    mass = None
    if "mass" in parts:
        reader.attributes(parts["mass"], where, ("value",))
        mass = reader.required_numbers(parts["mass"], "value", 1, where)
    else:
        reader.report.add("mass-missing", where, reader.line(element), "has no <mass>")
    inertia = _inertia(parts["inertia"], reader, where) if "inertia" in parts else (0.0,) * 6
    if mass is None or inertia is None:
        return None
    return InertialDescription(mass[0], inertia, origin, reader.line(element))  # type: ignore[arg-type]


def _inertia(element: etree._Element, reader: Reader, where: str) -> tuple[float, ...] | None:
    found = reader.several(element, _PRODUCTS, where, None, math.nan)
    if None in found:
        left_out = [name for name, number in zip(_PRODUCTS, found, strict=True) if number is None]
        for name in left_out:
            if name in _MOMENTS:
                reader.report_missing(element, name, where)
        products = [name for name in left_out if name not in _MOMENTS]
        if products:
            message = f"<inertia> leaves out {', '.join(products)}, taken as 0"
            reader.report.add("inertia-incomplete", where, reader.line(element), message)
        if len(products) < len(left_out):
            return None
        found = [0.0 if number is None else number for number in found]
    return None if any(map(math.isnan, found)) else tuple(found)  # type: ignore[arg-type]


def _described_joint(element: etree._Element, reader: Reader, types: Sequence[str]) -> JointDescription:
    name = _name(element, reader, "joint")
    where, line = f"joint {name!r}", reader.line(element)
    reader.attributes(element, where, ("name", "type"))
    kind = _type(element, reader, where, types)
    parts = reader.parts(element, where, _JOINT)
    parent, parent_line = _end(parts.get("parent"), reader, where, line, "parent")
    child, child_line = _end(parts.get("child"), reader, where, line, "child")
    axis, axis_line = (1.0, 0.0, 0.0), line
    if (tag := parts.get("axis")) is not None:
        axis_line = reader.line(tag)
        reader.attributes(tag, where, ("xyz",))
        if kind == "fixed" or tag.get("xyz") is not None:
            axis = reader.triple(tag, "xyz", where, axis)
        else:
            reader.required_numbers(tag, "xyz", 3, where)
    origin = reader.origin(parts["origin"], where) if "origin" in parts else Origin()
    limit, dynamics, safety, calibration, mimic = (
        read(parts[tag], reader, where) if tag in parts else None for tag, read in _JOINT_PARTS.items()
    )
    lines = line, parent_line, child_line, axis_line
    more = limit, dynamics, safety, calibration, mimic
    return JointDescription(name, kind or "", parent, child, origin, axis, *more, *lines)


def _type(element: etree._Element, reader: Reader, where: str, types: Collection[str]) -> str | None:
    """The type of a joint as written; one that is not among the types is reported."""
    kind, line = reader.text(element, "type", where), reader.line(element)
    accepted = "accepted: " + ", ".join(types)
    if kind is None:
        reader.report.add("joint-type-missing", where, line, "has no type", accepted)
    elif kind not in types and not reader.report.has("xacro-unexpanded"):
        plain = kind.strip().lower()
        hint = f"did you mean {plain!r}? {accepted}" if plain in types else accepted
        reader.report.add("joint-type-unknown", where, line, f"type={kind!r} is not a joint type", hint)
    return kind


def _end(
    element: etree._Element | None, reader: Reader, where: str, line: int, which: str
) -> tuple[str | None, int]:
    if element is None:
        reader.report.add(f"joint-{which}-missing", where, line, f"has no <{which}>")
        return None, line
    line = reader.line(element)
    link = reader.text(element, "link", where)
    if not link:
        reader.report.add(f"joint-{which}-missing", where, line, f"<{which}> names no link")
    return link or None, line


def _limit(element: etree._Element, reader: Reader, where: str) -> LimitDescription:
    names, others = ("lower", "upper", "effort", "velocity"), ("acceleration", "deceleration", "jerk")
    later = [name for name in others if element.get(name) is not None]
    if later and reader.before((1, 2)):
        message = f"{' and '.join(later)} of <limit>: URDF 1.2, which readers of the file's version leave out"
        hint = 'write version="1.2" at <robot>'
        reader.report.once("version-too-low", "limit", where, reader.line(element), message, hint)
    lower, upper, effort, velocity = reader.several(element, names, where, None, 0.0, others)
    return LimitDescription(lower, upper, effort, velocity, reader.line(element))


def _dynamics(element: etree._Element, reader: Reader, where: str) -> DynamicsDescription:
    names = ("damping", "friction", "armature")
    damping, friction, armature = reader.several(element, names, where, 0.0, 0.0)
    return DynamicsDescription(damping or 0.0, friction or 0.0, reader.line(element), armature or 0.0)


def _safety(element: etree._Element, reader: Reader, where: str) -> Safety:
    names = ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    if element.get("k_velocity") is None:
        message = "<safety_controller> has no k_velocity; 0 is taken"
        reader.report.add("safety-incomplete", where, reader.line(element), message)
    return Safety(*(number or 0.0 for number in reader.several(element, names, where, 0.0, 0.0)))


def _calibration(element: etree._Element, reader: Reader, where: str) -> Calibration:
    names = ("rising", "falling", "reference_position")
    return Calibration(*reader.several(element, names, where, None, None))


def _mimic(element: etree._Element, reader: Reader, where: str) -> MimicDescription | None:
    """A ``<mimic>``; None where it names no joint, which refuses the file."""
    reader.attributes(element, where, ("joint", "multiplier", "offset"))
    line = reader.line(element)
    joint = reader.text(element, "joint", where)
    if not joint:
        reader.report.add("attribute-missing", where, line, "<mimic> names no joint", 'add joint="..."')
        return None
    multiplier = reader.number(element, "multiplier", where, 1.0, 1.0)
    offset = reader.number(element, "offset", where, 0.0, 0.0)
    return MimicDescription(joint, 1.0 if multiplier is None else multiplier, offset or 0.0, line)


_JOINT_PARTS: dict[str, Callable[[etree._Element, Reader, str], Any]] = {
    "limit": _limit,
    "dynamics": _dynamics,
    "safety_controller": _safety,
    "calibration": _calibration,
    "mimic": _mimic,
}
"""Elements of a joint in the order of the fields of its description."""

_JOINT = frozenset(("origin", "parent", "child", "axis", *_JOINT_PARTS))


# ---- visuals, collisions and materials -----------------------------------------------------------
# Of what is wrong in them, only bad numbers are errors.

_SHAPE = frozenset(("origin", "geometry", "material", "verbose"))
_GEOMETRIES = frozenset(("box", "sphere", "cylinder", "capsule", "mesh"))
_MATERIAL = frozenset(("color", "texture"))


def read_shape(element: etree._Element, reader: Reader, where: str) -> ShapeDescription | None:
    """A ``<visual>`` or ``<collision>``; None where it has no usable geometry (which is reported)."""
    reader.attributes(element, where, ("name", "group"))
    geometry: Geometry | None = None
    material: MaterialDescription | None = None
    origin, told = Origin(), False
    for tag, child in reader.parts(element, where, _SHAPE).items():
        if tag == "origin":
            origin = reader.origin(child, where)
        elif tag == "geometry":
            told = True
            geometry = _geometry(child, reader, where)
        elif tag == "material":
            material = read_material(child, reader, where)
    if not told:
        message = "has no <geometry>; it is left out"
        reader.report.add("geometry-missing", where, reader.line(element), message)
    if geometry is None:
        return None
    return ShapeDescription(geometry, origin, element.get("name"), material, reader.line(element))


def read_material(element: etree._Element, reader: Reader, where: str) -> MaterialDescription:
    """A ``<material>``, defined or only named."""
    reader.attributes(element, where, ("name",))
    name = reader.text(element, "name", where) or ""
    rgba, texture = None, None
    for tag, child in reader.parts(element, f"{where} material {name!r}", _MATERIAL).items():
        if tag == "color":
            reader.attributes(child, where, ("rgba",))
            rgba = reader.required_numbers(child, "rgba", 4, where)
        else:
            reader.attributes(child, where, ("filename",))
            texture = child.get("filename") or None  # empty names are common and mean none
    line = reader.line(element)
    if not name and rgba is None and texture is None:
        reader.report.once(
            "material-undefined", "", f"{where} material", line, "has neither a name nor a colour"
        )
    return MaterialDescription(name, rgba, texture, line)  # type: ignore[arg-type]


def _geometry(element: etree._Element, reader: Reader, where: str) -> Geometry | None:
    child = reader.first(element, where, _GEOMETRIES)
    if child is not None:
        tag = reader.tag(child)
        return _mesh(child, reader, where) if tag == "mesh" else _primitive(tag, child, reader, where)
    known = ", ".join(sorted(_GEOMETRIES))
    message = "<geometry> holds no known shape; it is left out"
    reader.report.add("geometry-missing", where, reader.line(element), message, f"known: {known}")
    return None


def _primitive(tag: str, element: etree._Element, reader: Reader, where: str) -> Geometry | None:
    if tag == "box":
        reader.attributes(element, where, ("size",))
        size = reader.required_numbers(element, "size", 3, where)
        return Box(_sizes(size, element, reader, where)) if size else None  # type: ignore[arg-type]
    names = ("radius",) if tag == "sphere" else ("radius", "length")
    reader.attributes(element, where, names)
    found = [reader.required_numbers(element, name, 1, where) for name in names]
    if None in found:
        return None
    values = _sizes(tuple(f[0] for f in found if f), element, reader, where)
    if tag == "sphere":
        return Sphere(values[0])
    return (Cylinder if tag == "cylinder" else Capsule)(values[0], values[1])


def _mesh(element: etree._Element, reader: Reader, where: str) -> Geometry | None:
    reader.attributes(element, where, ("filename", "scale"))
    scale: Triple = reader.triple(element, "scale", where, (1.0, 1.0, 1.0))
    filename = element.get("filename")
    if not filename:
        message = "<mesh> names no file; it is left out"
        reader.report.add("geometry-missing", where, reader.line(element), message, 'add filename="..."')
        return None
    if 0.0 in scale:
        _zero_size(element, reader, where)
    return Mesh(filename, scale)


def _sizes(
    values: tuple[float, ...], element: etree._Element, reader: Reader, where: str
) -> tuple[float, ...]:
    if min(values) < 0:
        message = f"<{reader.tag(element)}> has a negative size: {' '.join(f'{v:g}' for v in values)}"
        reader.report.add("geometry-negative", where, reader.line(element), message)
    elif 0.0 in values:
        _zero_size(element, reader, where)
    return values


def _zero_size(element: etree._Element, reader: Reader, where: str) -> None:
    tag = reader.tag(element)
    reader.report.once("geometry-zero-size", tag, where, reader.line(element), f"<{tag}> of size zero")


# ---- loop joints ---------------------------------------------------------------------------------
# <loop_joint> is an extension of URDF: a joint that closes a loop of the tree. Other readers of URDF ignore
# it and see the open tree.
#
#     <loop_joint name="closing_joint" type="revolute">
#       <predecessor link="coupler"><origin xyz="0.36 0 0.15"/></predecessor>
#       <successor link="rocker"><origin xyz="-0.125 0 0.3"/></successor>
#       <axis xyz="0 1 0"/>
#     </loop_joint>
#
# The two origins place the joint's frame on the two links; the axis is in that frame. Types are those of the
# joint table, "universal", with an <axis2> on the successor, and "distance", with a length="0.4" [m] of its
# own; a helical joint has a pitch="0.001" [m/rad]. An end may be link="world". Robotiq's grippers and files
# for Drake and Isaac Sim write the two ends as
#
#       <link1 link="coupler" xyz="0.36 0 0.15" rpy="0 0 0"/>
#       <link2 link="rocker" xyz="-0.125 0 0.3" rpy="0 0 0"/>
#
# and Isaac Sim's own manual calls both of them <link1>.

_LOOP_ENDS = ("predecessor", "successor")
_END_OF = {
    "predecessor": "predecessor",
    "successor": "successor",
    "link1": "predecessor",
    "link2": "successor",
}
_LOOP_PARTS = frozenset((*_END_OF, "axis", "axis2"))


def read_loop(element: etree._Element, reader: Reader) -> LoopDescription:
    """One ``<loop_joint>``; problems go to the reader's report."""
    line = reader.line(element)
    name = _name(element, reader, "loop_joint")
    where = f"loop joint {name!r}"
    kind = _type(element, reader, where, LOOP_TABLE)
    own = {"distance": ("length",), "helical": ("pitch",)}.get(kind or "", ())
    reader.attributes(element, where, ("name", "type", *own))
    # The two ends, whatever they are called, and the axis.
    children = list(reader.children(element, where, _LOOP_PARTS))
    tags = [tag for tag, _ in children]
    twice = tags.count("link1") == 2 and not {"successor", "link2"} & set(tags)
    parts: dict[str, etree._Element] = {}
    for tag, child in children:
        part = _END_OF.get(tag, tag)
        if twice and part in parts and tag == "link1":
            part = "successor"
        if part in parts:
            reader.warn_repeated(tag, child, where)
        else:
            parts[part] = child
    ends = [_loop_end(parts.get(which), reader, where, line, which) for which in _LOOP_ENDS]
    axis = (1.0, 0.0, 0.0)
    if "axis" in parts:
        reader.attributes(parts["axis"], where, ("xyz",))
        axis = reader.triple(parts["axis"], "xyz", where, axis)
    axis2 = None
    if "axis2" in parts and kind == "universal":
        reader.attributes(parts["axis2"], where, ("xyz",))
        axis2 = reader.triple(parts["axis2"], "xyz", where, (0.0, 0.0, 0.0))
    length = None
    if kind == "distance":
        found = reader.required_numbers(element, "length", 1, where)
        length = found[0] if found else None
        if length is not None and not length > 0.0:
            hint = "a spherical joint holds two points together"
            reader.report.add("loop-length", where, line, f"its length is {length:g}", hint)
    pitch = reader.number(element, "pitch", where, 0.0, 0.0) if kind == "helical" else 0.0
    (predecessor, p_origin), (successor, s_origin) = ends
    found_ends = predecessor, successor, p_origin, s_origin
    return LoopDescription(name, kind or "", *found_ends, axis, line, axis2, length, pitch or 0.0)


def _loop_end(
    element: etree._Element | None, reader: Reader, where: str, line: int, which: str
) -> tuple[str | None, Origin]:
    link = None
    origin = Origin()
    if element is not None:
        line = reader.line(element)
        link = reader.text(element, "link", where) or None
        if reader.tag(element) == which:
            reader.attributes(element, where, ("link",))
            for child in reader.parts(element, where, frozenset(("origin",))).values():
                origin = reader.origin(child, where)
        else:
            origin = reader.origin(element, where, ("link",))
            reader.parts(element, where, frozenset())
    if link is None:
        tag = which if element is None else reader.tag(element)
        message = f"has no <{which}>" if element is None else f"<{tag}> names no link"
        reader.report.add("loop-end-missing", where, line, message, f'add <{tag} link="..."/>')
    return link, origin


# ---- transmissions -------------------------------------------------------------------------------
# The inertia of a motor's rotor as the joint behind its gear feels it, armature = gear_ratio^2 rotor_inertia,
# written as Drake reads it:
#
#     <transmission name="knee_drive">
#       <joint name="knee"/>
#       <actuator name="knee_motor">
#         <drake:rotor_inertia value="3e-5"/>
#         <drake:gear_ratio value="100"/>
#       </actuator>
#     </transmission>
#
# <rotorInertia> and <motorInertia> [kg m^2 | kg] beside ROS's <mechanicalReduction>, in the actuator, the
# joint or the transmission, are read too. The inertias of several motors of one joint add up. A motor that
# drives several joints is left out, as is everything else that a transmission says.
#
# Source: RBDA section 9.6; Drake's documentation of its URDF parser and ROS's of transmissions.

_ROTOR_INERTIA = ("rotor_inertia", "rotorInertia", "motorInertia", "motor_inertia")
_GEAR_RATIO = ("gear_ratio", "mechanicalReduction", "mechanical_reduction")


class Rotor(NamedTuple):
    """A rotor's inertia at its joint."""

    joint: str  # name of the joint
    armature: float  # [kg m^2 | kg]
    # where, line: place in the file
    where: str
    line: int


def read_transmission(element: etree._Element, reader: Reader) -> list[Rotor]:
    """The rotors of one ``<transmission>``; what has none is noted as ignored."""
    where = f"transmission {element.get('name') or ''!r}"
    joints = [child for child in element if reader.tag(child) == "joint"]
    actuators = [child for child in element if reader.tag(child) == "actuator"]
    found = []
    for actuator in actuators:
        inertia = _rotor_number(_ROTOR_INERTIA, (actuator,), reader, where)
        if inertia is None or len(joints) != 1:
            continue
        ratio = _rotor_number(_GEAR_RATIO, (actuator, joints[0], element), reader, where)
        joint = reader.text(joints[0], "name", where) or ""
        armature = inertia if ratio is None else inertia * ratio * ratio
        if not math.isfinite(armature):
            message = f"rotor inertia {inertia:g} times the square of {ratio:g} is more than a number can be"
            reader.report.add("number-not-finite", where, reader.line(actuator), message)
            continue
        found.append(Rotor(joint, armature, where, reader.line(actuator)))
    if not found:
        reader.note_ignored("transmission", element)
    return found


def with_rotors(
    joints: list[JointDescription], rotors: list[Rotor], reader: Reader
) -> list[JointDescription]:
    """The joints with the rotors that drive them."""
    if not rotors:
        return joints
    place = {joint.name: k for k, joint in enumerate(joints)}
    for rotor in rotors:
        k = place.get(rotor.joint)
        if k is None or not joints[k].moves:
            what = "which does not move" if k is not None else "which is not there"
            message = f"its rotor drives joint {rotor.joint!r}, {what}: it is left out"
            reader.report.add("transmission-joint", rotor.where, rotor.line, message)
            continue
        own = joints[k].dynamics or DynamicsDescription(line=rotor.line)
        joints[k] = joints[k]._replace(dynamics=own._replace(armature=own.armature + rotor.armature))
    return joints


def _rotor_number(
    names: tuple[str, ...], places: tuple[etree._Element, ...], reader: Reader, where: str
) -> float | None:
    """The first number of these names, in a ``value`` or as text; None where there is none."""
    for place in places:
        for child in place:
            if reader.tag(child).rpartition(":")[2] not in names:
                continue
            if child.get("value") is not None:
                return reader.number(child, "value", where, None, None)
            try:
                return parse_numbers(child.text or "", 1)[0]
            except NumberError as problem:
                message = f"<{reader.tag(child)}>: {problem}"
                reader.report.add(problem.code, where, reader.line(child), message, problem.hint)
                return None
    return None


# ==== from the description to the robot ===========================================================


BASES = ("fixed", "floating")
CHECK_BASES = (*BASES, "either")
MIMICS = ("independent", "couple")
UP_AXES = ("ignore", "apply")
LOOPS = ("declared", "close")
PathLike = str | os.PathLike[str]


@without_collector()
def load_urdf(
    path: PathLike,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Load a robot from a URDF file.

    Values are used as they are written. Warnings and notes are in ``robot.diagnostics``.

    Args:
        path: the .urdf file; a .xacro file is expanded first, where the package xacro is installed.
        base: "fixed" (the root link is body 0) or "floating" (a 6-dof joint carries the root link). If the
            file has a floating base of its own, that is, a massless root that carries everything by one
            floating joint, "floating" leaves out these two.
        package_dirs: folders searched first for ``package://`` files.
        strict: refuse warnings like errors.
        mimic: None: each mimic joint has a coordinate of its own, and its law is kept in ``joint.mimic`` for
            a program that applies it. "couple": mimic joints follow and have no coordinates; see
            ``robot.coupling``. "independent": as None, with a warning that names these joints, for programs
            that do not apply the laws either.
        xacro_args: values of a .xacro file's arguments, what ``xacro`` takes as ``name:=value``.
        mesh_up_axis: "ignore": meshes are read as if z were up, whatever a COLLADA file says, as in RViz;
            "apply": those that say that x or y is up are turned.
        loops: "declared": a loop is closed where a <loop_joint> closes it; "close": also at pairs of links
            ``closing_NAME_1`` and ``closing_NAME_2``, by a spherical joint, and where a link is the child of
            two joints, of which the second becomes a loop joint. See :mod:`robokit.urdf.structure`.

    Raises:
        UrdfError: the file cannot be loaded; the message and ``.diagnostics`` hold every problem found.
        UnknownName: an unknown value of ``base``, ``mimic``, ``mesh_up_axis`` or ``loops``.
        WrongType: no path.
        ModelError: mimic="couple" and a mimic joint, or the one it follows, has several coordinates.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> robot.nq, robot.nv, round(robot.total_mass, 1)
        (38, 37, 75.0)
        >>> rk.load_urdf(rk.find_robot("humanoid"), base="hovering")
        Traceback (most recent call last):
            ...
        robokit.errors.UnknownName: no base named 'hovering'; did you mean 'floating'?
    """
    _check_choices(base, mimic, mesh_up_axis, loops)
    if not isinstance(path, (str, os.PathLike)):
        hint = "the text of a URDF goes to rk.loads_urdf" if isinstance(path, bytes) else ""
        raise WrongType("path", path, "the path of a URDF file, a string or a pathlib.Path", hint)
    report, resolver = Report(os.fspath(path)), Resolver(Path(path).absolute().parent, folders(package_dirs))
    with stage(f"reading {os.path.basename(path)}"):
        description = _description(path, report, folders(package_dirs), xacro_args)
        description = _apply_options(description, report, resolver, mesh_up_axis, loops)
        return _robot(description, report, base, resolver, strict, mimic)


@without_collector()
def loads_urdf(
    text: str | bytes,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
    mimic: str | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Load a robot from the text of a URDF.

    Args:
        text: the XML; bytes are decoded by their byte order mark or declaration.
        base, package_dirs, strict, mimic, mesh_up_axis, loops: as for :func:`load_urdf`.
        folder: where relative mesh names start; none by default.

    Raises:
        UrdfError, UnknownName, ModelError, WrongType: as :func:`load_urdf`.

    Example:
        >>> robot = rk.loads_urdf('<robot name="stone"><link name="stone"><inertial><mass value="2"/>'
        ...                       '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        ...                       "</inertial></link></robot>", base="floating")
        >>> robot.total_mass
        2.0
    """
    _check_choices(base, mimic, mesh_up_axis, loops)
    if not isinstance(text, (str, bytes)):
        raise WrongType("text", text, "the text of a URDF, a string or bytes")
    report = Report("<string>")
    description = parse_text(text, report)
    resolver = Resolver(None if folder is None else path_argument("folder", folder), folders(package_dirs))
    description = _apply_options(description, report, resolver, mesh_up_axis, loops)
    return _robot(description, report, base, resolver, strict, mimic)


def robot_of_text(text: str, base: str, mimic: str | None = None) -> Robot:
    """:func:`loads_urdf` of a text from anywhere: no mesh or texture that it names is looked for."""
    _check_choices(base, mimic, "ignore", "declared")
    report = Report("<string>")
    return _robot(parse_text(text, report), report, base, NoFiles(environ={}), False, mimic)


@without_collector()
def check_urdf(
    path_or_text: PathLike | bytes,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    plausible: bool = False,
    meshes: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> tuple[RobotDescription | None, list[Diagnostic]]:
    """Check a URDF without building a robot; never raises because of the file.

    Args:
        path_or_text: a path, or the XML itself (bytes, or a string that begins with "<").
        base: as for :func:`load_urdf`, or "either": as "fixed", with a note where H would be singular
            with a floating base.
        package_dirs: as for :func:`load_urdf`.
        plausible: also note masses and inertias that do not fit the links' shapes, and joints whose zero
            position is outside their limits.
        meshes: read the meshes for that too.
        mimic: as for :func:`load_urdf`; "couple" also reports mimic joints that cannot be coupled.
        xacro_args, mesh_up_axis, loops: as for :func:`load_urdf`.

    Returns:
        The description (None where nothing can be read) and all findings, errors first.

    Example:
        >>> from robokit.urdf import check_urdf
        >>> description, findings = check_urdf('<robot name="r"><link name="a"/><link name="b"/></robot>')
        >>> findings[0].severity, findings[0].code, findings[0].line
        ('error', 'tree-two-roots', 1)
    """
    _check_choices(base, mimic, mesh_up_axis, loops, CHECK_BASES)
    folder = None
    if not isinstance(path_or_text, (str, bytes, os.PathLike)):
        raise WrongType("path_or_text", path_or_text, "the path of a URDF, or its text as a string or bytes")
    if isinstance(path_or_text, bytes) or str(path_or_text).lstrip("\ufeff \t\r\n")[:1] == "<":
        report = Report("<string>")
        description = parse_text(path_or_text, report)  # type: ignore[arg-type]
    else:
        report = Report(os.fspath(path_or_text))
        description = _description(path_or_text, report, folders(package_dirs), xacro_args)
        folder = Path(path_or_text).absolute().parent
    resolver = Resolver(folder, folders(package_dirs))
    description = _apply_options(description, report, resolver, mesh_up_axis, loops)
    if description is not None:
        check(description, report, resolver, base, plausible, meshes, mimic, mesh_up_axis == "apply")
    return description, report.diagnostics()


def from_yourdfpy(
    urdf: Any,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
    mimic: str | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Make a robot from a loaded ``yourdfpy.URDF``.

    Its XML is written and read again, so every check applies; line numbers are of the rewritten text.

    Args:
        urdf: a ``yourdfpy.URDF``.
        base, package_dirs, strict, folder, mimic, mesh_up_axis, loops: as for :func:`loads_urdf`.

    Example:
        >>> import yourdfpy
        >>> urdf = yourdfpy.URDF.load(str(rk.find_robot("double_pendulum")))
        >>> rk.from_yourdfpy(urdf).joint_names
        ('upper_joint', 'lower_joint')
    """
    text = urdf.write_xml_string()
    return loads_urdf(text, base, package_dirs, strict, folder, mimic, mesh_up_axis, loops)


def _description(
    path: PathLike, report: Report, dirs: Sequence[PathLike], xacro_args: Mapping[str, Any] | None
) -> RobotDescription | None:
    if xacro_args is not None and not isinstance(xacro_args, Mapping):
        raise WrongType("xacro_args", xacro_args, "a mapping of names to values")
    if not is_xacro(path):
        if xacro_args:
            given = ", ".join(map(str, xacro_args))
            report.add(
                "xacro-argument", "file", 0, f"is no .xacro file, and takes no arguments ({given})", ""
            )
            return None
        data = read_file(path, report)
        return None if data is None else parse_text(data, report)
    text = expanded(path, report, dirs, xacro_args)
    return None if text is None else parse_text(text, report)


def _apply_options(
    description: RobotDescription | None, report: Report, resolver: Resolver, mesh_up_axis: str, loops: str
) -> RobotDescription | None:
    """The description with its meshes turned and its loops closed, if that is asked for."""
    if description is not None and loops == "close":
        check_second_parents(description, report)
        description = with_loops(description)
    if description is not None and mesh_up_axis == "apply":
        description = with_z_up(description, resolver)
    return description


def _check_choices(
    base: str, mimic: str | None, mesh_up_axis: str, loops: str, bases: Sequence[str] = BASES
) -> None:
    one_of("base", base, bases)
    if mimic is not None:
        one_of("mimic", mimic, MIMICS)
    one_of("mesh_up_axis", mesh_up_axis, UP_AXES)
    one_of("loops", loops, LOOPS)


def _robot(
    description: RobotDescription | None,
    report: Report,
    base: str,
    resolver: Resolver,
    strict: bool,
    mimic: str | None,
) -> Robot:
    if description is not None:
        # What cannot be coupled is the error of couple() below.
        check(description, report, resolver, base, mimic=None if mimic == "couple" else mimic)
    found = report.diagnostics()
    refused = refusal(report.file, found, strict)
    if refused is not None:
        raise refused
    assert description is not None  # a missing description is an error above
    robot = build(description, base, resolver, found)
    if mimic == "couple":
        return couple(robot)
    return robot


# ---- from a description to a robot ---------------------------------------------------------------

NO_INERTIAL = InertialDescription(0.0, (0.0,) * 6)


def build(
    description: RobotDescription,
    base: str = "fixed",
    resolver: Resolver | None = None,
    diagnostics: Sequence[Diagnostic] = (),
) -> Robot:
    """Build the robot of a description without errors (see :func:`check_urdf`).

    Args:
        description: what the file says.
        base: "fixed" or "floating". A massless root that carries everything by one floating joint is a
            floating base of its own: "floating" leaves out both.
        resolver: finds meshes and textures; a fresh one without folders by default.
        diagnostics: findings of the importer, stored with the robot.

    Example:
        >>> from robokit.urdf import build, check_urdf
        >>> description, findings = check_urdf(rk.find_robot("arm"))
        >>> build(description).name
        'arm'
    """
    resolver = resolver or Resolver()
    if base == "floating" and (root := own_base(description)) is not None:
        description = without_own_base(description, root)
    materials = description.material_table()
    _look_up_files(description, materials, resolver)
    builder = ModelBuilder(description.name.strip() or "robot", source=description.file)
    own, here = [link.inertial or NO_INERTIAL for link in description.links], Placement()
    # One array is cut into those of the links: NumPy takes as long to make one as to make a row of it.
    coms = _rows(inertial.origin.xyz for inertial in own)
    inertias = _matrices(inertial.matrix_rows() for inertial in own)
    for link, inertial, com, inertia in zip(description.links, own, coms, inertias, strict=True):
        shapes = partial(_shapes, link, resolver, materials)
        builder.add(
            Link.with_shapes_later(
                shapes, name=link.name, body=0, placement=here, mass=inertial.mass, com=com, inertia=inertia
            )
        )
    # Several quadrupeds call the fixed joint under their trunk "floating_base".
    renamed = {FLOATING_BASE: fixed_base_name(description)} if base == "floating" else {}
    joints = description.joints
    rotations = _matrices(joint.origin.rotation_rows() for joint in joints)
    positions = _rows(joint.origin.xyz for joint in joints)
    axes = _rows(unit_numbers(joint.type, joint.axis) for joint in joints)
    for joint, R, p, axis in zip(joints, rotations, positions, axes, strict=True):
        builder.add(_joint(joint, Placement(R, p), axis, renamed))
    for d in description.loops:
        assert d.predecessor is not None and d.successor is not None  # an error stopped us otherwise
        frames = d.predecessor_origin.placement(), d.successor_origin.placement()
        builder.loop_joint(
            d.name, d.type, d.predecessor, d.successor, *frames, d.axis, d.pitch, d.axis2, d.length
        )
    return builder.build(base=base, diagnostics=list(diagnostics))


def _look_up_files(
    description: RobotDescription, materials: Mapping[str, MaterialDescription], resolver: Resolver
) -> None:
    """Look for all meshes and textures now: shapes are made later, when files may have changed."""
    for material in materials.values():
        if material.texture:
            resolver(material.texture)
    for link in description.links:
        for shape in (*link.visuals, *link.collisions):
            if isinstance(shape.geometry, Mesh):
                resolver(shape.geometry.filename)
            if shape.material is not None and shape.material.texture:
                resolver(shape.material.texture)


def _rows(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """Rows of three numbers as an array, (n, 3)."""
    return np.fromiter(chain.from_iterable(rows), float).reshape(-1, 3)


def _matrices(matrices: Iterable[Rows]) -> np.ndarray:
    """Matrices in plain floats as an array, (n, 3, 3)."""
    return _rows(chain.from_iterable(matrices)).reshape(-1, 3, 3)


def _shapes(
    link: LinkDescription, resolver: Resolver, materials: Mapping[str, MaterialDescription]
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Visuals and collisions of a link, made at their first use: all their files have been looked up."""

    def shape(s: ShapeDescription) -> Shape:
        geometry, texture, written, rgba, material = s.geometry, None, None, None, s.material
        if isinstance(geometry, Mesh):
            geometry = Mesh(geometry.filename, geometry.scale, resolver(geometry.filename).path)
        if material is not None:
            material = material if material.defined else materials.get(material.name, material)
            rgba, written = material.rgba, material.texture
            texture = resolver(written).file if written else None
        return Shape(geometry, s.origin.placement(), rgba, texture, s.name, written)

    return tuple(map(shape, link.visuals)), tuple(map(shape, link.collisions))


def _joint(
    joint: JointDescription, placement: Placement, axis: np.ndarray, renamed: Mapping[str, str]
) -> Joint:
    assert joint.parent is not None and joint.child is not None  # an error stopped us otherwise
    limit, d, law = joint.limit, joint.dynamics or DynamicsDescription(), joint.mimic
    ranged = limit.range if limit and joint.type in ("revolute", "prismatic") else None
    bounds = (*(ranged or (-math.inf, math.inf)), *(limit.bounds if limit else (math.inf, math.inf)))
    ends = joint.parent, joint.child, placement
    mimic = Mimic(renamed.get(law.joint, law.joint), law.multiplier, law.offset) if law else None
    name, others = renamed.get(joint.name, joint.name), (joint.safety, joint.calibration, d.armature)
    return new_joint(name, joint.type, *ends, axis, 0.0, bounds, d.damping, d.friction, mimic, *others)
