"""What the ground gives in return while impulses between bodies are found.

Under a body that other bodies press on the ground, its points answer as in the last sweep: along the normal
by their dampers and, under a loose body, sideways by the bristles of those that stick. Else a light body
under a heavy one would be moved sideways by what holds the heavy one, step by step, and the ground would
never see it. Links of a robot are held by their joints, too; their points answer along the normal alone.

Where a body's points would have to give more sideways than Coulomb's friction allows, they slide: instead of
bristles they give what friction can.

Source: as the points of contact.py, at the iterate of the last sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.sim.touching.acting import Acting
from robokit.sim.touching.point_moments import Moments, along, isotropic
from robokit.spatial import ArticulatedInertia, Force, Motion, Vector3
from robokit.spatial.scalars import Scalar, is_zero, likewise, maximum, sqrt, where

STICKS = 1.0 - 1e-6
"""Share of the damper of a bristle from which a point is held by it."""

SLIDES = 1.01
"""Share of Coulomb's friction from which the points of a body slide."""

TINY = 1e-30

Given = tuple[Scalar, Scalar, Scalar]
"""Impulse of a point along the normal, and along the two axes of the ground [N s]."""


@dataclass(frozen=True)
class GroundInReturn:
    """The points of one body.

    Attributes:
        acting: what acts on the body after the sweeps.
        gains: dt times the damper along the normal of each point; 0 where the body is not pressed.
        held: the same sideways; 0 of points that do not stick, and of all of a body that is not loose.
        more: impulses besides, sideways along the two axes, of each point [N s].
        loose: whether the body is.
    """

    acting: Acting
    gains: Sequence[Scalar]
    held: Sequence[Scalar]
    more: Sequence[tuple[Scalar, Scalar]]
    loose: bool = True

    @staticmethod
    def of(acting: Acting, gains: Sequence[Scalar], loose: bool) -> GroundInReturn:
        """Where the points of a loose body stick that do so in the last sweep."""
        body = acting.body
        if not loose:
            return GroundInReturn(acting, gains, [0.0 for _ in gains], [(0.0, 0.0) for _ in gains], False)
        rows = zip(gains, body.c, body.hardest, strict=True)
        held = [where((gain > 0.0) & (c > STICKS * body.dt * h), c, 0.0) for gain, c, h in rows]
        return GroundInReturn(acting, gains, held, [(0.0, 0.0) for _ in gains])

    def stiffness(self) -> ArticulatedInertia:
        """What the points add to the inertia of the body."""
        body = self.acting.body
        points: dict[int, Moments] = {}
        normals: dict[int, Vector3] = {}
        sideways = Moments()
        rows = zip(body.p, self.gains, self.held, strict=True)
        for m, (p, gain, c) in enumerate(likewise(rows)):
            n = body.frame(m).n
            key = id(body.frame(m))
            normals[key] = n
            along_n = gain - c if self.loose else gain
            points[key] = points.get(key, Moments()) + Moments.of(along_n, p.cross(n))
            sideways = sideways if is_zero(c) else sideways + Moments.of(c, p)
        total, *others = (along(moments, normals[key]) for key, moments in points.items())
        for other in others:
            total = total + other
        return total if is_zero(sideways.s0) else total + isotropic(sideways)

    @property
    def pushes(self) -> bool:
        """Whether there may be impulses besides."""
        return not all(is_zero(a) for pair in self.more for a in pair)

    def push(self) -> Force:
        """The impulses besides on the body, body coordinates [N m s; N s]."""
        total, body = Force.zero(), self.acting.body
        for m, (p, (x, y)) in enumerate(likewise(zip(body.p, self.more, strict=True))):
            f = body.frame(m).along_x * x + body.frame(m).along_y * y
            total = total + Force(p.cross(f), f)
        return total

    def given(self, change: Motion) -> list[Given]:
        """What each point gives where the body's velocity changes by so much."""
        found, body = [], self.acting.body
        rows = zip(body.p, self.gains, self.held, self.more, strict=True)
        for m, (p, gain, c, (x, y)) in enumerate(likewise(rows)):
            u = change.lin + change.ang.cross(p)
            N = -(gain * body.frame(m).n.dot(u))
            if self.loose:
                u = body.frame(m).seen(u)
                x, y = x - c * u.x, y - c * u.y
            found.append((N, x, y))
        return found

    def values(self, change: Motion, s: Scalar) -> list[Scalar]:
        """A share s of it: the sum on the body, its work on a surface that moves, and of each point.

        Of each point it is what :meth:`given` says, of a body that is not loose the first number alone.
        """
        body, total = self.acting.body, Force.zero()
        work: Scalar = 0.0
        each: list[Scalar] = []
        if not self.loose:
            for m, (p, gain) in enumerate(likewise(zip(body.p, self.gains, strict=True))):
                n = body.frame(m).n
                N = -gain * s * n.dot(change.lin + change.ang.cross(p))
                total = total + Force(p.cross(n) * N, n * N)
                each.append(N)
            return [*total, *each]
        for m, (p, (N, x, y)) in enumerate(likewise(zip(body.p, self.given(change), strict=True))):
            axes, u = body.frame(m), body.surface_velocity(m)
            f = axes.n * (N * s) + axes.along_x * (x * s) + axes.along_y * (y * s)
            work = work if u is None else work + u.dot(f)
            total = total + Force(p.cross(f), f)
            each += [N * s, x * s, y * s]
        return [*total, work, *each]

    def overload(self, change: Motion) -> Scalar:
        """By how much that is more than friction allows, of all points of the body together [N s].

        0 where none of them sticks.
        """
        found: Scalar = 0.0
        for m, (N, x, y) in enumerate(likewise(self._totals(change))):
            found = found + (sqrt(x * x + y * y + TINY) - SLIDES * self._most(m, N))
        return where(sum(self.held, 0.0) > 0.0, found, 0.0)

    def sliding(self, slides: Any, change: Motion) -> GroundInReturn:
        """The same where it slides: each point gives what friction can, where it would have to give more."""
        dt = self.acting.body.dt
        held, more = [], []
        rows = zip(self._totals(change), self.acting.forces, self.held, strict=True)
        for m, ((N, x, y), (_, before_x, before_y), c) in enumerate(likewise(rows)):
            share = self._most(m, N) / sqrt(x * x + y * y + TINY)
            there = slides & (c > 0.0)
            held.append(where(slides, 0.0, c))
            lacking = (share * x - dt * before_x, share * y - dt * before_y)
            more.append((where(there, lacking[0], 0.0), where(there, lacking[1], 0.0)))
        return GroundInReturn(self.acting, self.gains, held, more)

    def _most(self, m: int, N: Scalar) -> Scalar:
        return self.acting.body.mu_at(m) * maximum(N, 0.0)

    def _totals(self, change: Motion) -> list[Given]:
        """With what acts after the sweeps."""
        dt = self.acting.body.dt
        rows = likewise(zip(self.acting.forces, self.given(change), strict=True))
        return [(dt * N + n, dt * x + a, dt * y + b) for (N, x, y), (n, a, b) in rows]
