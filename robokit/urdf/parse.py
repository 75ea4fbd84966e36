"""URDF text to description: every element read once, every problem collected.

Iterative and linear in the size of the file. Elements are checked one by one and no other file is opened
here; :mod:`robokit.urdf.checks.check` does the rest.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from robokit.urdf.description import (
    JOINT_TYPES,
    CalibrationDescription,
    DynamicsDescription,
    InertialDescription,
    JointDescription,
    LimitDescription,
    LinkDescription,
    MimicDescription,
    Origin,
    RobotDescription,
    SafetyDescription,
    ShapeDescription,
)
from robokit.urdf.findings import Report
from robokit.urdf.loop_joints import read_loop
from robokit.urdf.reader import Reader
from robokit.urdf.shapes import read_material, read_shape
from robokit.urdf.source import decode, parse_xml, read_file
from robokit.urdf.transmissions import Rotor, read_transmission, with_rotors
from robokit.urdf.usual import usual_joint, usual_link

if TYPE_CHECKING:
    from lxml import etree

_ROBOT = frozenset(("link", "joint", "material", "loop_joint", "transmission"))
_LINK = frozenset(("inertial", "visual", "collision"))
_INERTIAL = frozenset(("origin", "mass", "inertia"))
_JOINT = frozenset(
    ("origin", "parent", "child", "axis", "limit", "dynamics", "safety_controller", "calibration", "mimic")
)
_PRODUCTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_MOMENTS = ("ixx", "iyy", "izz")

_OTHER_ROOTS = {
    "sdf": ("an SDF file of Gazebo", "convert it to URDF; robokit reads URDF only"),
    "gazebo": ("an SDF file of Gazebo", "convert it to URDF; robokit reads URDF only"),
    "model": ("an SDF model", "convert it to URDF; robokit reads URDF only"),
    "mujoco": ("a MuJoCo MJCF file", "convert it to URDF; robokit reads URDF only"),
    "mujocoinclude": ("a part of a MuJoCo MJCF file", "convert it to URDF; robokit reads URDF only"),
    "COLLADA": ("a COLLADA mesh", "give the URDF that refers to it"),
    "html": ("an HTML page", "a download page was saved, not its file"),
    "package": ("a ROS package.xml", "give the .urdf file of the package"),
    "launch": ("a ROS launch file", "give the .urdf file that it loads"),
    "Robot": ("<robot> with a capital letter", "URDF's tags are lower case: <robot>"),
}


def parse_path(path: str | os.PathLike[str], report: Report) -> RobotDescription | None:
    """Description of a file, or None where nothing can be read; problems go to the report."""
    data = read_file(path, report)
    return None if data is None else parse_text(data, report)


def parse_text(text: str | bytes, report: Report) -> RobotDescription | None:
    """Description of a text, or None where nothing can be read; problems go to the report."""
    decoded = text if isinstance(text, str) else decode(bytes(text), report)
    parsed = None if decoded is None else parse_xml(decoded, report)
    if parsed is None:
        return None
    root, lines = parsed
    reader = Reader(root, lines, report)
    return _robot(root, reader) if _is_robot(root, reader) else None


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


def _robot(root: etree._Element, reader: Reader) -> RobotDescription | None:
    report, line = reader.report, reader.line(root)
    reader.attributes(root, "robot", ("name", "version"))
    reader.claim(root.get("version"))
    name = reader.text(root, "name", "robot") or ""
    links, joints, materials, loops = [], [], [], []
    rotors: list[Rotor] = []
    for tag, element in reader.children(root, "robot", _ROBOT):
        if tag == "link":
            links.append(usual_link(element, reader) or _link(element, reader))
        elif tag == "joint":
            joints.append(usual_joint(element, reader) or _joint(element, reader))
        elif tag == "loop_joint":
            loops.append(read_loop(element, reader))
        elif tag == "transmission":
            rotors += read_transmission(element, reader)
        else:
            materials.append(read_material(element, reader, "robot"))
    if not links and not report.has("xacro-unexpanded"):
        tags = {reader.tag(child) for child in root}
        if report.has("xacro-leftover"):
            report.add(
                "xacro-unexpanded", "robot", line, "has xacro tags and no <link>: this is a macro file"
            )
        elif tags & {"group", "disable_collisions", "group_state", "end_effector"}:
            report.add(
                "no-links", "robot", line, "is an SRDF (groups of a robot), not a URDF", "give its URDF"
            )
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
            reader.repeated(tag, child, where)
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
        mass = reader.required(parts["mass"], "value", 1, where)
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
                reader.missing(element, name, where)
        products = [name for name in left_out if name not in _MOMENTS]
        if products:
            message = f"<inertia> leaves out {', '.join(products)}, taken as 0"
            reader.report.add("inertia-incomplete", where, reader.line(element), message)
        if len(products) < len(left_out):
            return None
        found = [0.0 if number is None else number for number in found]
    return None if any(map(math.isnan, found)) else tuple(found)  # type: ignore[arg-type]


def _joint(element: etree._Element, reader: Reader) -> JointDescription:
    name = _name(element, reader, "joint")
    where, line = f"joint {name!r}", reader.line(element)
    reader.attributes(element, where, ("name", "type"))
    kind = reader.text(element, "type", where)
    accepted = "accepted: " + ", ".join(JOINT_TYPES)
    if kind is None:
        reader.report.add("joint-type-missing", where, line, "has no type", accepted)
    elif kind not in JOINT_TYPES and not reader.report.has("xacro-unexpanded"):
        plain = kind.strip().lower()
        hint = f"did you mean {plain!r}? {accepted}" if plain in JOINT_TYPES else accepted
        reader.report.add("joint-type-unknown", where, line, f"type={kind!r} is not a joint type", hint)

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
            reader.required(tag, "xyz", 3, where)
    return JointDescription(
        name,
        kind or "",
        parent,
        child,
        reader.origin(parts["origin"], where) if "origin" in parts else Origin(),
        axis,
        _limit(parts.get("limit"), reader, where),
        _dynamics(parts.get("dynamics"), reader, where),
        _safety(parts.get("safety_controller"), reader, where),
        _calibration(parts.get("calibration"), reader, where),
        _mimic(parts.get("mimic"), reader, where),
        line,
        parent_line,
        child_line,
        axis_line,
    )


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


def _limit(element: etree._Element | None, reader: Reader, where: str) -> LimitDescription | None:
    if element is None:
        return None
    names, others = ("lower", "upper", "effort", "velocity"), ("acceleration", "deceleration", "jerk")
    later = [name for name in others if element.get(name) is not None]
    if later and reader.before((1, 2)):
        message = f"{' and '.join(later)} of <limit>: URDF 1.2, which readers of the file's version leave out"
        hint = 'write version="1.2" at <robot>'
        reader.report.once("version-too-low", "limit", where, reader.line(element), message, hint)
    lower, upper, effort, velocity = reader.several(element, names, where, None, 0.0, others)
    return LimitDescription(lower, upper, effort, velocity, reader.line(element))


def _dynamics(element: etree._Element | None, reader: Reader, where: str) -> DynamicsDescription | None:
    if element is None:
        return None
    names = ("damping", "friction", "armature")
    damping, friction, armature = reader.several(element, names, where, 0.0, 0.0)
    return DynamicsDescription(damping or 0.0, friction or 0.0, reader.line(element), armature or 0.0)


def _safety(element: etree._Element | None, reader: Reader, where: str) -> SafetyDescription | None:
    if element is None:
        return None
    names = ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    if element.get("k_velocity") is None:
        message = "<safety_controller> has no k_velocity; 0 is taken"
        reader.report.add("safety-incomplete", where, reader.line(element), message)
    lower, upper, kp, kv = (number or 0.0 for number in reader.several(element, names, where, 0.0, 0.0))
    return SafetyDescription(lower, upper, kp, kv, reader.line(element))


def _calibration(element: etree._Element | None, reader: Reader, where: str) -> CalibrationDescription | None:
    if element is None:
        return None
    names = ("rising", "falling", "reference_position")
    rising, falling, reference = reader.several(element, names, where, None, None)
    return CalibrationDescription(rising, falling, reference, reader.line(element))


def _mimic(element: etree._Element | None, reader: Reader, where: str) -> MimicDescription | None:
    if element is None:
        return None
    reader.attributes(element, where, ("joint", "multiplier", "offset"))
    line = reader.line(element)
    joint = reader.text(element, "joint", where)
    if not joint:
        reader.report.add("attribute-missing", where, line, "<mimic> names no joint", 'add joint="..."')
        return None
    multiplier = reader.number(element, "multiplier", where, 1.0, 1.0)
    offset = reader.number(element, "offset", where, 0.0, 0.0)
    return MimicDescription(joint, 1.0 if multiplier is None else multiplier, offset or 0.0, line)
