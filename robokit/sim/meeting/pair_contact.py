"""The law of one contact between two bodies, linearised, and where it is.

A point of one body that overlaps another by -phi, and moves over it with u at the step's end, feels

    N = max(0, -k phi - kd n . u)                              normal, kd = k dt + d
    t = -min(kd_t, mu N / |x|) x,  x = u_t + r e               friction, r = k_t / kd_t

like a contact point on the ground: what lies on another body sinks in until the spring carries it, and e is
a bristle that holds it there. The impulse of the last step, as far as -k phi and friction allow it now, is
given to the sweeps, so that the ground and the joints carry what lies on them; the rest is solved for after
them.

Bodies that meet fast are stopped at the surface, or bounce by their restitution, by a damper that is much
stiffer than their inertia.

Which two bodies of the robot these are is known when the step runs; weights 1, -1 and 0 choose their
velocities among those of all bodies in pairs, in world axes about one origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.sim.meeting.nearest_pairs import Nearest
from robokit.sim.meeting.pair_shapes import PairShapes
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.scalars import Scalar, clamp, is_zero, maximum, minimum, sqrt, where

RIGID = 300.0
"""Damper of an impact over the effective mass of a pair."""

IMPACT = 0.02
"""Speed from which bodies that meet collide, besides what gravity adds in two steps [m/s]."""

FASTEST_RETURN = 0.3
"""Bodies that overlap are not led apart faster than this [m/s]."""

STILL = 1e-7
"""Bodies that rest on each other and move more slowly after the sweeps are left as they are [m/s]."""

SLOWEST_BOUNCE = 0.02
"""Bodies do not bounce more slowly [m/s]."""

SLOWEST = 1e-9
"""Speed below which a bristle's friction has no direction [m/s]."""

TINY = 1e-36
"""What is smaller is none; single precision still has such numbers."""


@dataclass(frozen=True)
class PairLaw:
    """Constants of the contacts between bodies.

    Attributes:
        shapes: of the bodies, and their pairs.
        mobility: 1 / effective mass of each body in pairs [1/kg]; 0 for one that does not move.
        friction: Coulomb coefficient.
        restitution: separation speed over that of the approach; None for 0.
        k, d: of a point [N/m], [N s/m].
    """

    shapes: PairShapes
    mobility: Sequence[Scalar]
    friction: Scalar
    restitution: Scalar | None
    k: Scalar
    d: Scalar


@dataclass(frozen=True)
class Bond:
    """What a step leaves of a contact to the next one: bristle [m] and impulse [N s], world axes."""

    bristle: Vector3
    impulse: Vector3


class PairContact:
    """One of the contacts that a step treats together."""

    def __init__(self, near: Nearest, law: PairLaw) -> None:
        self.near, self.n = near, near.n
        first, second = ({row[k] for row in law.shapes.pairs} for k in (0, 1))
        self.weights: list[Scalar] = []
        self.mobility: Scalar = 0.0
        for k, mobility in enumerate(law.mobility):
            here = where(near.i == float(k), 1.0, 0.0) if k in first else 0.0
            there = where(near.j == float(k), 1.0, 0.0) if k in second else 0.0
            self.weights.append(here - there)
            self.mobility = self.mobility + (here + there) * mobility

    def weight(self, place: Scalar) -> Scalar:
        """That of the body at this place in the list of bodies."""
        return where(self.near.i == place, 1.0, 0.0) - where(self.near.j == place, 1.0, 0.0)

    def relative(self, V: Sequence[Motion]) -> Vector3:
        """Velocity of i's point less that of j's, from velocities of all bodies in pairs; all world axes."""
        ang = weighted(self.weights, [v.ang for v in V])
        lin = weighted(self.weights, [v.lin for v in V])
        return lin + ang.cross(self.near.x)

    def force(self, f: Vector3) -> Force:
        """An impulse at its point on i, and its negative on j, about the world's origin."""
        return Force(self.near.x.cross(f), f)

    def load(self, law: PairLaw, V: Sequence[Motion], falling: Scalar, dt: Scalar, before: Bond) -> None:
        """What is known before the sweeps.

        Args:
            law: of the contacts.
            V: velocities before of all bodies in pairs, world axes.
            falling: speed that gravity adds in a step [m/s].
            dt: step [s].
            before: what the last step has left of the contact.
        """
        n, phi, u = self.n, self.near.phi, self.relative(V)
        un = n.dot(u)
        self.hit = (un * dt + phi < 0.0) & (un < -(IMPACT + 2.0 * falling))
        self._springs(law, dt)
        e = before.bristle + u * dt
        e = e - n * n.dot(e)
        N = maximum(self.rest - law.d * maximum(un, 0.0), 0.0)
        bent = where(self.hit, 0.0, minimum(law.friction * N / (law.k * sqrt(e.dot(e) + 1e-30)), 1.0))
        self.e = e * bent
        self.bounce: Scalar = 0.0 if law.restitution is None else -law.restitution * un
        along = n * n.dot(before.impulse)
        self.carried = along + _within(before.impulse - along, law.friction * N * dt)
        self._give(law, dt)

    def values(self) -> list[Scalar]:
        """Hit or not, bristle, bounce, and the impulse carried before: what :meth:`load` found out."""
        return [where(self.hit, 1.0, 0.0), *self.e, self.bounce, *self.carried]

    def loaded(self, law: PairLaw, dt: Scalar, values: Sequence[Scalar]) -> None:
        """The same from :meth:`values`."""
        hit, x, y, z, self.bounce, *carried = values
        self.hit, self.e, self.carried = hit > 0.5, Vector3(x, y, z), Vector3(*carried)
        self._springs(law, dt)
        self._give(law, dt)

    def _springs(self, law: PairLaw, dt: Scalar) -> None:
        self.kd = law.k * dt + law.d
        self.r = law.k / self.kd
        self.rest = -law.k * maximum(self.near.phi, -FASTEST_RETURN * law.d / law.k)

    def _give(self, law: PairLaw, dt: Scalar) -> None:
        """The impulse that is given to the sweeps: what was carried before, as far as spring and friction go.

        The whole spring would throw a light body about before the damper is solved for. Were it the bristle
        alone sideways, what is under a body would slide early: it never learned what the damper gave.
        """
        n = self.n
        self.slow = where(self.hit, 0.0, 1.0) > 0.5
        self.sunk = self.slow & (self.near.phi < 0.0)
        before = n.dot(self.carried)
        N = clamp(before, 0.0, maximum(self.rest, 0.0) * dt)
        f = n * N + _within(self.carried - n * before, law.friction * N)
        self.given = f * where(self.sunk, 1.0, 0.0)

    def start(self, law: PairLaw, u: Vector3, dt: Scalar) -> None:
        """The normal part of the law from the relative velocity u after the sweeps."""
        phi, n = self.near.phi, self.n
        un = n.dot(u)
        rest = where(phi > 0.0, -phi / dt, 0.0)
        bounce = rest
        if law.restitution is not None:
            bounce = where(self.bounce > SLOWEST_BOUNCE, maximum(rest, self.bounce), rest)
        self.aim = where(self.hit, bounce, rest)
        soft = self.sunk | (self.slow & (un * dt + phi < 0.0))
        held = self.hit & (un < bounce)
        mass = 1.0 / maximum(self.mobility, 1e-9)
        self.g = where(held, RIGID * mass, where(soft, self.kd * dt, 0.0))
        ahead = where(self.sunk, self.rest * dt - n.dot(self.given), 0.0)
        self.on = held | soft
        self.moves = held | (
            soft & ((phi > 0.0) | (u.dot(u) > STILL * STILL) | (ahead > STILL * self.kd * dt))
        )
        self.mu, self.u, self.c, self.dt = law.friction, u, 0.0, dt
        # The damper of an impact leaves 1/(RIGID + 1) of what it stops, so it aims beyond by as much.
        beyond = where(held, (self.aim - un) * mass, 0.0)
        self.first = n * (self.g * (self.aim - un) + beyond + ahead)
        self.released = where(soft & (ahead > 0.0), ahead / (self.kd * dt), 0.0)

    def rub(self, f: Vector3) -> None:
        """Let go what pulls, and friction, where the normal parts alone ask for the impulse f more."""
        n = self.n
        N = maximum(n.dot(f + self.given), 0.0)
        self.x = x = self.u - n * n.dot(self.u) + self.e * self.r
        self.speed = sqrt(x.dot(x) + SLOWEST * SLOWEST)
        c, most = self.mu * N / self.speed, where(self.hit, self.g, self.kd * self.dt)
        self.c = minimum(c, most)
        pressed = N > 0.0
        self.slides = pressed & (c < most)
        self.g = where(pressed, self.g, 0.0)
        along = self.first - x * self.c - (self.given - n * n.dot(self.given))
        self.first = Vector3(*(where(pressed, a, -b) for a, b in zip(along, self.given, strict=True)))

    def slide(self, f: Vector3) -> None:
        """What slides on feels Coulomb's friction, what an impact nearly stops sideways is held.

        The damper was right at the speed before friction; at the speed after it, it gives too little: half
        of what stops a contact that friction can just stop.

        Args:
            f: the impulse that the damper gives.
        """
        f = f + self.given
        N = self.n.dot(f)
        t = f - self.n * N
        size, most = sqrt(t.dot(t) + TINY), self.mu * maximum(N, 0.0)
        lost = maximum(self.speed - size / maximum(self.c, TINY), 0.0)
        left = self.speed - lost * (most / size)
        on = clamp(10.0 * left / self.speed - 0.5, 0.0, 1.0)
        goes = where(self.slides, on, 0.0)
        stops = where(self.slides & self.hit, 1.0 - on, 0.0) * maximum(self.g - self.c, 0.0)
        self.first = self.first + (self.x * self.c + t * (most / size)) * goes - self.x * stops
        self.c = self.c * (1.0 - goes) + stops

    def slope(self, u: Vector3) -> Vector3:
        """K u."""
        un = self.n.dot(u)
        return u * self.c + self.n * ((self.g - self.c) * un)

    def missing(self, f: Vector3) -> Scalar:
        """f . (n w - u): u is the velocity before the impulses, w that at which nothing is missing.

        A spring that was given too little may push until then, though that makes its bodies faster. Else what
        lies on another body would go on sinking in, ever deeper on one side.
        """
        return f.dot(self.n * (self.aim + self.released) - self.u)

    def cut(self, f: Vector3) -> Vector3:
        """f, such that with what was given it does not pull and is inside Coulomb's cone."""
        f = f + self.given
        along = self.n.dot(f)
        N = maximum(along, 0.0)
        return self.n * N + _within(f - self.n * along, self.mu * N) - self.given


def _within(t: Vector3, most: Scalar) -> Vector3:
    """t, shortened to the length most where it is longer."""
    size = sqrt(t.dot(t) + TINY)
    return t * where(size > most, most / size, 1.0)


def weighted(weights: Sequence[Scalar], vectors: Sequence[Vector3]) -> Vector3:
    """Sum of w x, of the vectors whose weight is not zero for certain."""
    total = Vector3.zero()
    for w, x in zip(weights, vectors, strict=True):
        if not is_zero(w):
            total = total + x * w
    return total
