"""Elements as nearly all files write them, read in one go.

A link or joint is given as the careful readers give it (:mod:`robokit.urdf.parse` and
:mod:`robokit.urdf.shapes`), in less than half of their time, or is None where anything about it is
unusual. Nothing is reported here: the careful reader then reads it from its start, and says what is odd. So
what would get a finding must never pass here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.urdf.description import (
    JOINT_TYPES,
    CalibrationDescription,
    DynamicsDescription,
    InertialDescription,
    JointDescription,
    LimitDescription,
    LinkDescription,
    MaterialDescription,
    MimicDescription,
    Origin,
    SafetyDescription,
    ShapeDescription,
)
from robokit.urdf.numbers import plain_numbers
from robokit.urdf.reader import ZERO, Reader

if TYPE_CHECKING:
    from lxml import etree

_MADE = tuple.__new__  # a named tuple without its own __new__, which takes longer than all the rest
_AT_ZERO = Origin()
_PRODUCTS = ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"]
_LIMITS = ["lower", "upper", "effort", "velocity"]


class _Unusual(ValueError):
    """The element is not one of the usual ones."""


# A part that is missing or unknown; a bad number; more or fewer parts or attributes than usual.
_ODD = (KeyError, ValueError)
_Read = Callable[["etree._Element", Reader], Any]


def usual_link(element: etree._Element, reader: Reader) -> LinkDescription | None:
    """A ``<link>`` with a name, at most one inertial, and shapes."""
    inertial, visuals, collisions = None, [], []
    try:
        name = _name(element)
        for child in element:
            tag = child.tag
            if tag == "visual":
                visuals.append(_shape(child, reader))
            elif tag == "collision":
                collisions.append(_shape(child, reader))
            elif tag == "inertial" and inertial is None:
                inertial = _inertial(child, reader)
            else:
                return None
    except _ODD:
        return None
    found = name, inertial, tuple(visuals), tuple(collisions), reader.line(element)
    return _MADE(LinkDescription, found)


def usual_joint(element: etree._Element, reader: Reader) -> JointDescription | None:
    """A ``<joint>`` with a name, a known type and two links."""
    try:
        given = dict(zip(element.keys(), element.values(), strict=True))
        name, kind = given.pop("name"), given.pop("type")
        parts = _parts(element, reader, _JOINT)
        parent, parent_line = parts["parent"]
        child, child_line = parts["child"]
    except _ODD:
        return None
    if given or "$" in name or not name.strip() or kind not in JOINT_TYPES:
        return None
    get, line = parts.get, reader.line(element)
    axis, axis_line = get("axis") or ((1.0, 0.0, 0.0), line)
    found = (
        name,
        kind,
        parent,
        child,
        get("origin", _AT_ZERO),
        axis,
        get("limit"),
        get("dynamics"),
        get("safety_controller"),
        get("calibration"),
        get("mimic"),
        line,
        parent_line,
        child_line,
        axis_line,
    )
    return _MADE(JointDescription, found)


def _parts(element: etree._Element, reader: Reader, readers: Mapping[str, _Read]) -> dict[str, Any]:
    """What the children say, by their tags: each of another."""
    found = {}
    for child in element:
        tag = child.tag
        found[tag] = readers[tag](child, reader)
    if len(found) != len(element):
        raise _Unusual
    return found


def _name(element: etree._Element) -> str:
    """The name, of an element that has no other attribute."""
    name = _only(element, "name")
    if "$" in name or not name.strip():
        raise _Unusual
    return name


def _only(element: etree._Element, attribute: str) -> str:
    """The only attribute. (To ask for all at once takes the XML library the square of their number.)"""
    if element.keys() != [attribute]:
        raise _Unusual
    return element.get(attribute)  # type: ignore[return-value]


def _inertial(element: etree._Element, reader: Reader) -> InertialDescription:
    parts = _parts(element, reader, _INERTIAL)
    found = parts["mass"], parts["inertia"], parts.get("origin", _AT_ZERO), reader.line(element)
    return _MADE(InertialDescription, found)


def _shape(element: etree._Element, reader: Reader) -> ShapeDescription:
    name = _name(element) if element.keys() else None
    parts, line = _parts(element, reader, _SHAPE), reader.line(element)
    found = parts["geometry"], parts.get("origin", _AT_ZERO), name, parts.get("material"), line
    return _MADE(ShapeDescription, found)


def _numbers(element: etree._Element, names: list[str]) -> list[float | None]:
    """One number of each of these attributes, None where it is not there; there are no others."""
    given = element.keys()
    if given == names:
        return plain_numbers(element.values())  # type: ignore[return-value]
    if len(given) > len(names):
        raise _Unusual
    values = plain_numbers(element.values())
    table = dict(zip(given, values, strict=True))
    found = [table.pop(name, None) for name in names]
    if table:
        raise _Unusual
    return found


def _mass(element: etree._Element, reader: Reader) -> float:
    (mass,) = _numbers(element, ["value"])
    if mass is None:
        raise _Unusual
    return mass


def _inertia(element: etree._Element, reader: Reader) -> tuple[float, ...]:
    found = _numbers(element, _PRODUCTS)
    if None in found:
        raise _Unusual
    return tuple(found)  # type: ignore[arg-type]


def _origin(element: etree._Element, reader: Reader) -> Origin:
    names, texts, read = element.keys(), element.values(), reader.read[3]
    if names == ["xyz", "rpy"]:
        return _MADE(Origin, (read[texts[0]], read[texts[1]], None, reader.line(element)))
    given = dict(zip(names, map(read.__getitem__, texts), strict=True))
    found = given.pop("xyz", ZERO), given.pop("rpy", ZERO), None, reader.line(element)
    if given:
        raise _Unusual
    return _MADE(Origin, found)


def _geometry(element: etree._Element, reader: Reader) -> Geometry:
    (child,) = element
    return _GEOMETRIES[child.tag](child, reader)


def _mesh(element: etree._Element, reader: Reader) -> Mesh:
    names, texts = element.keys(), element.values()
    if "" in texts:
        raise _Unusual
    if names == ["filename"]:
        return Mesh(texts[0])
    if names != ["filename", "scale"] or 0.0 in (factors := reader.read[3][texts[1]]):
        raise _Unusual
    return Mesh(texts[0], factors)  # type: ignore[arg-type]


def _box(element: etree._Element, reader: Reader) -> Box:
    size = reader.read[3][_only(element, "size")]
    if not min(size) > 0.0:
        raise _Unusual
    return Box(size)  # type: ignore[arg-type]


def _round(kind: Callable[..., Geometry], names: list[str], element: etree._Element, _: Reader) -> Geometry:
    sizes = [0.0 if size is None else size for size in _numbers(element, names)]
    if not min(sizes) > 0.0:
        raise _Unusual
    return kind(*sizes)


def _material(element: etree._Element, reader: Reader) -> MaterialDescription:
    name = _only(element, "name")
    rgba = _parts(element, reader, _MATERIAL).get("color")
    if "$" in name or not (name or rgba):
        raise _Unusual
    return _MADE(MaterialDescription, (name, rgba, None, reader.line(element)))


def _color(element: etree._Element, reader: Reader) -> tuple[float, ...]:
    return reader.read[4][_only(element, "rgba")]


def _no_texture(element: etree._Element, reader: Reader) -> None:
    if element.keys():  # several exporters write <texture/>, which means none
        raise _Unusual


def _end(element: etree._Element, reader: Reader) -> tuple[str, int]:
    link = element.get("link")
    if not link or "$" in link:
        raise _Unusual
    return link, reader.line(element)


def _axis(element: etree._Element, reader: Reader) -> tuple[tuple[float, ...], int]:
    return reader.read[3][_only(element, "xyz")], reader.line(element)


def _limit(element: etree._Element, reader: Reader) -> LimitDescription:
    return _MADE(LimitDescription, (*_numbers(element, _LIMITS), reader.line(element)))


def _dynamics(element: etree._Element, reader: Reader) -> DynamicsDescription:
    damping, friction, armature = _numbers(element, ["damping", "friction", "armature"])
    return DynamicsDescription(damping or 0.0, friction or 0.0, reader.line(element), armature or 0.0)


def _safety(element: etree._Element, reader: Reader) -> SafetyDescription:
    found = _numbers(element, ["soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"])
    if found[-1] is None:  # has a finding
        raise _Unusual
    lower, upper, kp, kv = (number or 0.0 for number in found)
    return SafetyDescription(lower, upper, kp, kv, reader.line(element))


def _calibration(element: etree._Element, reader: Reader) -> CalibrationDescription:
    rising, falling, reference = _numbers(element, ["rising", "falling", "reference_position"])
    return CalibrationDescription(rising, falling, reference, reader.line(element))


def _mimic(element: etree._Element, reader: Reader) -> MimicDescription:
    if len(element.keys()) > 3:
        raise _Unusual
    given = dict(element.items())
    joint = given.pop("joint")
    multiplier, offset = plain_numbers([given.pop("multiplier", "1"), given.pop("offset", "0")])
    if given or not joint or "$" in joint:
        raise _Unusual
    return MimicDescription(joint, multiplier, offset or 0.0, reader.line(element))


_INERTIAL: dict[str, _Read] = {"origin": _origin, "mass": _mass, "inertia": _inertia}
_SHAPE: dict[str, _Read] = {"origin": _origin, "geometry": _geometry, "material": _material}
_MATERIAL: dict[str, _Read] = {"color": _color, "texture": _no_texture}
_GEOMETRIES: dict[str, _Read] = {
    "mesh": _mesh,
    "box": _box,
    "sphere": partial(_round, Sphere, ["radius"]),
    "cylinder": partial(_round, Cylinder, ["radius", "length"]),
    "capsule": partial(_round, Capsule, ["radius", "length"]),
}
_JOINT: dict[str, _Read] = {
    "origin": _origin,
    "parent": _end,
    "child": _end,
    "axis": _axis,
    "limit": _limit,
    "dynamics": _dynamics,
    "safety_controller": _safety,
    "calibration": _calibration,
    "mimic": _mimic,
}
