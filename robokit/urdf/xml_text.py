"""A description to URDF text, element by element."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    LoopDescription,
    MaterialDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
)

Value = str | float | Sequence[float] | None
Attributes = Mapping[str, Value]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_PRODUCTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMIT = ("lower", "upper", "effort", "velocity")
_CALIBRATION = ("rising", "falling", "reference_position")
_SAFETY = ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")


def write(robot: RobotDescription, refused: list[str]) -> str:
    """The text of a description.

    Args:
        robot: the description.
        refused: gets one line for each name or number that XML cannot hold.
    """
    writer = _Writer(refused)
    children = [writer.material(m) for m in robot.materials]
    children += [writer.link(link) for link in robot.links]
    children += [writer.joint(joint) for joint in robot.joints]
    children += [writer.loop(loop) for loop in robot.loops]
    writer.where = "robot"
    lines = ['<?xml version="1.0"?>', *writer.element("robot", {"name": robot.name}, *children), ""]
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
            children.append(self.element("calibration", _fields(joint.calibration, _CALIBRATION)))
        if joint.limit is not None:
            children.append(self.element("limit", _fields(joint.limit, _LIMIT)))
        if joint.dynamics is not None:
            d = joint.dynamics
            names = ("damping", "friction", "armature") if d.armature else ("damping", "friction")
            children.append(self.element("dynamics", _fields(d, names)))
        if joint.safety is not None:
            children.append(self.element("safety_controller", _fields(joint.safety, _SAFETY)))
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
        return self.element("loop_joint", {"name": loop.name, "type": loop.type}, *children)
