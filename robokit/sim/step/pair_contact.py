"""The law of one contact between two bodies, linearised, and where it is.

    f = g (b - n . u) n - c u_t        normal, where it pushes; friction

u is the velocity of one body's point less that of the other's. b is the relative speed that the normal part
aims at: -phi / dt for bodies that are still apart, a slow separation for those that overlap, -restitution
times the speed before for those that meet. g is so much larger than the bodies' effective mass that they do
so to a few thousandths. c is the damper that gives the friction of the normal part alone.

Which two bodies of the robot these are is known when the step runs; weights 0 or 1 choose their poses and
velocities among all bodies in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.sim.step.nearest_pairs import Nearest, Pose
from robokit.sim.step.pair_shapes import PairShapes
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.scalars import Scalar, is_zero, maximum, minimum, sqrt, where

RIGID = 300.0
"""g over the effective mass of a pair: 1/RIGID of the approach is left after a step."""

RETURN_TIME = 0.02
"""Bodies that overlap are led apart in this time [s]."""

FASTEST_RETURN = 0.3
"""But not faster than this [m/s]."""

SLOWEST_BOUNCE = 0.02
"""Bodies do not bounce more slowly [m/s]."""

FADE = 1e-3
"""Sliding speed below which friction between bodies fades out [m/s]."""


@dataclass(frozen=True)
class PairLaw:
    """Constants of the contacts between bodies.

    Attributes:
        shapes: of the bodies, and their pairs.
        mobility: 1 / effective mass of each body in pairs [1/kg]; 0 for one that does not move.
        friction: Coulomb coefficient.
        restitution: separation speed over that of the approach; None for 0.
    """

    shapes: PairShapes
    mobility: Sequence[Scalar]
    friction: Scalar
    restitution: Scalar | None


@dataclass(frozen=True)
class Side:
    """One body of a contact: which of them, as weights 0 or 1, and where its point is."""

    weights: Sequence[Scalar]
    E: Matrix3
    arm: Vector3

    def velocity(self, V: Sequence[Motion]) -> Vector3:
        """Of its point, world axes, from velocities of all bodies in pairs."""
        ang = weighted(self.weights, [v.ang for v in V])
        lin = weighted(self.weights, [v.lin for v in V])
        return self.E.transpose_apply(lin + ang.cross(self.arm))

    def force(self, f: Vector3) -> Force:
        """A force at its point, world axes, in the body's coordinates."""
        own = self.E @ f
        return Force(self.arm.cross(own), own)


class PairContact:
    """One of the contacts that a step treats together."""

    def __init__(self, near: Nearest, poses: Sequence[Pose], law: PairLaw) -> None:
        self.near, self.n = near, near.n
        self.sides: list[Side] = []
        places = [{row[k] for group in law.shapes.groups for row in group} for k in (0, 1)]
        self.mobility: Scalar = 0.0
        for place, used in zip((near.i, near.j), places, strict=True):
            w = [where(place == float(k), 1.0, 0.0) if k in used else 0.0 for k in range(len(poses))]
            rows = [weighted(w, [Vector3(*pose.E.rows[r]) for pose in poses]) for r in range(3)]
            E, o = Matrix3(rows), weighted(w, [pose.o for pose in poses])
            self.sides.append(Side(w, E, E @ (near.x - o)))
            self.mobility = self.mobility + sum((a * m for a, m in zip(w, law.mobility, strict=True)), 0.0)

    def relative(self, V: Sequence[Motion]) -> Vector3:
        """Velocity of i's point less that of j's, world axes."""
        return self.sides[0].velocity(V) - self.sides[1].velocity(V)

    def start(self, law: PairLaw, before: Vector3 | None, u: Vector3, dt: Scalar) -> None:
        """Gains of the contact from its relative velocities before the step and now."""
        phi, n = self.near.phi, self.n
        aim = where(phi > 0.0, -phi / dt, minimum(-phi / RETURN_TIME, FASTEST_RETURN))
        if law.restitution is not None and before is not None:
            bounce = -law.restitution * n.dot(before)
            aim = where(bounce > SLOWEST_BOUNCE, maximum(aim, bounce), aim)
        self.aim = aim
        un = n.dot(u)
        self.on = (un * dt + phi < 0.0) & (un < self.aim)
        mass = 1.0 / maximum(self.mobility, 1e-9)
        self.g = where(self.on, RIGID * mass, 0.0)
        self.mu, self.u, self.c = law.friction, u, 0.0
        self.first = n * (self.g * (self.aim - un))

    def rub(self, f: Vector3) -> None:
        """Friction, where the normal parts alone ask for the impulse f."""
        t = self.u - self.n * self.n.dot(self.u)
        c = self.mu * maximum(self.n.dot(f), 0.0) / sqrt(t.dot(t) + FADE * FADE)
        self.c = minimum(c, self.g)
        self.first = self.first - t * self.c

    def slope(self, u: Vector3) -> Vector3:
        """K u."""
        un = self.n.dot(u)
        return u * self.c + self.n * ((self.g - self.c) * un)

    def missing(self, f: Vector3) -> Scalar:
        """f . (aim n - u), in which u is the velocity before the impulses."""
        return f.dot(self.n * self.aim - self.u)

    def cut(self, f: Vector3) -> Vector3:
        """f without a pull and inside Coulomb's cone."""
        N = self.n.dot(f)
        t = f - self.n * N
        N = maximum(N, 0.0)
        size, most = sqrt(t.dot(t) + 1e-300), self.mu * N
        return self.n * N + t * where(size > most, most / size, 1.0)


def weighted(weights: Sequence[Scalar], vectors: Sequence[Vector3]) -> Vector3:
    """Sum of w x, of the vectors whose weight is not zero for certain."""
    total = Vector3.zero()
    for w, x in zip(weights, vectors, strict=True):
        if not is_zero(w):
            total = total + x * w
    return total
