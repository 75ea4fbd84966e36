"""Visuals, collisions and materials of a link. Of what is wrong here only bad numbers are errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.urdf.description import MaterialDescription, Origin, ShapeDescription, Triple
from robokit.urdf.reader import Reader

if TYPE_CHECKING:
    from lxml import etree

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
        reader.report.add(
            "geometry-missing", where, reader.line(element), "has no <geometry>; it is left out"
        )
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
            rgba = reader.required(child, "rgba", 4, where)
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
        size = reader.required(element, "size", 3, where)
        return Box(_sizes(size, element, reader, where)) if size else None  # type: ignore[arg-type]
    names = ("radius",) if tag == "sphere" else ("radius", "length")
    reader.attributes(element, where, names)
    found = [reader.required(element, name, 1, where) for name in names]
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
