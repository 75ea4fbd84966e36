"""The nodes of a scene as a page draws them: geometries stored once, pictures stored once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robokit.meshes.surface import Picture
from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.viewer.data.packing import base64_text, packed
from robokit.viewer.nodes import Drawable, Node, Triangles
from robokit.viewer.payload_keys import NodeData, ShapeData
from robokit.viewer.poses import pose_numbers
from robokit.viewer.textures import data_uri

STEPS = 65535
"""Steps that a mesh's box is divided into along each axis: finer than a pixel."""


@dataclass
class Drawing:
    """What nodes need: the payload's lists of the same names.

    Attributes:
        geometries: each once.
        nodes: in the order given.
        pictures: data URIs, each once.
    """

    geometries: list[ShapeData] = field(default_factory=list)
    nodes: list[NodeData] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


def draw(nodes: Sequence[Node]) -> Drawing:
    """The nodes of a scene for the page; a picture that cannot be read is left out with a warning."""
    drawing = Drawing()
    shapes: dict[Drawable | int, int] = {}
    pictures: dict[Picture, int | None] = {}
    for node in nodes:
        # Triangles are arrays, which have no hash; each is one object, shared by its nodes.
        key = id(node.geometry) if isinstance(node.geometry, Triangles) else node.geometry
        if key not in shapes:
            shapes[key] = len(drawing.geometries)
            drawing.geometries.append(shape_data(node.geometry))
        drawing.nodes.append(
            NodeData(
                geometry=shapes[key],
                body=node.body,
                pose=pose_numbers(node.placement),
                rgba=[round(float(c), 4) for c in node.rgba],
                role=node.role,
                link=node.link,
                picture=None
                if node.picture is None
                else _picture_number(node.picture, node.link, drawing.pictures, pictures),
            )
        )
    return drawing


def _picture_number(
    picture: Picture, link: str, shown: list[str], known: dict[Picture, int | None]
) -> int | None:
    """Place of a picture in the list of those shown; None where it cannot be read."""
    if picture not in known:
        known[picture] = None
        try:
            uri = data_uri(picture)
        except Exception as problem:  # each reader fails in its own way on a bad file
            name = "inside a mesh" if isinstance(picture, bytes) else str(picture)
            warnings.warn(f"picture {name!r} of link {link!r} is left out: {problem}", stacklevel=2)
        else:
            known[picture] = len(shown)
            shown.append(uri)
    return known[picture]


def shape_data(geometry: Drawable) -> ShapeData:
    """A geometry for the page; corners of a mesh are rounded to 16 bits of its box."""
    if isinstance(geometry, Box):
        return ShapeData("box", size=geometry.size)
    if isinstance(geometry, Sphere):
        return ShapeData("sphere", radius=geometry.radius)
    if isinstance(geometry, Cylinder):
        return ShapeData("cylinder", radius=geometry.radius, length=geometry.length)
    if isinstance(geometry, Capsule):
        return ShapeData("capsule", radius=geometry.radius, length=geometry.length)
    low, high = geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    step = np.where(high > low, (high - low) / STEPS, 1.0)
    corners = np.round((geometry.vertices - low) / step).astype("<u2")
    wide = len(corners) > STEPS
    colours, uv = geometry.colours, geometry.uv
    return ShapeData(
        "mesh",
        low=low.tolist(),
        step=step.tolist(),
        wide=wide,
        vertices=base64_text(corners),
        faces=base64_text(geometry.faces.astype("<u4" if wide else "<u2")),
        colours=None if colours is None else base64_text(colours.astype(np.uint8)),
        uv=None if uv is None else packed(uv),
    )
