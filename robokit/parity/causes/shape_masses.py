"""Mass and inertia that a program computes from the shapes of a link, instead of reading <inertial>."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from robokit.parity.causes.inertial_candidates import Candidate
from robokit.parity.causes.rigid import NOTHING, Rigid
from robokit.parity.sides.side import SideBody, SideShape

DENSITIES = {
    1000.0: "MuJoCo's, PhysX's and SDF's default",
    200.0: "Genesis' default",
    100.0: "",
    1.0: "",
    2700.0: "aluminium",
    7850.0: "steel",
}
"""Densities that are tried [kg/m^3]."""

LARGEST = 8 << 20
"""Mesh files above this size are not read for a comparison [bytes]."""

Finder = Callable[[str], Path | None]


def shape_candidates(body: SideBody, a: Rigid, find: Finder) -> Iterator[Candidate]:
    """What the link's shapes would weigh, and A's mass spread over them.

    Args:
        body: the link, with its shapes.
        a: its own mass and inertia.
        find: where a mesh file is.
    """
    for what, shapes in (("collision", body.collisions), ("visual", body.visuals)):
        unit = _solid(shapes, find)
        if unit is None or unit.mass <= 0.0:
            continue
        for density, whose in DENSITIES.items():
            said = f"{density:g} kg/m^3" + (f" ({whose})" if whose else "")
            mass, inertia = density * unit.mass, density * unit.inertia
            text = f"is that of its {what} shapes at {said}"
            yield Candidate("mass-density", f"B's mass {text}", Rigid(mass, unit.com, inertia))
            yield Candidate("mass-density", f"B's mass {text}", Rigid(mass, a.com, inertia))
            yield Candidate(
                "mass-density", f"B's mass {text}, its inertia A's", Rigid(mass, a.com, a.inertia)
            )
        if a.mass > 0.0:
            text = f"B's inertia is that of its {what} shapes, with A's mass"
            inertia = a.mass / unit.mass * unit.inertia
            yield Candidate("inertia-from-shapes", text, Rigid(a.mass, unit.com, inertia))
            yield Candidate("inertia-from-shapes", text, Rigid(a.mass, a.com, inertia))


def _solid(shapes: Sequence[SideShape], find: Finder) -> Rigid | None:
    """The shapes at a density of 1 kg/m^3; None where one has no volume that could be computed."""
    total = NOTHING
    for shape in shapes:
        solid = _one(shape, find)
        if solid is None:
            return None
        total = total + solid.at(shape.pose)
    return total


def _one(shape: SideShape, find: Finder) -> Rigid | None:
    size = shape.size
    if shape.kind == "box":
        x, y, z = size
        m = x * y * z
        return _diagonal(m, y * y + z * z, x * x + z * z, x * x + y * y, 12.0)
    if shape.kind == "sphere":
        r = size[0]
        m = 4.0 / 3.0 * math.pi * r**3
        return _diagonal(m, r * r, r * r, r * r, 2.5)
    if shape.kind == "cylinder":
        r, h = size
        m = math.pi * r * r * h
        side = (3.0 * r * r + h * h) / 12.0
        return _diagonal(m, side, side, r * r / 2.0, 1.0)
    if shape.kind == "capsule":
        return _capsule(*size)
    if shape.kind == "mesh":
        return _mesh(shape, find)
    return None


def _diagonal(m: float, x: float, y: float, z: float, divisor: float) -> Rigid:
    return Rigid(m, np.zeros(3), np.diag([x, y, z]) * m / divisor)


def _capsule(r: float, h: float) -> Rigid:
    tube, caps = math.pi * r * r * h, 4.0 / 3.0 * math.pi * r**3
    along = tube * r * r / 2.0 + caps * 0.4 * r * r
    across = tube * (3.0 * r * r + h * h) / 12.0 + caps * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
    return Rigid(tube + caps, np.zeros(3), np.diag([across, across, along]))


def _mesh(shape: SideShape, find: Finder) -> Rigid | None:
    """A closed mesh, as a sum of tetrahedra on the origin."""
    from robokit.meshes.read_mesh import read_mesh

    path = find(shape.file)
    if path is None or path.stat().st_size > LARGEST:
        return None
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    try:
        for surface in read_mesh(path):
            corners = (surface.vertices * np.array(shape.size))[surface.faces]
            six = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
            sums = corners.sum(axis=1)
            volume += float(six.sum()) / 6.0
            first += (six[:, None] * sums).sum(axis=0) / 24.0
            second += np.einsum("i,ij,ik->jk", six, sums, sums) / 120.0
            second += np.einsum("i,inj,ink->jk", six, corners, corners) / 120.0
    except (ValueError, OSError):
        return None
    if volume < 0.0:  # mirrored by a negative scale
        volume, first, second = -volume, -first, -second
    if volume <= 0.0:
        return None
    com = first / volume
    about = second - volume * np.outer(com, com)
    return Rigid(volume, com, float(np.trace(about)) * np.eye(3) - about)
