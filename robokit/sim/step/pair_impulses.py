"""Impulses between bodies of a robot that touch, equal and opposite, after the sweeps of a step.

The sweeps have found velocities u of a pair's nearest points, without the pair. An impulse f on one body and
-f on the other changes them by W f, where W follows from the factor A of the last sweep:

    f = g (b - n . u) n - c u_t        normal, where it pushes; friction
    u = u0 + W f                       W = J A^-1 J^T

b is the relative speed that the normal part aims at: -phi / dt for bodies that are still apart, a slow
separation for those that overlap, -restitution times the speed before for those that meet. g is so much
larger than the bodies' effective mass that they do so to a few thousandths. Conjugate gradients in the space
of the impulses solve this, one solve of the tree an iteration; a single contact takes three. However few are
taken, the impulses W f of conjugate gradients lose energy. Impulses that pull or leave Coulomb's cone are then
cut, and the tree is solved for those that are left: what acts on one body acts on the other.

Source: conjugate gradients, Hestenes and Stiefel (1952); matrix-free, with the articulated-body sweep as W.
Cost: ITERATIONS + 1 solves of the tree, nothing where no pair is near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.step.implicit_sweep import ImplicitSweep
from robokit.sim.step.nearest_pairs import Nearest, Pose, nearest_pairs, poses_of
from robokit.sim.step.pair_shapes import PairShapes
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.scalars import Scalar, guard, maximum, minimum, sqrt, where

ITERATIONS = 4

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

Rows = list[Any]


@dataclass(frozen=True)
class PairLaw:
    """Constants of the contacts between bodies.

    Attributes:
        shapes: of the bodies, and their pairs.
        mobility: 1 / effective mass of each body in pairs [1/kg]; 0 for one that does not move.
        friction: Coulomb coefficient.
        restitution: separation speed over that of the approach.
    """

    shapes: PairShapes
    mobility: Sequence[Scalar]
    friction: Scalar
    restitution: Scalar


@dataclass
class Met:
    """What acts between bodies in a step.

    Attributes:
        impulse: on each body, {number: impulse in body coordinates [N m s; N s]}.
        overlap: deepest of all pairs [m].
    """

    impulse: dict[int, Force]
    overlap: Scalar


@dataclass(frozen=True)
class Side:
    """One body of a contact: which of them, as weights 0 or 1, and where its point is."""

    weights: Sequence[Scalar]
    E: Matrix3
    arm: Vector3

    def velocity(self, V: Sequence[Motion]) -> Vector3:
        """Of its point, world axes, from velocities of all bodies in pairs."""
        ang = _sum(self.weights, [v.ang for v in V])
        lin = _sum(self.weights, [v.lin for v in V])
        return self.E.transpose_apply(lin + ang.cross(self.arm))

    def force(self, f: Vector3) -> Force:
        """A force at its point, world axes, in the body's coordinates."""
        own = self.E @ f
        return Force(self.arm.cross(own), own)


class Contact:
    """One of the contacts that a step treats together."""

    def __init__(self, near: Nearest, poses: Sequence[Pose], law: PairLaw) -> None:
        self.near, self.n = near, near.n
        self.sides: list[Side] = []
        places = [{row[k] for group in law.shapes.groups for row in group} for k in (0, 1)]
        self.mobility: Scalar = 0.0
        for place, used in zip((near.i, near.j), places, strict=True):
            w = [where(place == float(k), 1.0, 0.0) if k in used else 0.0 for k in range(len(poses))]
            rows = [_sum(w, [Vector3(*pose.E.rows[r]) for pose in poses]) for r in range(3)]
            E, o = Matrix3(rows), _sum(w, [pose.o for pose in poses])
            self.sides.append(Side(w, E, E @ (near.x - o)))
            self.mobility = self.mobility + sum((a * m for a, m in zip(w, law.mobility, strict=True)), 0.0)

    def relative(self, V: Sequence[Motion]) -> Vector3:
        """Velocity of i's point less that of j's, world axes."""
        return self.sides[0].velocity(V) - self.sides[1].velocity(V)

    def start(self, law: PairLaw, before: Vector3, u: Vector3, dt: Scalar) -> None:
        """Gains of the contact from its relative velocities before the step and now."""
        phi, n = self.near.phi, self.n
        aim = where(phi > 0.0, -phi / dt, minimum(-phi / RETURN_TIME, FASTEST_RETURN))
        bounce = -law.restitution * n.dot(before)
        self.aim = where(bounce > SLOWEST_BOUNCE, maximum(aim, bounce), aim)
        un = n.dot(u)
        self.on = (un * dt + phi < 0.0) & (un < self.aim)
        mass = 1.0 / maximum(self.mobility, 1e-9)
        self.g = where(self.on, RIGID * mass, 0.0)
        push = mass * (self.aim - un)
        t = u - n * un
        c = law.friction * push / sqrt(t.dot(t) + FADE * FADE)
        self.c = where(self.on, minimum(c, self.g), 0.0)
        self.mu, self.u = law.friction, t + n * un
        self.first = n * (self.g * (self.aim - un)) - t * self.c

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


def _sum(weights: Sequence[Scalar], vectors: Sequence[Vector3]) -> Vector3:
    """Sum of w x, of the vectors whose weight is not zero for certain."""
    total = Vector3.zero()
    for w, x in zip(weights, vectors, strict=True):
        if not (isinstance(w, float) and w == 0.0):
            total = total + x * w
    return total


class PairImpulses:
    """The contacts between bodies in one step."""

    def __init__(
        self, law: PairLaw, tree: Tree, X: Sequence[Any], V_before: Sequence[Motion], b: Rows, dt: Scalar
    ) -> None:
        self.law, self.tree, self.X, self.V_before, self.b, self.dt = law, tree, X, V_before, b, dt
        self.bodies = law.shapes.bodies
        self.poses = poses_of(tree, X, self.bodies)
        self.near = nearest_pairs(law.shapes, self.poses, dt)

    def meet(self, y: Rows, V: list[Motion]) -> tuple[Rows, list[Motion], Met]:
        """Velocities y and V with the impulses, and these."""
        sizes = [len(row) for row in y]
        touching: Any = self.near[0].phi < 1.0
        for near in self.near[1:]:
            touching = touching | (near.phi < 1.0)
        none = [*_flat(y), *(x for v in V for x in v), *([0.0] * (6 * len(self.bodies)))]
        values = iter(guard(touching, lambda: self._text(y, V), *none))
        y1 = [[next(values) for _ in range(n)] for n in sizes]
        V1 = [Motion(*(Vector3(next(values), next(values), next(values)) for _ in range(2))) for _ in V]
        forces = {b: Force(*(Vector3(next(values), next(values), next(values)) for _ in range(2))) for b in self.bodies}
        overlap: Scalar = 0.0
        for near in self.near:
            overlap = maximum(overlap, -near.phi)
        return y1, V1, Met(forces, overlap)

    def _text(self, y: Rows, V: list[Motion]) -> list[Scalar]:
        before, now = ([W[b] for b in self.bodies] for W in (self.V_before, V))
        contacts = [Contact(near, [self.poses[b] for b in self.bodies], self.law) for near in self.near]
        for contact in contacts:
            contact.start(self.law, contact.relative(before), contact.relative(now), self.dt)
        on: Any = contacts[0].on
        for contact in contacts[1:]:
            on = on | contact.on
        none = [*_flat(y), *(x for v in V for x in v), *([0.0] * (6 * len(self.bodies)))]
        return guard(on, lambda: self._solve(contacts, y, V), *none)

    def _solve(self, contacts: list[Contact], y: Rows, V: list[Motion]) -> list[Scalar]:
        nothing: list[Any] = [None] * (self.tree.n + 1)
        sweep = ImplicitSweep(self.tree, self.X, nothing, self.b, self.dt)
        f = conjugate_gradients(contacts, lambda f: self._response(sweep, contacts, f)[2])
        f = [contact.cut(x) for contact, x in zip(contacts, f, strict=True)]
        dy, dV, moved = self._response(sweep, contacts, f)
        # What is left after the cut may be too much: the part of it that takes most energy.
        wanted = sum((contact.missing(x) for contact, x in zip(contacts, f, strict=True)), 0.0)
        s = minimum(maximum(_ratio(wanted, _dot(f, moved)), 0.0), 1.0)
        return [
            *(a + b * s for a, b in zip(_flat(y), _flat(dy), strict=True)),
            *(a + b * s for v, w in zip(V, dV, strict=True) for a, b in zip(v, w, strict=True)),
            *(x * s for F in self._forces(contacts, f) for x in F),
        ]

    def _forces(self, contacts: list[Contact], f: list[Vector3]) -> list[Force]:
        """Impulses on the bodies in pairs, body coordinates."""
        total = [Force.zero() for _ in self.bodies]
        for contact, x in zip(contacts, f, strict=True):
            for sign, side in zip((1.0, -1.0), contact.sides, strict=True):
                F = side.force(x * sign)
                for k, w in enumerate(side.weights):
                    if not (isinstance(w, float) and w == 0.0):
                        total[k] = total[k] + F * w
        return total

    def _response(
        self, sweep: ImplicitSweep, contacts: list[Contact], f: list[Vector3]
    ) -> tuple[Rows, list[Motion], list[Vector3]]:
        """What the impulses f change: velocities by joint, of the bodies, and W f."""
        T = [Force.zero()] * (self.tree.n + 1)
        for body, F in zip(self.bodies, self._forces(contacts, f), strict=True):
            T[body] = F
        nothing = [[0.0] * (s.stop - s.start) for s in self.tree.v_slice]
        dy, dV = sweep.solve(T, nothing)
        moved = [dV[b] for b in self.bodies]
        return dy, dV, [contact.relative(moved) for contact in contacts]


def conjugate_gradients(contacts: Sequence[Any], response: Any, iterations: int = ITERATIONS) -> list[Vector3]:
    """Impulses f of the contacts with f = first - K W f, in so many iterations."""
    residual = [contact.first for contact in contacts]
    moved = response(residual)
    direction, along = residual, moved
    total = [Vector3.zero() for _ in contacts]
    size = _dot(residual, moved)
    for k in range(iterations):
        back = [d + contact.slope(a) for contact, d, a in zip(contacts, direction, along, strict=True)]
        step = _ratio(size, _dot(along, back))
        total = [f + d * step for f, d in zip(total, direction, strict=True)]
        if k + 1 == iterations:
            return total
        residual = [r - b * step for r, b in zip(residual, back, strict=True)]
        moved = response(residual)
        new = _dot(residual, moved)
        ratio, size = _ratio(new, size), new
        direction = [r + d * ratio for r, d in zip(residual, direction, strict=True)]
        along = [m + a * ratio for m, a in zip(moved, along, strict=True)]
    return total


def _dot(a: Sequence[Vector3], b: Sequence[Vector3]) -> Scalar:
    return sum((x.dot(y) for x, y in zip(a, b, strict=True)), 0.0)


def _ratio(a: Scalar, b: Scalar) -> Scalar:
    """a / b; 0 where nothing is left to do."""
    some = b > 1e-280
    return where(some, a / where(some, b, 1.0), 0.0)


def _flat(rows: Rows) -> list[Scalar]:
    return [x for row in rows for x in row]
