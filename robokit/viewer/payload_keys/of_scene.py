"""What is drawn: geometries, nodes, the ground."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robokit.viewer.nodes import Role
from robokit.viewer.payload_keys.packed_tables import Packed


@dataclass(frozen=True)
class ShapeData:
    """A geometry, shared by the nodes that draw it. Its type says which of the other keys are not None.

    Attributes:
        type: kind of geometry.
        size: edges of a box [m].
        radius: of a sphere, cylinder or capsule [m].
        length: of a cylinder, or of a capsule without its caps [m].
        low: lowest corner of a mesh [m].
        step: length of one unit of ``vertices`` along x, y, z [m].
        wide: whether ``faces`` holds 32-bit numbers instead of 16-bit ones.
        vertices: base64 of uint16 multiples of ``step`` from ``low``, (n, 3).
        faces: base64 of vertex numbers, (m, 3).
        colours: base64 of bytes, colours of the vertices, (n, 3); or None.
        uv: picture coordinates of the faces' corners, (m, 3, 2); or None.
    """

    type: Literal["box", "sphere", "cylinder", "capsule", "mesh"]
    size: tuple[float, float, float] | None = None
    radius: float | None = None
    length: float | None = None
    low: list[float] | None = None
    step: list[float] | None = None
    wide: bool | None = None
    vertices: str | None = None
    faces: str | None = None
    colours: str | None = None
    uv: Packed | None = None


@dataclass(frozen=True)
class NodeData:
    """One thing to draw.

    Attributes:
        geometry: place of its geometry in the payload's list.
        body: number of the body that carries it.
        pose: in the body's frame.
        rgba: colour, each 0 to 1 (sRGB).
        role: "visual" is the robot as seen, "ground" what it falls on; the others are overlays.
        link: name of its link.
        picture: place of the picture that covers it in the payload's list, or None.
    """

    geometry: int
    body: int
    pose: list[float]
    rgba: list[float]
    role: Role
    link: str
    picture: int | None


@dataclass(frozen=True)
class GroundData:
    """What the robot falls on.

    Attributes:
        plane: whether there is a plane.
        height: of the plane over the world's origin [m].
        normal: of the plane, unit, (3,).
        nodes: height field and solids, in the world.
    """

    plane: bool
    height: float
    normal: list[float]
    nodes: list[NodeData]
