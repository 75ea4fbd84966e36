"""The ground: a plane, a height field, solids at rest, and the constants of the contact law."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any

import numpy as np

from robokit.arguments import check_finite, path_argument, real_array, real_number
from robokit.collision.scene import World
from robokit.conventions import GRAVITY
from robokit.dataclass_tools import short_repr
from robokit.errors import ModelError, ShapeError, WrongType, shown, warn
from robokit.meshes.hull import box_of_corners, hull_corners, solid_hull
from robokit.meshes.untrusted import open_picture
from robokit.model.geometry import RGBA, Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.parts import checked_placement
from robokit.model.robot import Robot
from robokit.spatial import Vector3
from robokit.spatial.scalars import added, sine_and_cosine

# ==== solids at rest ==============================================================================
# Convex solids at rest in the world: boxes, balls, cylinders, capsules and hulls that robots fall on.

MOST_POINTS = 100_000  # points of which a solid may be the hull


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of points."""

    points: np.ndarray  # its corners, (n, 3) [m]


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
        ShapeError: an argument with an invalid value; points or a mesh that do not span a solid.
        WrongType: geometry is not a shape.

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
        """The solid as plain lists and numbers, for a file."""
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
        """The solid of :meth:`record`; raises LookupError, TypeError or ValueError if it is invalid."""
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
    """A Solid, or one of a Shape of robokit.model; WrongType for anything else."""
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


# ==== HeightField: ground whose height is given on a grid, by an array or by a picture ============

MOST_HEIGHTS = 1 << 22  # heights of a field: 2048 x 2048


@dataclass(frozen=True, eq=False)
class HeightField:
    """Ground given by heights on a grid.

    Each cell has two triangles. Beyond the grid, the ground continues horizontally at the height of its edge.

    Attributes:
        heights: (nx, ny) [m]; heights[i, j] is at x = origin[0] + i cell[0], y = origin[1] + j cell[1].
        cell: distances (dx, dy) between neighbours [m], or one for both.
        origin: (x, y) or (x, y, z) of heights[0, 0]'s corner in the world [m]; z is added to all heights.
        friction: Coulomb coefficient of the field; None takes that of the ground.

    Raises:
        ShapeError: an argument of the wrong shape or content.

    Example:
        >>> x = np.linspace(-1.0, 1.0, 21)
        >>> hills = rk.HeightField(0.05 * np.cos(3 * x)[:, None] * np.ones(21), cell=0.1, origin=(-1.0, -1.0))
        >>> rk.Ground(terrain=hills).plane
        False
    """

    heights: Any
    cell: Any = 0.1
    origin: Any = (0.0, 0.0, 0.0)
    friction: float | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        heights = np.array(real_array("HeightField(heights)", self.heights, "(nx, ny)"), dtype=float)
        if heights.ndim != 2 or min(heights.shape) < 2 or heights.size > MOST_HEIGHTS:
            raise ShapeError(
                "HeightField(heights): expected shape (nx, ny), at least 2 each and at most "
                f"{MOST_HEIGHTS:,} in all, got {heights.shape}"
            )
        check_finite("HeightField(heights)", heights)
        cell = real_array("HeightField(cell=...)", self.cell, "() or (2,)")
        cell = np.broadcast_to(cell, (2,)) if cell.shape in ((), (2,)) else np.zeros(2)
        if not (np.isfinite(cell) & (cell > 0.0)).all():
            raise ShapeError(
                f"HeightField(cell=...): expected one or two lengths > 0, got {shown(self.cell)}"
            )
        origin = real_array("HeightField(origin=...)", self.origin, "(2,) or (3,)")
        if origin.shape not in ((2,), (3,)) or not np.isfinite(origin).all():
            raise ShapeError(
                f"HeightField(origin=...): expected (x, y) or (x, y, z), got {shown(self.origin)}"
            )
        heights.setflags(write=False)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "cell", tuple(map(float, cell)))
        object.__setattr__(self, "origin", (*map(float, origin), 0.0)[:3])
        if self.friction is not None:
            mu = real_number("HeightField(friction=...)", self.friction, least=0.0)
            object.__setattr__(self, "friction", mu)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same field at the same place."""
        return isinstance(other, HeightField) and (
            (self.cell, self.origin, self.friction) == (other.cell, other.origin, other.friction)
            and np.array_equal(self.heights, other.heights)
        )

    def __hash__(self) -> int:
        return hash((self.cell, self.origin, self.friction, self.heights.shape))

    @staticmethod
    def from_picture(
        path: str | os.PathLike[str],
        size: float | Sequence[float] = 10.0,
        low: float = 0.0,
        high: float = 1.0,
        origin: Sequence[float] | None = None,
        friction: float | None = None,
    ) -> HeightField:
        """A height field from an image: black is low, white is high. Needs Pillow.

        Columns of pixels are along x, rows along -y, so from above the field looks like the image.

        Args:
            path: a PNG, JPEG, BMP, TGA, GIF, WebP or TIFF file; of 16 bits a pixel, all count.
            size: lengths along x and y from the first to the last pixel [m], or the longer one, for square
                pixels.
            low, high: heights of black and of white [m].
            origin: (x, y) or (x, y, z) of the lower left pixel [m]; None centres the image on the world's
                origin.
            friction: Coulomb coefficient of the field; None takes that of the ground.

        Raises:
            ShapeError: the picture cannot be read, or another argument has an invalid value.
        """
        path = path_argument("path", path)
        low, high = real_number("low", low), real_number("high", high)
        lengths = real_array("size", size, "() or (2,)")
        if lengths.shape not in ((), (2,)) or not (np.isfinite(lengths) & (lengths > 0.0)).all():
            raise ShapeError(f"size: expected one or two lengths > 0, got {shown(size)}")
        try:
            grey = _grey(path)
        except (OSError, ValueError, SyntaxError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ShapeError(f"path: {os.fspath(path)}: no picture of heights ({reason})") from error
        if min(grey.shape) < 2 or grey.size > MOST_HEIGHTS:
            raise ShapeError(
                f"path: {os.fspath(path)} has {grey.shape[1]} x {grey.shape[0]} pixels; expected at least "
                f"2 x 2 and at most {MOST_HEIGHTS:,} in all"
            )
        heights = low + (high - low) * grey[::-1].T
        cells = np.array(heights.shape) - 1
        cell = lengths / (cells if lengths.ndim else cells.max())
        middle = (-0.5 * cells * cell).tolist()
        return HeightField(heights, cell, middle if origin is None else origin, friction)


def _grey(path: Any) -> np.ndarray:
    """Brightness of the pixels from 0 to 1, row by row from the top."""
    with open_picture(path) as image:
        if image.mode.startswith("I"):
            return np.asarray(image, dtype=float) / 65535.0
        if image.mode == "F":
            raise ValueError("its pixels are floating-point numbers; give the array to HeightField instead")
        return np.asarray(image.convert("L"), dtype=float) / 255.0


# ==== the ground ==================================================================================
# The ground: a plane, a height field and solids at rest, with the constants of the contact law.

DEEPEST = 1e-3  # depth at which one point carries the whole weight of a robot that is not small [m]
SHARE = 1.0 / 200.0  # of a small robot, over its radius: a fall from 20 radii ends 1/5 of this one deep
STANDARD = 9.81  # gravity [m/s^2] of the time in which an impact is absorbed


@dataclass(frozen=True)
class Ground:
    """The ground: a plane, a height field, solids, with Coulomb friction and unilateral contact.

    A contact point with the gap phi that separates at the speed vn has the normal force N = max(0, -k phi - d
    vn) and a friction force of at most friction * N. The stiffness is k = M g / sink, so a single point
    carries the robot's weight at the depth ``sink``; the damping d = k * time absorbs impacts. With a
    restitution, a point that arrives faster than gravity and its load would accelerate it in four steps
    leaves with this fraction of its speed instead.

    Attributes:
        friction: Coulomb coefficient, for all links or {link: coefficient} (0.8 for the others); for
            :func:`robokit.rollout` also (B,) coefficients, one per row. A solid or a height field may have
            its own coefficient, which then holds for all links.
        height: height of the plane above the world's origin [m].
        sink: depth at which a single point carries the whole weight [m]. None: 1 mm; for robots smaller than
            40 cm, 1/200 of their radius; for bodies without joints a tenth of that, and less if they are
            slender, so that they do not tip. If it is given, limits of prismatic joints give way by as much
            under the weight, and the time constants of all limits go with its root.
        time: relaxation time of the contact, d / k [s]. None: critical damping of a point with the whole
            weight, 2 sqrt(sink / g), which is 20 ms for 1 mm, and more for slender bodies.
        slip, sweeps, max_points, accuracy: have no effect any more: friction has true stiction, every step is
            solved to a tolerance, and the number of contact points is not limited.
        restitution: coefficient of restitution, 0 to 1, for all links or {link: coefficient} (0 for the
            others), in rollouts also (B,), one per row. None (default): impacts are absorbed by the contact's
            spring and damper.
        torsional, rolling: friction against spinning about the normal, and against rolling, as a lever arm of
            the normal force [m]; 0 for none.
        shape_error: largest distance, in any direction, between the convex hull of a mesh and the simplified
            hull used in contact [m].
        tilt: angle by which the plane descends towards +x [rad].
        normal: upward normal of the plane, of any length; instead of a tilt. In rollouts also (B, 3), one per
            row.
        velocity: velocity of a conveyor belt, the surface of the plane, (3,) [m/s]; the plane itself does not
            move.
        spin: angular velocity of a turntable about the plane's normal through (0, 0, height) [rad/s].
        shapes: solids at rest: :class:`robokit.Solid`, or shapes of robokit.model placed in the world.
        terrain: a :class:`robokit.HeightField`, or None.
        plane: whether there is a plane; None: unless there is a terrain.

    Example:
        >>> ice = rk.Ground(friction=0.05, tilt=0.1)
        >>> [round(x, 3) for x in ice.up]  # the normal of the plane
        [0.1, 0.0, 0.995]
    """

    friction: float | Sequence[float] | Mapping[str, float | Sequence[float]] = 0.8
    height: float = 0.0
    sink: float | None = None
    time: float | None = None
    slip: InitVar[Any] = None
    sweeps: InitVar[Any] = None
    restitution: float | Sequence[float] | Mapping[str, float | Sequence[float]] | None = None
    torsional: float = 0.0
    rolling: float = 0.0
    shape_error: float = 1e-3
    max_points: InitVar[Any] = None
    tilt: float | None = None
    normal: Any = None
    velocity: Sequence[float] = (0.0, 0.0, 0.0)
    spin: float = 0.0
    shapes: Sequence[Any] = ()
    terrain: HeightField | None = None
    plane: bool | None = None
    accuracy: InitVar[Any] = None

    def __post_init__(self, slip: Any, sweeps: Any, max_points: Any, accuracy: Any) -> None:
        old = {"slip": slip, "sweeps": sweeps, "max_points": max_points, "accuracy": accuracy}
        for name in [name for name, value in old.items() if value is not None]:
            warn(f"Ground({name}=...) does nothing: leave it out")
        mu = self.friction
        mu = (
            {link: coefficients(x) for link, x in mu.items()} if isinstance(mu, Mapping) else coefficients(mu)
        )
        object.__setattr__(self, "friction", mu)
        for name in ("sink", "time", "shape_error"):
            if getattr(self, name) is not None or name == "shape_error":
                real_number(f"Ground({name}=...)", getattr(self, name), above=0.0)
        for name in ("torsional", "rolling"):
            real_number(f"Ground({name}=...)", getattr(self, name), least=0.0)
        e = self.restitution
        if e is not None:
            e = {link: shares(x) for link, x in e.items()} if isinstance(e, Mapping) else shares(e)
            object.__setattr__(self, "restitution", e)
        real_number("Ground(height=...)", self.height)
        if isinstance(self.shapes, str) or not isinstance(self.shapes, Sequence):
            raise WrongType("Ground(shapes=...)", self.shapes, "a list of rk.Solid(geometry, placement)")
        object.__setattr__(
            self, "shapes", tuple(solid(f"Ground(shapes=...)[{k}]", x) for k, x in enumerate(self.shapes))
        )
        if self.terrain is not None and not isinstance(self.terrain, HeightField):
            raise WrongType("Ground(terrain=...)", self.terrain, "rk.HeightField(heights, ...) or None")
        if self.plane not in (None, True, False):
            raise WrongType("Ground(plane=...)", self.plane, "True, False or None")
        if self.plane is None:
            object.__setattr__(self, "plane", self.terrain is None)
        if not (self.plane or self.terrain or self.shapes):
            raise ShapeError("Ground(plane=False): expected shapes or a terrain instead, got neither")
        if self.tilt is not None and self.normal is not None:
            raise ShapeError("Ground(tilt=..., normal=...): expected one of them, got both")
        if self.tilt is not None:
            tilt = real_number("Ground(tilt=...)", self.tilt)
            if abs(tilt) > STEEPEST:
                raise ShapeError(f"Ground(tilt=...): expected at most {STEEPEST:.4g} rad, got {tilt:g}")
            object.__setattr__(self, "tilt", tilt)
        if self.normal is not None:
            several = np.ndim(self.normal) == 2
            n = tuple(upward(x) for x in self.normal) if several else upward(self.normal)
            if several and (not n or self.moves):
                raise ShapeError("Ground(normal=...): one per row, (B, 3), goes with a plane that rests")
            object.__setattr__(self, "normal", n)
        object.__setattr__(self, "velocity", vector("Ground(velocity=...)", self.velocity))
        object.__setattr__(self, "spin", real_number("Ground(spin=...)", self.spin))
        speed = math.hypot(*self.velocity)
        if speed and abs(added(a * b for a, b in zip(self.up, self.velocity, strict=True))) > 1e-6 * speed:
            raise ShapeError(
                f"Ground(velocity=...): expected a velocity along the plane, whose normal is {self.up}, "
                f"got {shown(self.velocity)}"
            )
        if not self.plane and (self.moves or self.tilt or self.normal is not None):
            raise ShapeError("Ground(plane=False): tilt, normal, velocity and spin are those of the plane")
        self.rows  # noqa: B018  (raises where there are several)

    @property
    def up(self) -> tuple[Any, Any, Any]:
        """The plane's unit normal in world axes, three numbers; (B,) each if there is one normal per row."""
        if self.normal is not None:
            x, y, z = self.normal if np.ndim(self.normal) == 1 else np.array(self.normal).T
            if np.ndim(x):
                length = np.sqrt(x * x + y * y + z * z)
                return x / length, y / length, z / length
            # As of rows, to the bit; hypot only where squares leave the range of numbers.
            square = x * x + y * y + z * z
            length = math.sqrt(square) if 1e-300 < square < math.inf else math.hypot(x, y, z)
            return x / length, y / length, z / length
        tilt = self.tilt or 0.0
        s, c = sine_and_cosine(tilt)
        return s, 0.0, c

    @property
    def moves(self) -> bool:
        """Whether the plane's surface moves."""
        return self.spin != 0.0 or any(self.velocity)

    @property
    def only_plane(self) -> bool:
        """Whether the ground is only a plane, without solids and terrain."""
        return bool(self.plane) and not self.shapes and self.terrain is None

    @property
    def horizontal(self) -> bool:
        """Whether the ground is one horizontal plane at rest."""
        if np.ndim(self.normal) == 2:
            return False
        return self.only_plane and not self.moves and self.up == (0.0, 0.0, 1.0)

    @property
    def rows(self) -> int | None:
        """Number of rows B if friction, restitution or the normal has one value per row, otherwise None."""
        counts = self._row_counts()
        if len(counts) > 1:
            words = " and ".join(f"{count} ({name})" for count, name in sorted(counts.items()))
            raise ShapeError(f"Ground: expected as many rows of each, got {words}")
        return next(iter(counts), None)

    @property
    def by_row(self) -> str:
        """Which attribute has one value per row: "friction", "restitution" or "normal"; "" if none has."""
        return next(iter(self._row_counts().values()), "")

    def _row_counts(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for name in ("friction", "restitution"):
            given = getattr(self, name)
            for x in given.values() if isinstance(given, Mapping) else [given]:
                if isinstance(x, tuple):
                    found.setdefault(len(x), name)
        if np.ndim(self.normal) == 2:
            found.setdefault(len(self.normal), "normal")
        return found

    def row(self, k: int) -> Ground:
        """The ground of row k alone; the same ground if no attribute has one value per row."""
        return self if self.rows is None else self._rows_of(k)

    def part(self, rows: slice) -> Ground:
        """The ground of some rows; the same ground if no attribute has one value per row."""
        return self if self.rows is None else self._rows_of(rows)

    def _rows_of(self, k: Any) -> Ground:
        found: dict[str, Any] = {"normal": self.normal}
        if np.ndim(self.normal) == 2:
            found["normal"] = self.normal[k]
        for name in ("friction", "restitution"):
            x = getattr(self, name)
            several = isinstance(x, Mapping)
            found[name] = {link: of_row(y, k) for link, y in x.items()} if several else of_row(x, k)
        return replace(self, **found)

    def gains(self, robot: Robot, size: Any = math.inf, steady: Any = math.inf) -> tuple[Any, Any]:
        """k [N/m] and d [N s/m] of every contact point; (B,) for a robot with samples.

        Args:
            robot: the robot.
            size: radius of the shapes that can touch [m], a number or (B,).
            steady: largest ``sink`` with which bodies without joints stand [m], a number or (B,).
        """
        soft = self.sink or np.minimum(DEEPEST, size * SHARE)
        time = self.time or 2.0 * np.sqrt(soft / STANDARD)
        k = weight(robot) / (self.sink or np.minimum(soft, steady))
        return k, k * time

    def scale(self, size: float = math.inf) -> float:
        """Lengths of contacts over those of a robot that is not small on Ground(); times go with its root.

        Bounds of depths and steps that runs warn of are those at 1. ``size``: radius of the robot [m].
        """
        return max(self.sink or 0.0, min(DEEPEST, size * SHARE)) / DEEPEST

    def bounce(self, link: str) -> Any:
        """Restitution of a link, (B,) if there is one value per row; 0 if none is given."""
        e = self.restitution.get(link, 0.0) if isinstance(self.restitution, Mapping) else self.restitution
        return np.array(e) if isinstance(e, tuple) else e or 0.0

    def coefficient(self, link: str) -> Any:
        """Friction coefficient of a link, (B,) if there is one value per row."""
        mu = self.friction.get(link, 0.8) if isinstance(self.friction, Mapping) else self.friction
        return np.array(mu) if isinstance(mu, tuple) else mu


def ground_of(given: Any) -> Ground | None:
    """The ground that was given, True for that of default values, None or False for none.

    Raises ShapeError for anything else.
    """
    if given is None or given is False:
        return None
    ground = _by_default() if given is True else given
    if not isinstance(ground, Ground):
        raise ShapeError(f"ground: expected rk.Ground(...), True or None, got {shown(given)}")
    return ground


@functools.cache
def _by_default() -> Ground:
    return Ground()


def weight(robot: Robot) -> Any:
    """M g [N], (B,) for samples; without gravity, as on Earth: the scale of forces that hold the robot."""
    g = math.sqrt(added(x * x for x in robot.tree.gravity)) or abs(GRAVITY[2])
    return robot.total_mass * g


# ---- what is given, checked -------------------------------------------------------------------------------

STEEPEST = math.radians(89.0)  # tilt of the plane, at most [rad]: it is given by its height over the origin


def coefficients(mu: Any) -> float | tuple[float, ...]:
    """A coefficient as a float, one per row as a tuple."""
    values = real_array("Ground(friction=...)", mu, "() or (B,)")
    if values.ndim > 1 or not values.size or not np.all(np.isfinite(values) & (values >= 0.0)):
        raise ShapeError(f"Ground(friction=...): expected coefficients >= 0, got {shown(mu)}")
    return tuple(values.tolist()) if values.ndim else float(values)


def shares(e: Any) -> float | tuple[float, ...]:
    """A restitution as a float, one per row as a tuple."""
    if np.ndim(e) == 0:
        if real_number("Ground(restitution=...)", e, least=0.0) > 1.0:
            raise ShapeError(f"Ground(restitution=...): expected 0 to 1, got {e:g}")
        return float(e)
    values = real_array("Ground(restitution=...)", e, "() or (B,)")
    if values.ndim > 1 or not values.size or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ShapeError(f"Ground(restitution=...): expected shares of 0 to 1, got {shown(e)}")
    return tuple(values.tolist())


def upward(given: Any) -> tuple[float, ...]:
    """A direction upward, of any length."""
    n = vector("Ground(normal=...)", given)
    if not n[2] > math.cos(STEEPEST) * math.hypot(*n):
        raise ShapeError(
            "Ground(normal=...): expected a direction upward, at most "
            f"{math.degrees(STEEPEST):g} degrees from the z axis, got {shown(given)}"
        )
    return n


def vector(name: str, value: Any) -> tuple[float, ...]:
    """Three finite numbers."""
    numbers = real_array(name, value, "(3,)")
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise ShapeError(f"{name}: expected three finite numbers, got {shown(value)}")
    return tuple(numbers.tolist())


def of_row(mu: Any, k: Any) -> Any:
    """Of numbers with one per row, that of row k, or those of a slice; a number for all rows stays itself."""
    return mu[k] if isinstance(mu, tuple) else mu


# ---- what stands still and can be touched ------------------------------------------------------------------


def plane_of(ground: Ground) -> tuple[Placement, tuple[float, ...]]:
    """Placement of the plane, z along its normal; spin and velocity of its surface at the world's origin."""
    n = np.array(ground.up, dtype=float)
    t = _cross((0.0, 1.0, 0.0) if abs(n[2]) > abs(n[1]) else (0.0, 0.0, 1.0), n)
    t /= np.linalg.norm(t)
    place, spin = np.array([0.0, 0.0, ground.height]), ground.spin * n
    along = np.array(ground.velocity, dtype=float)
    along = along - n * n.dot(along) - _cross(spin, place)
    return Placement(np.stack([t, _cross(n, t), n], axis=1), place), (*spin.tolist(), *along.tolist())


def _cross(a: Any, b: Any) -> np.ndarray:
    return np.array([*Vector3(*a).cross(Vector3(*b))])  # a tenth of the time of numpy.cross


def world_of(ground: Ground) -> World:
    """All of a ground; its plane is that of the first row where rows differ in it."""
    alone, field = ground.row(0), ground.terrain
    plane, velocity = plane_of(alone) if ground.plane else (None, (0.0,) * 6)
    solids = [(solid.geometry, solid.placement) for solid in ground.shapes]
    friction = [solid.friction for solid in ground.shapes]
    if field is None:
        return World(plane, velocity, solids, friction=friction)
    return World(plane, velocity, solids, field.heights, field.cell, field.origin, friction)


# ---- in the file of a trajectory ---------------------------------------------------------------------------

HEIGHTS = "ground_heights"  # name of the array of a height field


OLD = ("slip", "sweeps", "max_points", "accuracy")  # what older files have, and does nothing any more


def record_ground(ground: Ground) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is stored of a ground: words and numbers for JSON, and the heights of a field as an array."""
    about = {field.name: getattr(ground, field.name) for field in fields(Ground)}
    about["shapes"] = [solid.record() for solid in ground.shapes]
    field = ground.terrain
    if field is None:
        return about, {}
    about["terrain"] = {"cell": field.cell, "origin": field.origin, "friction": field.friction}
    return about, {HEIGHTS: field.heights}


def restored_ground(about: Mapping[str, Any], heights: np.ndarray | None) -> Ground:
    """The ground of a record; LookupError, TypeError or ValueError where the record is none."""
    given = {name: value for name, value in about.items() if name not in OLD}
    given["shapes"] = [Solid.of_record(row) for row in given.get("shapes", ())]
    if given.get("terrain") is not None:
        if heights is None:
            raise ValueError("the heights of its ground are missing")
        given["terrain"] = HeightField(heights, **given["terrain"])
    return Ground(**given)
