"""The points of one body on a ground of many surfaces: each point has a normal of its own.

The law is that of contact.py. On one plane, all that the points do to their body enters through a few
moments; here the 6 x 6 sum is made of the points one by one:

    K = sum of c 1 + g [p x n; n] [p x n; n]^T,    g = w dt kd - c

Of several surfaces a point touches the one that lies deepest over it. A rounded point touches with the place
of its ball that is nearest to that surface.

Cost: about 180 operations a point and sweep, and once a step those of its distances from all surfaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robokit.sim.shapes.contact_shapes import Ball, ContactShape, Facing, Part, Rim
from robokit.sim.touching.contact import BodyContact
from robokit.sim.touching.ground_law import Axes, GroundLaw
from robokit.sim.touching.point_moments import Moments, isotropic
from robokit.sim.touching.rim_on_box import PlacedRim, rim_on_box
from robokit.sim.touching.solid_contacts import SIDE, Meeting, meetings
from robokit.sim.touching.surfaces import TINY, PlacedSolid, Surface, Touch, deeper, deepest, nothing
from robokit.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Transform, Vector3
from robokit.spatial.scalars import Scalar, maximum, sqrt
from robokit.spatial.vector3 import chosen

Known = dict[tuple[Part, tuple[int, ...]], list[tuple[PlacedSolid, list[Meeting]]]]
"""What is known of parts and the solids that they face."""


class UnevenContact(BodyContact):
    """The points of one body, with axes, friction and velocity of the surface for each.

    Args:
        pose: of the body's coordinates in the world.
        a0: minus gravity, world axes [m/s^2].
    """

    def __init__(
        self,
        i: int,
        points: Sequence[ContactShape],
        pose: Transform,
        mu: Scalar,
        mass: Scalar,
        law: GroundLaw,
        dt: Scalar,
        a0: Vector3,
        restitution: Scalar | None = None,
    ) -> None:
        up = Axes.of_plane(Vector3(0.0, 0.0, 1.0), 0.0)
        super().__init__(i, (), up, mu, mass, law, dt, 0.0, restitution=restitution)
        self.frames: list[Axes] = []
        self.frictions: list[Scalar] = []
        self.moved: list[Vector3 | None] = []
        self.turns: list[Vector3 | None] = []
        self.fall: list[Scalar] = []
        known: Known = {}
        # What faces solids does not ask for them as a ball once more.
        faced = {s.part.center for s in points if isinstance(s, Facing) and s.part.kind == "ball"}
        bare = [s for s in law.surfaces if not isinstance(s, PlacedSolid)] or [nothing]
        for shape in points:
            if isinstance(shape, Facing):
                p, touch = self._facing(shape, pose, known)
            else:
                within = isinstance(shape, Ball) and shape.radius and shape.position in faced
                here = bare if within else _behind_side(shape, points, law.surfaces, pose)
                p, touch = _touching(shape, here, pose, mu)
            axes = Axes.of_plane(touch.n, 0.0)
            axes = Axes(pose.E @ axes.n, pose.E @ axes.along_x, pose.E @ axes.along_y, 0.0)
            self.frames.append(axes)
            self.frictions.append(touch.mu)
            self.moved.append(None if touch.u is None else pose.E @ touch.u)
            self.turns.append(None if touch.turn is None else pose.E @ touch.turn)
            self.fall.append(maximum(a0.dot(touch.n), 0.0) * dt)
            self.p.append(p)
            self.phi.append(touch.phi)
        self._rest()
        self.leads = [None for _ in self.p]
        self.shapes, self.rolls = points, [None for _ in self.p]

    def _facing(self, shape: Facing, pose: Transform, known: Known) -> tuple[Vector3, Touch]:
        """The place of a point that faces a solid, and what is there."""
        key = shape.part, shape.surfaces
        if key not in known:
            known[key] = meetings(shape, pose, self.law.surfaces, self.mu)
        solid, points = known[key][shape.rank]
        p, phi, n = points[shape.number]
        return p, Touch(phi, pose.E.transpose_apply(n), mu=self.mu if solid.mu is None else solid.mu)

    def frame(self, m: int) -> Axes:
        """Axes of the surface under point m."""
        return self.frames[m]

    def mu_at(self, m: int) -> Scalar:
        """Its friction coefficient."""
        return self.frictions[m]

    def falling_at(self, m: int) -> Scalar:
        """Speed that gravity adds towards it in a step [m/s]."""
        return self.fall[m]

    def surface_velocity(self, m: int) -> Vector3 | None:
        """Its velocity, body coordinates [m/s]; None for one at rest."""
        return self.moved[m]

    def surface_turn(self, m: int) -> Vector3 | None:
        """Its angular velocity, body coordinates [rad/s]; None for one that does not move."""
        return self.turns[m]

    def place(self, m: int) -> Vector3:
        """Position of point m, body coordinates [m]."""
        return self.p[m]

    def vector(self, m: int, x: Scalar, y: Scalar, n: Scalar = 0.0) -> Vector3:
        """A vector along the tangents and the normal under point m, body coordinates."""
        axes = self.frames[m]
        return axes.along_x * x + axes.along_y * y + axes.n * n

    def in_body(self, a: Vector3) -> Vector3:
        """The same vector: sums over the points are taken in body coordinates."""
        return a

    def _over_ground(self, V: Motion) -> list[Vector3]:
        u = [V.lin + V.ang.cross(p) for p in self.p]
        return [a if b is None else a - b for a, b in zip(u, self.moved, strict=True)]

    def _along_axes(self, V: Motion, side: float) -> list[Vector3]:
        u = zip(self.frames, self._over_ground(V), self.leads, strict=True)
        return [axes.seen(a if lead is None else a - lead * side) for axes, a, lead in u]

    def _resist_turning(self, V: Motion, again: bool = False) -> None:
        """As on a plane whose normal is the mean of those under the points, weighted by their forces."""
        if self.law.torsional is not None or self.law.rolling is not None:
            total = Vector3.zero()
            for axes, N in zip(self.frames, self.N, strict=True):
                total = total + axes.n * N
            self.axes = replace(self.axes, n=total * (1.0 / sqrt(total.dot(total) + TINY)))
        super()._resist_turning(V, again)

    def linear(self) -> tuple[ArticulatedInertia, Force]:
        """(dt K_i, impulse at V = 0) of the points and dampers of the present sweep."""
        dt = self.dt
        A, B, M = Symmetric3.zero(), Matrix3.zero(), Symmetric3.zero()
        C, impulse = Moments(), Force.zero()
        for m, p in enumerate(self.p):
            n, w, c = self.frames[m].n, self.w[m], self.c[m]
            arm = p.cross(n)
            g = w * (dt * self.damp[m]) - c
            ng, ag = n * g, arm * g
            A = A + Symmetric3(
                arm.x * ag.x, arm.y * ag.y, arm.z * ag.z, arm.x * ag.y, arm.x * ag.z, arm.y * ag.z
            )
            B = B + Matrix3([[a * b for b in ng] for a in arm])
            M = M + Symmetric3(n.x * ng.x, n.y * ng.y, n.z * ng.z, n.x * ng.y, n.x * ng.z, n.y * ng.z)
            C = C + Moments.of(c, p)
            f = n * (w * self.load[m] * dt)
            if self.anchors:
                f = f - self._bristle(m) * (c * self.r)
            roll = self._rolling(m)
            if roll is not None:
                f = f + roll * c
            u, lead = self.moved[m], self.leads[m]
            if u is not None:
                u = u if lead is None else u + lead
                f = f + u * c + ng * n.dot(u)
            impulse = impulse + Force(p.cross(f), f)
        return self._with_turning(isotropic(C) + ArticulatedInertia(A, B, M)), impulse


def _touching(
    shape: ContactShape, surfaces: Sequence[Surface], pose: Transform, mu: Scalar
) -> tuple[Vector3, Touch]:
    """The place of a point, body coordinates, and what it touches there: the deepest of some surfaces."""
    if isinstance(shape, Rim):
        found = [_on_box(shape, s, pose, mu) for s in surfaces if isinstance(s, PlacedSolid) and _is_box(s)]
        surfaces = [s for s in surfaces if not _is_box(s)]
    else:
        found = []
    if surfaces:
        place, r = shape.reach()
        touch = deepest(surfaces, pose.point(Vector3(*place)), r, mu)
        p = shape.at(pose.E @ touch.n)
        if isinstance(shape, Ball):
            touch.phi = touch.phi - r
        else:  # seen from there, a surface that is not flat looks different than from the centre
            touch = deepest(surfaces, pose.point(p), 0.0, mu)
        found.insert(0, (p, touch))
    p, touch = found[0]
    for x, other in found[1:]:
        touch, nearer = deeper(other, touch)
        p = chosen(nearer, x, p)
    return p, touch


def _is_box(surface: Surface) -> bool:
    return isinstance(surface, PlacedSolid) and surface.kind == "box"


def _on_box(rim: Rim, solid: PlacedSolid, pose: Transform, mu: Scalar) -> tuple[Vector3, Touch]:
    """The same of a rim and a box."""

    def lowest(n: Vector3) -> Vector3:
        return pose.point(rim.at(pose.E @ n))

    center, axis = pose.point(Vector3(*rim.center)), pose.E.transpose_apply(Vector3(*rim.axis))
    beside = bool(rim.turn)
    placed = PlacedRim(center, axis, rim.radius, lowest, rim.half, rim.rounding, beside)
    place, touch = rim_on_box(placed, solid)
    touch.mu = mu if touch.mu is None else touch.mu
    return pose.E @ (place - pose.r), touch


def _behind_side(
    shape: ContactShape, points: Sequence[ContactShape], surfaces: Sequence[Surface], pose: Transform
) -> Sequence[Surface]:
    """The surfaces for a point at an end of a cylinder or capsule: boxes that its side faces are farther.

    In a groove such a point would else touch the one wall and the other by turns, as each is deepest, and the
    body would never rest. The side, or the rims of a disc, have points for both walls.

    Args:
        shape: the point.
        points: of its body.
        surfaces: of the ground.
        pose: of the body's coordinates in the world.
    """
    for side in points:
        if not (isinstance(side, Facing) and side.part.kind in ("capsule", "disc")):
            continue
        if not _at_end(shape, side.part):
            continue
        boxes = {k for k in side.surfaces if _is_box(surfaces[k])}
        if boxes:
            axis = pose.E.transpose_apply(Vector3(*(row[2] for row in side.part.rotation)))
            most = SIDE * side.part.size[0]
            level = side.part.kind == "disc"
            return [
                _farther(s, axis, most, level) if k in boxes and isinstance(s, PlacedSolid) else s
                for k, s in enumerate(surfaces)
            ]
    return surfaces


def _at_end(shape: ContactShape, side: Part) -> bool:
    """Whether a point is at an end of what has this capsule as its side."""
    if not isinstance(shape, Rim | Ball) or abs(shape.radius - side.size[0]) > 1e-9 * side.size[0]:
        return False
    axis = Vector3(*(row[2] for row in side.rotation))
    place = shape.position if isinstance(shape, Ball) else shape.center
    away = Vector3(*place) - Vector3(*side.center)
    off, near = away - axis * away.dot(axis), 1e-9 * side.size[0]
    turned = axis.cross(Vector3(*shape.axis)) if isinstance(shape, Rim) else Vector3.zero()
    return bool(off.dot(off) < near**2 and turned.dot(turned) < 1e-18)


def _farther(surface: PlacedSolid, axis: Vector3, most: float, level: bool = False) -> PlacedSolid:
    """A solid that is farther where it runs along an axis, by ``most`` [m]; if level, below 45 degrees."""

    def by(n: Vector3) -> Scalar:
        c = n.dot(axis)
        return (maximum(1.0 - 2.0 * c * c, 0.0) if level else 1.0 - c * c) * most

    return replace(surface, farther=by)
