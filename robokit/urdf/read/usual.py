"""Elements as nearly all files write them, read in one go.

Each function gives what the careful reader of the same element gives (:mod:`robokit.urdf.read.parse`,
:mod:`robokit.urdf.read.shapes`), in a fifth of its time, or None where anything about the element is unusual.
Nothing is reported here: the careful reader then reads the element from its start, and says what is odd. So
an element that would get a finding must never pass here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.urdf.description import (
    JOINT_TYPES,
    CalibrationDescription,
    DynamicsDescription,
    InertialDescription,
    JointDescription,
    LimitDescription,
    MaterialDescription,
    MimicDescription,
    Origin,
    SafetyDescription,
    ShapeDescription,
)
from robokit.urdf.read.elements import ZERO, Reader
from robokit.urdf.read.numbers import plain_numbers

if TYPE_CHECKING:
    from lxml import etree

_MADE = tuple.__new__  # a named tuple without its own __new__, which takes longer than all the rest
_AT_ZERO = Origin()
_PRODUCTS = ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"]
_LIMITS = ["lower", "upper", "effort", "velocity"]
_DYNAMICS = ["damping", "friction", "armature"]
_SAFETY = ["soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"]
_CALIBRATION = ["rising", "falling", "reference_position"]
_LAW = (("multiplier", "1"), ("offset", "0"))
_ROUND = {"sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}
_ODD = (KeyError, ValueError)  # a part that is missing; a bad number, or more or fewer parts than usual


class _Unusual(ValueError):
    """The element is not one of the usual ones."""


def usual_name(element: etree._Element) -> str | None:
    """The name of an element that has no other attribute; None for what needs a closer look."""
    given = element.items()
    if len(given) == 1 and given[0][0] == "name":
        name = given[0][1]
        if "$" not in name and name.strip():
            return name
    return None


def usual_inertial(element: etree._Element, reader: Reader) -> InertialDescription | None:
    """An ``<inertial>`` with a mass, all six numbers of its inertia, and perhaps an origin."""
    try:
        parts = _parts(element)
        ((name, mass),) = parts.pop("mass").items()
        inertia = _numbers(parts.pop("inertia"), _PRODUCTS)
        made = _MADE(
            InertialDescription,
            (
                reader.read[1][mass][0],
                tuple(inertia),
                _origin(parts.pop("origin"), reader) if "origin" in parts else _AT_ZERO,
                reader.line(element),
            ),
        )
    except _ODD:
        return None
    return None if name != "value" or None in inertia or parts else made


def usual_shape(element: etree._Element, reader: Reader) -> ShapeDescription | None:
    """A ``<visual>`` or ``<collision>`` with one geometry of positive size."""
    try:
        parts = _parts(element)
        name = usual_name(element) if element.keys() else None
        if name is None and element.keys():
            return None
        (geometry,) = parts.pop("geometry")
        made = _MADE(
            ShapeDescription,
            (
                _mesh(geometry, reader) if geometry.tag == "mesh" else _primitive(geometry, reader),
                _origin(parts.pop("origin"), reader) if "origin" in parts else _AT_ZERO,
                name,
                _material(parts.pop("material"), reader) if "material" in parts else None,
                reader.line(element),
            ),
        )
    except _ODD:
        return None
    return None if parts else made


def usual_joint(element: etree._Element, reader: Reader) -> JointDescription | None:
    """A ``<joint>`` with a name, a known type and two links."""
    try:
        parts, line = _parts(element), reader.line
        given = element.items()
        (first, name), (second, kind) = given if given[0][0] == "name" else given[::-1]
        parent, child = parts.pop("parent"), parts.pop("child")
        above, below = parent.get("link"), child.get("link")
        odd = "$" in name or not name.strip() or kind not in JOINT_TYPES
        if odd or first != "name" or second != "type" or not above or not below or "$" in above + below:
            return None
        axis, axis_line = (1.0, 0.0, 0.0), line(element)
        if (tag := parts.pop("axis", None)) is not None:
            ((attribute, text),) = tag.items()
            axis, axis_line = reader.read[3][text], line(tag)
            if attribute != "xyz":
                return None
        made = _MADE(
            JointDescription,
            (
                name,
                kind,
                above,
                below,
                _origin(parts.pop("origin"), reader) if "origin" in parts else _AT_ZERO,
                axis,
                _limit(parts.pop("limit"), reader) if "limit" in parts else None,
                _dynamics(parts.pop("dynamics"), reader) if "dynamics" in parts else None,
                _safety(parts.pop("safety_controller"), reader) if "safety_controller" in parts else None,
                _calibration(parts.pop("calibration"), reader) if "calibration" in parts else None,
                _mimic(parts.pop("mimic"), reader) if "mimic" in parts else None,
                line(element),
                line(parent),
                line(child),
                axis_line,
            ),
        )
    except (*_ODD, IndexError):
        return None
    return None if parts else made


def _parts(element: etree._Element) -> dict[str, etree._Element]:
    """The children by tag, each of another."""
    parts = {child.tag: child for child in element}
    if len(parts) != len(element):
        raise _Unusual
    return parts


def _numbers(element: etree._Element, names: list[str]) -> list[float | None]:
    """One number of each of these attributes, None where it is not there; there are no others."""
    given, values = element.keys(), plain_numbers(element.values())
    if given == names:
        return values  # type: ignore[return-value]
    table = dict(zip(given, values, strict=True))
    found = [table.pop(name, None) for name in names]
    if table:
        raise _Unusual
    return found


def _origin(element: etree._Element, reader: Reader) -> Origin:
    xyz, rpy, read = element.get("xyz"), element.get("rpy"), reader.read[3]
    if len(element.keys()) != (xyz is not None) + (rpy is not None):
        raise _Unusual
    return _MADE(
        Origin,
        (
            ZERO if xyz is None else read[xyz],
            ZERO if rpy is None else read[rpy],
            None,
            reader.line(element),
        ),
    )


def _mesh(element: etree._Element, reader: Reader) -> Geometry:
    filename, scale = element.get("filename"), element.get("scale")
    if not filename or len(element.keys()) != 1 + (scale is not None):
        raise _Unusual
    if scale is None:
        return Mesh(filename)
    factors = reader.read[3][scale]
    if 0.0 in factors:
        raise _Unusual
    return Mesh(filename, factors)  # type: ignore[arg-type]


def _primitive(element: etree._Element, reader: Reader) -> Geometry:
    kind, given = element.tag, dict(element.items())
    if kind == "box":
        sizes = reader.read[3][given.pop("size")]
    else:
        names = ("radius",) if kind == "sphere" else ("radius", "length")
        sizes = tuple(reader.read[1][given.pop(name)][0] for name in names)
    if given or not min(sizes) > 0.0:
        raise _Unusual
    return Box(sizes) if kind == "box" else _ROUND[kind](*sizes)  # type: ignore[arg-type, operator]


def _material(element: etree._Element, reader: Reader) -> MaterialDescription:
    ((attribute, name),) = element.items()
    parts, rgba = _parts(element), None
    color, texture = parts.pop("color", None), parts.pop("texture", None)
    if color is not None:
        ((color_attribute, text),) = color.items()
        rgba = reader.read[4][text]
        if color_attribute != "rgba":
            raise _Unusual
    # Several exporters write <texture/>, which means none.
    odd = "$" in name or not (name or rgba) or (texture is not None and texture.keys())
    if odd or attribute != "name" or parts:
        raise _Unusual
    return _MADE(MaterialDescription, (name, rgba, None, reader.line(element)))


def _limit(element: etree._Element, reader: Reader) -> LimitDescription:
    found = _numbers(element, _LIMITS)
    return _MADE(LimitDescription, (*found, reader.line(element)))


def _dynamics(element: etree._Element, reader: Reader) -> DynamicsDescription:
    damping, friction, armature = _numbers(element, _DYNAMICS)
    return DynamicsDescription(damping or 0.0, friction or 0.0, reader.line(element), armature or 0.0)


def _safety(element: etree._Element, reader: Reader) -> SafetyDescription:
    found = _numbers(element, _SAFETY)
    if found[-1] is None:  # has a finding
        raise _Unusual
    return SafetyDescription(*(number or 0.0 for number in found), reader.line(element))


def _calibration(element: etree._Element, reader: Reader) -> CalibrationDescription:
    return CalibrationDescription(*_numbers(element, _CALIBRATION), reader.line(element))


def _mimic(element: etree._Element, reader: Reader) -> MimicDescription:
    given = dict(element.items())
    joint = given.pop("joint")
    if not joint or "$" in joint:
        raise _Unusual
    multiplier, offset = plain_numbers([given.pop(name, text) for name, text in _LAW])
    if given:
        raise _Unusual
    return MimicDescription(joint, multiplier, offset or 0.0, reader.line(element))
