"""Surfaces that a point can touch: signed distance, normal and velocity of each, over generic scalars.

    surface        signed distance phi of the point x                      exact
    plane          n . x - d                                               everywhere
    sphere         |x - c| - r                                             everywhere
    capsule        to the nearest point of its axis, less r                everywhere
    box, cylinder  outside to the nearest point, inside to the nearest face    everywhere
    hull           largest of n . x - d over its planes                    inside, and outside over a face
    height field   (z - h(x, y)) n_z                                       on the surface

A ball over a height field is measured at the foot of its middle, where the normal points at the middle. A
guess of it, made with the normal at the last guess, errs by r / R of that one, where R is the field's radius
of curvature; the first guess is the place below the middle. Where guesses lead follows from two of them, by
Steffensen's method.

Of several surfaces a point touches the one with the smallest phi. A surface is described by a layout, which a
kernel is built for, and by numbers, which are its inputs.

Source: the definition of the distance, in closed form for each surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from robokit.sim.ground import Ground
from robokit.sim.ground.ground_inputs import Layout, layouts
from robokit.spatial import Matrix3, Motion, Vector3
from robokit.spatial.scalars import Scalar, clamp, floor, is_zero, lookup, maximum, minimum, sqrt, where
from robokit.spatial.vector3 import chosen

TINY = 1e-30
"""Added under roots, so that a point in the middle of a ball has a direction."""

RATES = (-4.0, 0.75)
"""Bounds of the rate at which guesses of a foot are believed to err: a ball may nearly fill a valley."""

FAR = 100.0
"""Distance that is given where nothing is to be touched [m]."""


@dataclass
class Touch:
    """The surface at a point.

    Attributes:
        phi: distance of the point from it, below 0 inside [m].
        n: unit normal in world axes, away from the ground.
        u: velocity of the surface in world axes [m/s]; None for one at rest.
        mu: its friction coefficient; None where it has none of its own.
        turn: angular velocity of the surface in world axes [rad/s]; None for one at rest.
    """

    phi: Scalar
    n: Vector3
    u: Vector3 | None = None
    mu: Scalar | None = None
    turn: Vector3 | None = None


Surface = Callable[[Vector3, Scalar], Touch]
"""(point, radius of the ball about it, which only a height field asks for) -> what is there."""


def _chosen_motion(condition: Any, a: Vector3 | None, b: Vector3 | None) -> Vector3 | None:
    """The same of velocities, None of a surface at rest."""
    if a is None and b is None:
        return None
    return chosen(condition, a or Vector3.zero(), b or Vector3.zero())


def deepest(surfaces: Sequence[Surface], x: Vector3, r: Scalar, mu: Scalar) -> Touch:
    """The surface that lies deepest over a ball about x; ``mu`` is the friction of those that have none."""
    best: Touch | None = None
    for surface in surfaces:
        touch = surface(x, r)
        touch.mu = mu if touch.mu is None else touch.mu
        best = touch if best is None else deeper(touch, best)[0]
    assert best is not None
    return best


def deeper(touch: Touch, best: Touch) -> tuple[Touch, Any]:
    """The deeper of two, and whether it is the first."""
    nearer = touch.phi < best.phi
    u, turn = (_chosen_motion(nearer, *both) for both in ((touch.u, best.u), (touch.turn, best.turn)))
    own = best.mu if touch.mu is best.mu else where(nearer, touch.mu, best.mu)
    return Touch(minimum(touch.phi, best.phi), chosen(nearer, touch.n, best.n), u, own, turn), nearer


def plane(n: Vector3, d: Scalar, motion: Motion | None = None) -> Surface:
    """All points with n . x < d; its surface moves as a body of this motion about the world's origin."""

    def at(x: Vector3, r: Scalar) -> Touch:
        if motion is None:
            return Touch(n.dot(x) - d, n)
        return Touch(n.dot(x) - d, n, motion.lin + motion.ang.cross(x), turn=motion.ang)

    return at


def nothing(x: Vector3, r: Scalar) -> Touch:
    """No surface: it is far below."""
    return Touch(FAR, Vector3(0.0, 0.0, 1.0))


def sphere(radius: Scalar) -> Surface:
    """A ball about the origin."""

    def at(x: Vector3, r: Scalar) -> Touch:
        away = sqrt(x.dot(x) + TINY)
        return Touch(away - radius, x * (1.0 / away))

    return at


def capsule(radius: Scalar, half: Scalar) -> Surface:
    """All points within a radius of the axis from (0, 0, -half) to (0, 0, half)."""
    ball = sphere(radius)

    def at(x: Vector3, r: Scalar) -> Touch:
        return ball(Vector3(x.x, x.y, x.z - clamp(x.z, -half, half)), r)

    return at


def box(half: Vector3) -> Surface:
    """All points with |x| < half, coordinate by coordinate."""

    def at(x: Vector3, r: Scalar) -> Touch:
        sign = Vector3(*(where(s < 0.0, -1.0, 1.0) for s in x))
        a = Vector3(*(s * t - h for s, t, h in zip(x, sign, half, strict=True)))
        beyond = Vector3(*(maximum(s, 0.0) for s in a))
        square = beyond.dot(beyond)
        outside = square > 0.0
        away = sqrt(square + TINY)
        over_x = (a.x > a.y) & (a.x > a.z)
        rest = where(over_x, 0.0, 1.0)
        over_y = where(a.y > a.z, rest, 0.0)
        face = Vector3(1.0 - rest, over_y, rest - over_y)
        n = chosen(outside, beyond * (1.0 / away), face)
        inside = maximum(a.x, maximum(a.y, a.z))
        phi = where(outside, away, inside)
        return Touch(phi, Vector3(*(s * t for s, t in zip(n, sign, strict=True))))

    return at


def cylinder(radius: Scalar, half: Scalar) -> Surface:
    """All points within a radius of the z axis and half of the plane z = 0."""

    def at(x: Vector3, r: Scalar) -> Touch:
        rho = sqrt(x.x * x.x + x.y * x.y + TINY)
        sign = where(x.z < 0.0, -1.0, 1.0)
        a, b = rho - radius, x.z * sign - half
        out_a, out_b = maximum(a, 0.0), maximum(b, 0.0)
        square = out_a * out_a + out_b * out_b
        outside = square > 0.0
        away = sqrt(square + TINY)
        side = where(a > b, 1.0, 0.0)
        radial = where(outside, out_a / away, side) / rho
        axial = where(outside, out_b / away, 1.0 - side) * sign
        return Touch(where(outside, away, maximum(a, b)), Vector3(x.x * radial, x.y * radial, axial))

    return at


def hull(planes: Sequence[tuple[Vector3, Scalar]]) -> Surface:
    """All points below these planes (n, d): n . x < d."""

    def at(x: Vector3, r: Scalar) -> Touch:
        phi: Scalar = None
        n = Vector3.zero()
        for m, d in planes:
            height = m.dot(x) - d
            n = m if phi is None else chosen(height > phi, m, n)
            phi = height if phi is None else maximum(height, phi)
        return Touch(phi, n)

    return at


def height_field(
    heights: Any, shape: tuple[int, int], origin: Vector3, per_cell: tuple[Scalar, Scalar]
) -> Surface:
    """All points below heights on a grid, bilinear between them, level beyond the grid.

    Args:
        heights: a table of nx ny heights, y running first [m].
        shape: (nx, ny).
        origin: of the grid; its z is added to all heights [m].
        per_cell: inverse distances of neighbours along x and y [1/m].
    """

    def under(x: Scalar, y: Scalar) -> tuple[Scalar, Vector3]:
        places, shares, inside = [], [], []
        for s, first, scale, n in zip((x, y), origin, per_cell, shape, strict=False):
            u = (s - first) * scale
            kept = clamp(u, 0.0, float(n - 1))
            place = minimum(floor(kept), float(n - 2))
            places.append(place)
            shares.append(kept - place)
            inside.append(where((u < 0.0) | (u > float(n - 1)), 0.0, scale))
        k, (s, t) = places[0] * float(shape[1]) + places[1], shares
        a, b = lookup(heights, k), lookup(heights, k + 1.0)
        c, d = lookup(heights, k + float(shape[1])), lookup(heights, k + float(shape[1] + 1))
        near, far = a + t * (b - a), c + t * (d - c)
        along_x = (far - near) * inside[0]
        along_y = (b - a + s * (d - c - b + a)) * inside[1]
        up = 1.0 / sqrt(1.0 + along_x * along_x + along_y * along_y)
        return near + s * (far - near) + origin.z, Vector3(-(along_x * up), -(along_y * up), up)

    def at(x: Vector3, r: Scalar) -> Touch:
        h, n = under(x.x, x.y)
        phi = (x.z - h) * n.z
        if is_zero(r):
            return Touch(phi, n)
        first = x - n * phi
        h, n = under(first.x, first.y)
        second = x - n * n.dot(x - Vector3(first.x, first.y, h))
        begin, change = Vector3(first.x - x.x, first.y - x.y, 0.0), second - first
        rate = change.dot(begin) / (begin.dot(begin) + TINY)
        foot = first + change * (1.0 / (1.0 - clamp(rate, *RATES)))
        h, n = under(foot.x, foot.y)
        return Touch(n.dot(x - Vector3(foot.x, foot.y, h)), n)

    return at


@dataclass(frozen=True)
class PlacedSolid:
    """A solid at its place, as a surface.

    Attributes:
        inner: its surface about its own origin.
        R: its axes in the world; None: the world's own.
        p: its origin in the world [m].
        kind: box, sphere, cylinder, capsule or hull.
        sizes: half of a box's edges, or radius and half the length [m].
        mu: friction coefficient of its own, or None.
        farther: by how much it is farther than it seems, for its normal in world axes [m]; None: by nothing.
    """

    inner: Surface
    R: Matrix3 | None
    p: Vector3
    kind: str = ""
    sizes: tuple[Scalar, ...] = ()
    mu: Scalar | None = None
    farther: Callable[[Vector3], Scalar] | None = None

    def __call__(self, x: Vector3, r: Scalar) -> Touch:
        """What is at the point x."""
        touch = self.inner(self.inward(x - self.p), r)
        return self.touch(touch.phi, touch.n)

    def touch(self, phi: Scalar, n: Vector3) -> Touch:
        """What is there, of a distance and a normal in its own axes."""
        n = self.outward(n)
        return Touch(phi if self.farther is None else phi + self.farther(n), n, mu=self.mu)

    def inward(self, a: Vector3) -> Vector3:
        """A vector of the world in its axes."""
        return a if self.R is None else self.R.transpose_apply(a)

    def outward(self, a: Vector3) -> Vector3:
        """A vector of its axes in the world."""
        return a if self.R is None else self.R @ a


# ---- from layout and numbers -------------------------------------------------------------------------

Plane = tuple[Vector3, Scalar, Motion | None]


def read_ground(
    ground: Ground, numbers: Iterator[Scalar], tables: Sequence[Any]
) -> tuple[Scalar, Plane | None, list[Surface]]:
    """(height of a horizontal plane at rest, any other plane, surfaces of any other ground)."""
    if ground.horizontal:
        return next(numbers), None, []
    if ground.only_plane:
        return 0.0, plane_numbers(int(ground.moves), numbers), []
    return 0.0, None, surfaces(layouts(ground), numbers, tables)


def surfaces(layouts: Sequence[Layout], numbers: Iterator[Scalar], tables: Sequence[Any]) -> list[Surface]:
    """Surfaces of these layouts; takes as many numbers as they need, and the table of a height field."""
    return [_surface(layout, numbers, tables) for layout in layouts]


def _surface(layout: Layout, numbers: Iterator[Scalar], tables: Sequence[Any]) -> Surface:
    kind, own_friction, size = layout
    mu = next(numbers) if own_friction else None
    if kind == "plane":
        found = plane(*plane_numbers(size[0], numbers))
    elif kind == "field":
        found = height_field(tables[0], (size[0], size[1]), _vector(numbers), (next(numbers), next(numbers)))
    else:
        p = _vector(numbers)
        R = None if kind == "sphere" else Matrix3([list(islice(numbers, 3)) for _ in range(3)])
        return _solid(kind, size[0], numbers, R, p, mu)
    if mu is None:
        return found

    def rubbed(x: Vector3, r: Scalar) -> Touch:
        touch = found(x, r)
        touch.mu = mu
        return touch

    return rubbed


def plane_numbers(moving: int, numbers: Iterator[Scalar]) -> Plane:
    """Normal, distance from the origin, and the motion of its surface if it has one."""
    n, d = _vector(numbers), next(numbers)
    return n, d, Motion(_vector(numbers), _vector(numbers)) if moving else None


def _solid(
    kind: str, size: int, numbers: Iterator[Scalar], R: Matrix3 | None, p: Vector3, mu: Scalar | None
) -> PlacedSolid:
    if kind == "hull":
        planes = hull([(_vector(numbers), next(numbers)) for _ in range(size)])
        return PlacedSolid(planes, R, p, kind, (), mu)
    return placed_solid(kind, tuple(islice(numbers, {"box": 3, "sphere": 1}.get(kind, 2))), R, p, mu)


def placed_solid(
    kind: str, sizes: tuple[Scalar, ...], R: Matrix3 | None, p: Vector3, mu: Scalar | None
) -> PlacedSolid:
    """A box, a sphere, a cylinder or a capsule at its place."""
    if kind == "box":
        found = box(Vector3(*sizes))
    elif kind == "sphere":
        found = sphere(sizes[0])
    else:
        found = {"cylinder": cylinder, "capsule": capsule}[kind](*sizes)
    return PlacedSolid(found, R, p, kind, sizes, mu)


def _vector(numbers: Iterator[Scalar]) -> Vector3:
    return Vector3(*islice(numbers, 3))
