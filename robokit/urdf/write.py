"""The writer, ``dump``: a robot as URDF text, which :func:`robokit.urdf.loads_urdf` reads as the same robot.

Robot to description (``describe``) to text (``write``). Numbers are written as Python prints them, so that
each is read back to the last bit. Inertias are in link axes about the centre of mass; equal colours and
textures share one material.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from robokit.errors import ModelError, warn
from robokit.files import output_path, write_text
from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Placement, Shape, Sphere
from robokit.model.parts import Joint, Link, LoopJoint
from robokit.model.robot import Robot, check_robot, joints_in_order, with_shapes
from robokit.spatial.scalars import sine_and_cosine
from robokit.urdf.checks import check
from robokit.urdf.description import (
    JOINT_TYPES,
    OWN_MARK,
    OWN_TYPES,
    UNLIMITED,
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
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver

_SHOWN = 20  # reasons in a message


def dump(robot: Robot, path: str | os.PathLike[str] | None = None, own_types: bool = False) -> str:
    """The robot as URDF text, also written to a file if a path is given.

    Reading it with ``base=robot.base`` gives the same robot. Rotations are written as roll, pitch and
    yaw: exactly if they came from a URDF's angles in their usual range, otherwise to rounding. Loop joints
    become ``<loop_joint>``, an extension of URDF. URDF has no gravity.

    Mesh and texture names stay as they were read. With a path, a relative one that would lead elsewhere from
    there is replaced by the file's absolute path.

    Args:
        robot: any robot.
        path: the file to write, UTF-8; an existing one is replaced.
        own_types: write spherical and cylindrical joints too, in a text that only robokit reads.

    Returns:
        the text.

    Raises:
        ModelError: URDF cannot express the robot: helical, cylindrical and spherical joints, one-sided
            limits, names or numbers that XML cannot contain, mimic joints that follow no joint. The message
            has every reason.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: something was left out: limits of a joint whose type has none in URDF, the part of a
            matrix that is not a rotation.

    Example:
        >>> from robokit.urdf import dump
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> again = rk.loads_urdf(dump(robot))
        >>> np.array_equal(rk.crba(again, [0.5, 0.2]), rk.crba(robot, [0.5, 0.2]))
        True
    """
    check_robot(robot)
    file = None if path is None else output_path("path", path)
    losses = Losses(own_types=own_types)
    description = describe(robot if file is None else _with_file_names(robot, file.absolute().parent), losses)
    text = write(description, losses.refused)
    if not losses.refused:
        # The importer's own verdicts: what it would refuse is not written.
        report = Report("")
        check(description, report, Resolver(), robot.base)
        losses.refused += [f"{d.element}: {d.message}" for d in report.diagnostics() if d.severity == "error"]
    if losses.refused:
        reasons = [f"\n  {reason}" for reason in losses.refused[:_SHOWN]]
        more = len(losses.refused) - _SHOWN
        reasons += [f"\n  and {more} more"] if more > 0 else []
        raise ModelError(f"robot {robot.name!r} cannot be written as URDF:{''.join(reasons)}")
    if losses.dropped:
        shown = "; ".join(losses.dropped[:_SHOWN]) + ("; ..." if len(losses.dropped) > _SHOWN else "")
        warn(f"the URDF of robot {robot.name!r} leaves out {shown}", UserWarning)
    if file is not None:
        write_text(file, text, newline="\n")
    return text


def _with_file_names(robot: Robot, folder: Path) -> Robot:
    """The robot with file names that lead to its files from a folder."""
    resolver = Resolver(folder)

    def seen(shape: Shape) -> Shape:
        geometry = shape.geometry
        if isinstance(geometry, Mesh) and geometry.path is not None:
            geometry = replace(geometry, filename=_file_name(geometry.filename, geometry.path, resolver))
        texture = shape.texture_filename
        if texture is not None and shape.texture is not None:
            texture = _file_name(texture, Path(shape.texture), resolver)
        return replace(shape, geometry=geometry, texture_filename=texture)

    return with_shapes(robot, seen)


def _file_name(written: str, path: Path, resolver: Resolver) -> str:
    """The name of a mesh or texture file: as it was written, if it leads there, else its path."""
    if written.startswith(("package://", "model://")) or resolver(written).path == path:
        return written
    return str(path)


# ---- from a robot to a description ---------------------------------------------------------------

_ROTATION_TOLERANCE = 1e-12  # largest error of a rotation written as roll, pitch, yaw that is rounding
_ROUNDING_TOLERANCE = 5e-16  # error for which angles of fifteen decimals are preferred
_STEPS = 4  # doubles beside a computed angle among which the one that was written is looked for


@dataclass
class Losses:
    """What a URDF cannot hold."""

    refused: list[str] = field(default_factory=list)  # reasons not to write
    dropped: list[str] = field(default_factory=list)  # what is left out of the text
    own_types: bool = False  # whether joints of types that only robokit reads are written


def describe(robot: Robot, losses: Losses) -> RobotDescription:
    """The description; what does not fit into one goes to ``losses``."""
    materials: dict[tuple, MaterialDescription] = {}
    return RobotDescription(
        robot.name,
        tuple(_link(link, materials, losses) for link in robot.links),
        tuple(_joint(joint, losses) for joint in joints_in_order(robot)),
        tuple(materials.values()),
        robot.source,
        loops=tuple(_loop(loop, losses) for loop in robot.loop_joints),
    )


def _link(link: Link, materials: dict[tuple, MaterialDescription], losses: Losses) -> LinkDescription:
    where = f"link {link.name!r}"
    visuals = tuple(_shape(s, f"{where} visual", materials, losses) for s in link.visuals)
    collisions = tuple(_shape(s, f"{where} collision", materials, losses) for s in link.collisions)
    inertial = None
    I = link.inertia
    if link.mass or link.com.any() or I.any():
        six = tuple(float(I[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))
        origin = Origin(tuple(link.com.tolist()))  # type: ignore[arg-type]
        inertial = InertialDescription(link.mass, six, origin)  # type: ignore[arg-type]
    return LinkDescription(link.name, inertial, visuals, collisions)


def _shape(
    shape: Shape, where: str, materials: dict[tuple, MaterialDescription], losses: Losses
) -> ShapeDescription:
    material, texture = None, shape.texture_filename or shape.texture
    if shape.rgba is not None or texture is not None:
        looks = (shape.rgba, texture)
        if looks not in materials:
            materials[looks] = MaterialDescription(f"material_{len(materials) + 1}", shape.rgba, texture)
        material = MaterialDescription(materials[looks].name)
    return ShapeDescription(shape.geometry, _origin(shape.placement, where, losses), shape.name, material)


def _joint(joint: Joint, losses: Losses) -> JointDescription:
    where, kind = f"joint {joint.name!r}", joint.kind
    if kind not in JOINT_TYPES and not (losses.own_types and kind in OWN_TYPES):
        losses.refused.append(f"{where} is {kind}; URDF has {', '.join(JOINT_TYPES)}")
    ends = [joint.lower, joint.upper]
    bounded = [math.isfinite(x) for x in ends]
    if kind in ("revolute", "prismatic"):
        if any(bounded) != all(bounded):
            losses.refused.append(
                f"{where} has the limits {ends[0]:g} and {ends[1]:g}; URDF has no one-sided limit, give both"
            )
    elif any(bounded) and kind != "fixed":
        losses.dropped.append(f"the position limits of {where}, which is {kind}")
        bounded = [False, False]
    effort, velocity = (x if math.isfinite(x) else None for x in (joint.effort, joint.velocity))
    limit, ranged = None, kind in ("revolute", "prismatic")
    if ranged or effort is not None or velocity is not None:
        no_ends = (-UNLIMITED, UNLIMITED) if ranged else (None, None)
        lower, upper = ends if all(bounded) else no_ends
        effort, velocity = (UNLIMITED if x is None else x for x in (effort, velocity))
        limit = LimitDescription(lower, upper, effort, velocity)
    dynamics = None
    if joint.damping or joint.friction or joint.armature:
        dynamics = DynamicsDescription(joint.damping, joint.friction, armature=joint.armature)
    m = joint.mimic
    mimic = MimicDescription(m.joint, m.multiplier, m.offset) if m is not None else None
    axis, origin = _triple(joint.axis), _origin(joint.origin, where, losses)
    more = limit, dynamics, joint.safety, joint.calibration, mimic
    return JointDescription(joint.name, kind, joint.parent_link, joint.child_link, origin, axis, *more)


def _loop(loop: LoopJoint, losses: Losses) -> LoopDescription:
    where = f"loop joint {loop.name!r}"
    return LoopDescription(
        loop.name,
        loop.kind,
        loop.predecessor,
        loop.successor,
        _origin(loop.predecessor_placement, where, losses),
        _origin(loop.successor_placement, where, losses),
        _triple(loop.axis),
        axis2=None if loop.axis2 is None else _triple(loop.axis2),
        length=loop.length or None,
        pitch=loop.pitch,
    )


def _triple(x: np.ndarray) -> Triple:
    return tuple(x.tolist())  # type: ignore[return-value]


def _origin(placement: Placement, where: str, losses: Losses) -> Origin:
    rpy = roll_pitch_yaw(placement.rotation)
    off = _error(rpy, placement.rotation)
    if not off < _ROTATION_TOLERANCE:
        losses.dropped.append(f"{off:.1g} of a rotation of {where}, which is not orthonormal")
    return Origin(_triple(placement.position), rpy)


def roll_pitch_yaw(R: np.ndarray) -> Triple:
    """Angles [rad] with Rz(yaw) Ry(pitch) Rx(roll) = R, to rounding; at pitch = +-pi/2 one of many.

    Where angles near by give R to the last bit, they are the shortest such: those of a URDF are found again.
    """
    if np.array_equal(R, np.eye(3)):
        return (0.0, 0.0, 0.0)
    rows: list[list[float]] = np.asarray(R, dtype=float).tolist()
    for sign in (1.0, -1.0):
        for exact in _exact_angles(rows, _angles_by_entries(rows, sign)):
            return exact
    angles = _angles(rows)
    short = tuple(round(x, 15) + 0.0 for x in angles)
    return short if _error(short, R) <= _ROUNDING_TOLERANCE else angles  # type: ignore[arg-type, return-value]


def _error(rpy: Triple, R: np.ndarray) -> float:
    return float(np.abs(Origin(rpy=rpy).rotation() - R).max())


def _angles(R: list[list[float]]) -> Triple:
    """Angles of any rotation. Roll is found with yaw undone, so that both fit at pitch = +-pi/2."""
    yaw = math.atan2(R[1][0], R[0][0])
    s, c = sine_and_cosine(yaw)
    roll = math.atan2(s * R[0][2] - c * R[1][2], c * R[1][1] - s * R[0][1])
    return (roll, math.atan2(-R[2][0], math.hypot(R[2][1], R[2][2])), yaw)


def _angles_by_entries(R: list[list[float]], sign: float) -> Triple:
    """Angles with this sign of cos(pitch), from the entries of R that are single products."""
    roll = math.atan2(sign * R[2][1], sign * R[2][2])
    pitch = math.atan2(-R[2][0], sign * math.hypot(R[2][1], R[2][2]))
    return (roll, pitch, math.atan2(sign * R[1][0], sign * R[0][0]))


def _exact_angles(R: list[list[float]], angles: Triple) -> Iterator[Triple]:
    """Triples of doubles near the angles whose rotation is R to the last bit."""
    rolls, pitches, yaws = (
        [(x, *sine_and_cosine(x)) for x in sorted(_beside(angle), key=lambda x: len(repr(x)))]
        for angle in angles
    )
    for p, sp, cp in pitches:
        if -sp != R[2][0]:
            continue
        for r, sr, cr in rolls:
            if cp * sr != R[2][1] or cp * cr != R[2][2]:
                continue
            for y, sy, cy in yaws:
                if cy * cp == R[0][0] and sy * cp == R[1][0]:
                    rpy = (r, p, y)
                    if Origin(rpy=rpy).rotation().tolist() == R:
                        yield rpy


def _beside(x: float) -> set[float]:
    """The double, the doubles next to it, and zero where the number is tiny."""
    found = {x, 0.0} if abs(x) < 1e-15 else {x}
    for end in (-math.inf, math.inf):
        y = x
        for _ in range(_STEPS):
            y = math.nextafter(y, end)
            found.add(y)
    return found


# ---- from a description to text ------------------------------------------------------------------

Value = str | float | Sequence[float] | None
Attributes = Mapping[str, Value]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_PRODUCTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMIT = ("lower", "upper", "effort", "velocity")


def write(robot: RobotDescription, refused: list[str]) -> str:
    """The text of a description; ``refused`` gets a line for each name or number that XML cannot hold."""
    writer = _Writer(refused)
    children = [writer.material(m) for m in robot.materials]
    children += [writer.link(link) for link in robot.links]
    children += [writer.joint(joint) for joint in robot.joints]
    children += [writer.loop(loop) for loop in robot.loops]
    writer.where = "robot"
    own = {OWN_MARK: "true"} if any(joint.type in OWN_TYPES for joint in robot.joints) else {}
    lines = ['<?xml version="1.0"?>', *writer.element("robot", {"name": robot.name, **own}, *children), ""]
    return "\n".join(lines)


def number(x: float) -> str:
    """The shortest decimal that is read as this double."""
    return repr(float(x)).removesuffix(".0")


def _fields(item: object, names: Sequence[str]) -> dict[str, Value]:
    return {name: getattr(item, name) for name in names}


class _Writer:
    """Elements as lists of lines."""

    def __init__(self, refused: list[str]) -> None:
        self.refused = refused
        self.where = ""

    def element(self, tag: str, attributes: Attributes, *children: list[str]) -> list[str]:
        """The lines of an element; attributes that are None are left out."""
        said = (f' {name}="{self._value(name, v)}"' for name, v in attributes.items() if v is not None)
        head = tag + "".join(said)
        inside = [f"  {line}" for child in children for line in child]
        return [f"<{head}>", *inside, f"</{tag}>"] if inside else [f"<{head}/>"]

    def _value(self, name: str, value: str | float | Sequence[float]) -> str:
        if isinstance(value, str):
            odd = _NOT_XML.search(value)
            if odd:
                what = f"has the character U+{ord(odd[0]):04X} in {name}={value!r}, which XML does not allow"
                self.refused.append(f"{self.where}: {what}")
            elif "${" in value or "$(" in value:
                self.refused.append(f"{self.where}: {name}={value!r} would be read as a xacro expression")
            return value.translate(_ESCAPES)
        numbers = [value] if isinstance(value, (int, float)) else list(value)
        if not all(map(math.isfinite, numbers)):
            self.refused.append(f"{self.where}: {name} is not finite: {' '.join(map(str, numbers))}")
        return " ".join(map(number, numbers))

    def link(self, link: LinkDescription) -> list[str]:
        self.where = f"link {link.name!r}"
        children = [] if link.inertial is None else [self._inertial(link.inertial)]
        children += [self._shape("visual", shape) for shape in link.visuals]
        children += [self._shape("collision", shape) for shape in link.collisions]
        return self.element("link", {"name": link.name}, *children)

    def _inertial(self, inertial: InertialDescription) -> list[str]:
        return self.element(
            "inertial",
            {},
            self._origin(inertial.origin),
            self.element("mass", {"value": inertial.mass}),
            self.element("inertia", dict(zip(_PRODUCTS, inertial.inertia, strict=True))),
        )

    def _origin(self, origin: Origin) -> list[str]:
        attributes: dict[str, Value] = {"xyz": origin.xyz if any(origin.xyz) else None}
        if origin.quat_xyzw is not None:
            attributes["quat_xyzw"] = origin.quat_xyzw
        elif origin.rotated:
            attributes["rpy"] = origin.rpy
        return self.element("origin", attributes) if any(attributes.values()) else []

    def _shape(self, tag: str, shape: ShapeDescription) -> list[str]:
        children = [self._origin(shape.origin), self.element("geometry", {}, self._geometry(shape.geometry))]
        if shape.material is not None:
            children.append(self.material(shape.material))
        return self.element(tag, {"name": shape.name}, *children)

    def _geometry(self, geometry: Geometry) -> list[str]:
        match geometry:
            case Box():
                return self.element("box", {"size": geometry.size})
            case Sphere():
                return self.element("sphere", {"radius": geometry.radius})
            case Cylinder() | Capsule():
                tag = "cylinder" if isinstance(geometry, Cylinder) else "capsule"
                return self.element(tag, {"radius": geometry.radius, "length": geometry.length})
            case Mesh():
                scale = None if tuple(geometry.scale) == (1.0, 1.0, 1.0) else geometry.scale
                return self.element("mesh", {"filename": geometry.filename, "scale": scale})

    def material(self, material: MaterialDescription) -> list[str]:
        children = []
        if material.rgba is not None:
            children.append(self.element("color", {"rgba": material.rgba}))
        if material.texture is not None:
            children.append(self.element("texture", {"filename": material.texture}))
        return self.element("material", {"name": material.name}, *children)

    def joint(self, joint: JointDescription) -> list[str]:
        self.where = f"joint {joint.name!r}"
        children = [
            self._origin(joint.origin),
            self.element("parent", {"link": joint.parent}),
            self.element("child", {"link": joint.child}),
        ]
        if joint.has_axis:
            children.append(self.element("axis", {"xyz": joint.axis}))
        if joint.calibration is not None:
            children.append(self.element("calibration", vars(joint.calibration)))
        if joint.limit is not None:
            children.append(self.element("limit", _fields(joint.limit, _LIMIT)))
        if joint.dynamics is not None:
            d = joint.dynamics
            names = ("damping", "friction", "armature") if d.armature else ("damping", "friction")
            children.append(self.element("dynamics", _fields(d, names)))
        if joint.safety is not None:
            children.append(self.element("safety_controller", vars(joint.safety)))
        if joint.mimic is not None:
            m = joint.mimic
            children.append(self.element("mimic", _fields(m, ("joint", "multiplier", "offset"))))
        return self.element("joint", {"name": joint.name, "type": joint.type}, *children)

    def loop(self, loop: LoopDescription) -> list[str]:
        self.where = f"loop joint {loop.name!r}"
        children = [
            self.element("predecessor", {"link": loop.predecessor}, self._origin(loop.predecessor_origin)),
            self.element("successor", {"link": loop.successor}, self._origin(loop.successor_origin)),
        ]
        if loop.has_axis:
            children.append(self.element("axis", {"xyz": loop.axis}))
        if loop.axis2 is not None:
            children.append(self.element("axis2", {"xyz": loop.axis2}))
        own = {"length": loop.length, "pitch": loop.pitch or None}
        return self.element("loop_joint", {"name": loop.name, "type": loop.type, **own}, *children)
