"""Convex solids at rest in the world: boxes, balls, cylinders, capsules and hulls that robots fall on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number
from robokit.errors import ModelError, ShapeError, WrongType, shown
from robokit.meshes.hull import box_of_corners, hull_corners, solid_hull
from robokit.model.geometry import RGBA, Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.parts import checked_placement

MOST_POINTS = 100_000
"""Points of which a solid may be the hull."""


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of points.

    Attributes:
        points: its corners, (n, 3) [m].
    """

    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex solid at rest in the world, as part of the ground.

    Attributes:
        geometry: a Box, Sphere, Cylinder, Capsule or Mesh of robokit.model, or points (n, 3) [m]; a mesh and
            points stand for their convex hull, which is kept as a :class:`Hull`, or as a Box, at its place,
            if they are the corners of one.
        placement: of the geometry's frame in the world, a Placement or only a position (3,) [m].
        friction: Coulomb coefficient of this solid; None takes that of the ground.
        rgba: its colour on the page, each 0 to 1, or None.

    Raises:
        ShapeError: an argument of the wrong content; points or a mesh that span no solid.
        WrongType: a geometry that is none.

    Example:
        >>> from robokit.model import Box
        >>> step = rk.Solid(Box(size=(0.4, 1.0, 0.2)), (0.5, 0.0, 0.1), friction=0.6)
        >>> len(rk.Ground(shapes=[step]).shapes)
        1
    """

    geometry: Any
    placement: Any = field(default_factory=Placement)
    friction: float | None = None
    rgba: RGBA | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "geometry", _geometry(self.geometry))
        object.__setattr__(self, "placement", _placement(self.placement))
        found = box_of_corners(self.geometry.points) if isinstance(self.geometry, Hull) else None
        if found is not None:
            size, R, middle = found
            own = self.placement
            place = Placement(own.rotation @ R, own.rotation @ middle + own.position)
            object.__setattr__(self, "geometry", Box(tuple(size.tolist())))
            object.__setattr__(self, "placement", place)
        if self.friction is not None:
            mu = real_number("Solid(friction=...)", self.friction, least=0.0)
            object.__setattr__(self, "friction", mu)
        if self.rgba is not None:
            rgba = real_array("Solid(rgba=...)", self.rgba, "(4,)")
            if rgba.shape != (4,) or not ((rgba >= 0.0) & (rgba <= 1.0)).all():
                raise ShapeError(
                    f"Solid(rgba=...): expected four numbers from 0 to 1, got {shown(self.rgba)}"
                )
            object.__setattr__(self, "rgba", tuple(rgba.tolist()))

    def __eq__(self, other: object) -> bool:
        """Whether it is the same solid at the same place."""
        return isinstance(other, Solid) and self.record() == other.record()

    def __hash__(self) -> int:
        return hash(self.kind)

    @property
    def kind(self) -> str:
        """box, sphere, cylinder, capsule or hull."""
        return type(self.geometry).__name__.lower()

    def record(self) -> dict[str, Any]:
        """The solid in plain lists and numbers, for a file."""
        shape = self.geometry
        numbers = {name: getattr(shape, name, None) for name in ("size", "radius", "length")}
        return {
            "kind": self.kind,
            **{name: value for name, value in numbers.items() if value is not None},
            **({"points": shape.points.tolist()} if isinstance(shape, Hull) else {}),
            "rotation": self.placement.rotation.tolist(),
            "position": self.placement.position.tolist(),
            "friction": self.friction,
            "rgba": None if self.rgba is None else list(self.rgba),
        }

    @staticmethod
    def of_record(record: dict[str, Any]) -> Solid:
        """The solid of :meth:`record`; raises LookupError, TypeError or ValueError where it is none."""
        kind = record["kind"]
        geometry: Any
        if kind == "hull":
            geometry = np.array(record["points"], dtype=float)
        elif kind == "box":
            geometry = Box(tuple(record["size"]))
        elif kind == "sphere":
            geometry = Sphere(record["radius"])
        else:
            geometry = {"cylinder": Cylinder, "capsule": Capsule}[kind](record["radius"], record["length"])
        placement = Placement(np.array(record["rotation"]), np.array(record["position"]))
        return Solid(geometry, placement, record["friction"], record["rgba"])


def solid(name: str, given: Any) -> Solid:
    """A Solid, or one of a Shape of robokit.model.

    Raises:
        WrongType: neither.
    """
    if isinstance(given, Solid):
        return given
    if isinstance(given, Shape):
        return Solid(given.geometry, given.placement, rgba=given.rgba)
    raise WrongType(name, given, "rk.Solid(geometry, placement)")


def _geometry(given: Any) -> Any:
    what = "Solid(geometry)"
    if isinstance(given, Hull):
        return given
    if isinstance(given, Box):
        size = real_array(f"{what}: size of a Box", given.size, "(3,)")
        if size.shape != (3,) or not (np.isfinite(size) & (size > 0.0)).all():
            raise ShapeError(f"{what}: expected three edges > 0 of a Box, got {shown(given.size)}")
        return Box(tuple(size.tolist()))  # type: ignore[arg-type]
    if isinstance(given, Sphere):
        return Sphere(real_number(f"{what}: radius of a Sphere", given.radius, above=0.0))
    if isinstance(given, Cylinder | Capsule):
        name = type(given).__name__
        radius = real_number(f"{what}: radius of a {name}", given.radius, above=0.0)
        return type(given)(radius, real_number(f"{what}: length of a {name}", given.length, above=0.0))
    if isinstance(given, Mesh):
        try:
            return _hull(hull_corners(given))
        except Exception as error:  # readers of mesh formats raise whatever they like
            raise ShapeError(f"{what}: mesh {given.filename!r}: {error}") from error
    if isinstance(given, np.ndarray | list | tuple):
        points = real_array(f"{what}: points", given, "(n, 3)")
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise ShapeError(f"{what}: expected finite points (n, 3), got shape {points.shape}")
        if len(points) > MOST_POINTS:
            raise ShapeError(f"{what}: expected at most {MOST_POINTS:,} points, got {len(points):,}")
        try:
            return _hull(points)
        except ValueError as error:
            raise ShapeError(f"{what}: {error}") from error
    raise WrongType(
        what, given, "a Box, Sphere, Cylinder, Capsule or Mesh of robokit.model, or points (n, 3)"
    )


def _hull(points: np.ndarray) -> Hull:
    hull = solid_hull(points)
    if hull is None:
        raise ValueError(f"{len(points)} points that do not span a solid")
    return Hull(np.array(points[hull.vertices]))


def _placement(given: Any) -> Placement:
    what = "Solid(placement)"
    if not isinstance(given, Placement):
        position = real_array(what, given, "a Placement or a position (3,)")
        if position.shape != (3,):
            raise ShapeError(f"{what}: expected a Placement or a position (3,), got shape {position.shape}")
        given = Placement(position=np.array(position))
    try:
        found = checked_placement("solid", given)
    except ModelError as error:
        raise ShapeError(f"{what}: {error}") from error
    if not math.isfinite(float(np.abs(found.position).max())):
        raise ShapeError(f"{what}: expected a finite position, got {shown(given.position)}")
    return found
