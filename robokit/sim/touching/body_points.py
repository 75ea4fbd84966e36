"""The points of one body over a ground: where they are, how fast, and how far their bristles are bent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.sim.shapes.contact_shapes import ContactShape, Rim
from robokit.sim.touching.ground_law import Axes, GroundLaw
from robokit.spatial import Motion, Vector3
from robokit.spatial.scalars import Scalar, likewise, maximum, minimum, sqrt, where

TANGENTIAL = 30.0
"""Stiffness of a bristle over that of the ground: a box gives way by some micrometres before it slides."""


@dataclass(frozen=True)
class Velocities:
    """Of one point: along the normal, and of its bristle along the two tangents [m/s]."""

    vn: Scalar
    x: tuple[Scalar, Scalar]

    @property
    def sliding(self) -> Scalar:
        """|x|^2."""
        return self.x[0] * self.x[0] + self.x[1] * self.x[1]


class BodyPoints:
    """The points of one body in one step.

    Attributes:
        i: number of the body.
        p: positions, body coordinates [m].
        phi: heights over the ground [m].
        anchors: bristles at the step's end (they do not move in it) [m]; empty without.
        foreseen: normal forces that the first sweep foresees by itself [N].
        unforeseen: by how much they were larger in the last step [N].
        near: whether any point could be on (near_ground.py).
        leads: what the velocity of a surface that turns changes by in half a step, at a place that moves
            as the body does, for each point; None of one that does not turn.
        acted: forces that acted when other bodies met this one, of the points as in ``Acting.forces`` [N].
        rolls: velocity along the two tangents that each point would have after the kick if it rolled; None
            where that is none.
    """

    def __init__(
        self,
        i: int,
        points: Sequence[ContactShape],
        axes: Axes,
        mu: Scalar,
        mass: Scalar,
        law: GroundLaw,
        dt: Scalar,
        falling: Scalar,
        motion: Motion | None = None,
        restitution: Scalar | None = None,
    ) -> None:
        self.restitution = restitution
        self.i, self.axes, self.mu, self.mass, self.law, self.dt = i, axes, mu, mass, law, dt
        self.falling, self.motion = falling, motion
        self.kd = law.k * dt + law.d
        self.rho = law.k / self.kd
        self.k_t = law.k * TANGENTIAL
        self.kd_t = self.k_t * dt + law.d * TANGENTIAL**0.5
        self.r = self.k_t / self.kd_t
        n = axes.n
        self.p = [shape.at(n) for shape in likewise(points)]
        self.phi = [n.dot(p) + axes.z for p in self.p]
        self._rest()
        self.anchors: list[tuple[Scalar, Scalar]] = []
        self.near: Any = True
        self.unforeseen: list[Scalar] = [0.0 for _ in self.p]
        self.acted: Sequence[tuple[Scalar, Scalar, Scalar]] = []
        self.leads: list[Vector3 | None] = [None for _ in self.p]
        self.shapes = points
        self.rolls: list[tuple[Scalar, Scalar] | None] = [None for _ in self.p]

    def _rest(self) -> None:
        """What follows from the heights: N = load - damp vn, and the speed below which a point is on."""
        # From the middle of a step there is half of it left. What bounces does so before it reaches the
        # surface: springs would throw it farther from below.
        ahead = (2.0 if self.restitution is None else 1.0) / self.dt
        self.reach = [where(phi > 0.0, phi * ahead, self.rho * phi) for phi in self.phi]
        self.load = [-(self.law.k * phi) for phi in self.phi]
        self.damp = [self.kd for _ in self.phi]
        self.back: list[Scalar] = [0.0 for _ in self.phi]
        self.fast: list[Any] = [False for _ in self.phi]
        self.hardest = [self.kd_t for _ in self.phi]
        self.N_before: list[Scalar] = [0.0 for _ in self.phi]
        self.foreseen: list[Scalar] = [0.0 for _ in self.phi]
        self.turning: list[Scalar] = [0.0, 0.0]

    # ---- of the surface under point m --------------------------------------------------------------

    def frame(self, m: int) -> Axes:
        """Its axes, body coordinates."""
        return self.axes

    def mu_at(self, m: int) -> Scalar:
        """Its friction coefficient."""
        return self.mu

    def falling_at(self, m: int) -> Scalar:
        """Speed that gravity adds towards it in a step [m/s]."""
        return self.falling

    def surface_velocity(self, m: int) -> Vector3 | None:
        """Its velocity, body coordinates [m/s]; None for one at rest."""
        return None if self.motion is None else self.motion.lin + self.motion.ang.cross(self.p[m])

    def surface_turn(self, m: int) -> Vector3 | None:
        """Its angular velocity, body coordinates [rad/s]; None for one that does not move."""
        return None if self.motion is None else self.motion.ang

    # ---- sums over the points, in axes that all of them share --------------------------------------

    def place(self, m: int) -> Vector3:
        """Position of point m in these axes [m]."""
        return self.axes.seen(self.p[m])

    def vector(self, m: int, x: Scalar, y: Scalar, n: Scalar = 0.0) -> Vector3:
        """A vector along the tangents and the normal under point m, in these axes: on a plane, its own."""
        return Vector3(x, y, n)

    def in_body(self, a: Vector3) -> Vector3:
        """A vector in these axes, in body coordinates."""
        return self.axes.along_x * a.x + self.axes.along_y * a.y + self.axes.n * a.z

    # ---- points ------------------------------------------------------------------------------------

    def set_out(self, V: Motion, middle: Vector3 | None) -> None:
        """Look where a surface that turns, or a rim, takes what rides or rolls on it.

        A kick has the velocity half a step before its pose and gives that half a step after it. On a
        turntable these differ by the circle's inward turn. Against the surface at the pose, a box that rides
        on it would seem to slide, outward before and inward after, and friction would drive it out. So does
        a coin that wobbles on its rim: the point that touches runs along the rim, and where it is at the
        pose, the coin has not yet come to roll, or does no more. Friction would raise it.

        Args:
            V: velocity before the kick.
            middle: centre of mass of a loose body [m]; None of others, whose joints decide how they move on.
        """
        turns = map(self.surface_turn, range(len(self.p)))
        self.leads = [None if w is None else w.cross(V.lin) * (0.5 * self.dt) for w in turns]
        if middle is not None:
            self.rolls = [self._roll(m, V.ang, middle) for m in range(len(self.p))]

    def _roll(self, m: int, w: Vector3, middle: Vector3) -> tuple[Scalar, Scalar] | None:
        shape, axes = self.shapes[m], self.frame(m)
        if not isinstance(shape, Rim) or shape.turn:
            return None  # its neighbours on the rim hold what stands, and do not roll
        u = axes.seen(shape.rolled(axes.n, w * (0.5 * self.dt), middle).cross(w))
        return u.x, u.y

    def hold(self, V: Motion, anchors: Sequence[tuple[Scalar, Scalar]]) -> None:
        """Bend the bristles by what the points have moved in the last step, at the velocity V."""
        speeds = self.velocities_before(V)
        for m, (at, phi, (ex, ey)) in enumerate(likewise(zip(speeds, self.phi, anchors, strict=True))):
            ux, uy = at.x
            ex, ey = ex + self.dt * ux, ey + self.dt * uy
            # Not by the damper: over the ground there is nothing to hold on to, however fast the point comes.
            N = maximum(-(self.law.k * phi + self.law.d * maximum(at.vn, 0.0)), 0.0)
            most = self.mu_at(m) * N * (1.0 / self.k_t)
            length = sqrt(ex * ex + ey * ey + 1e-30)
            keep = minimum(most / length, 1.0)
            self.anchors.append((ex * keep, ey * keep))

    def velocities(self, V: Motion) -> list[Velocities]:
        """Of every point, at the body's velocity V after the kick; x includes the bristle."""
        return self._relative(V, 1.0)

    def velocities_before(self, V: Motion) -> list[Velocities]:
        """The same at the velocity V before the kick."""
        turns = any(lead is not None for lead in (*self.leads, *self.rolls))
        return self._relative(V, -1.0) if turns else self.velocities(V)

    def _relative(self, V: Motion, side: float) -> list[Velocities]:
        return [self._with_bristle(m, u, side) for m, u in enumerate(likewise(self._along_axes(V, side)))]

    def _along_axes(self, V: Motion, side: float) -> list[Vector3]:
        """Velocity of every point over the surface, along the tangents and the normal."""
        V, seen = V if self.motion is None else V - self.motion, self.axes.seen
        lead = next((x for x in self.leads if x is not None), None)
        lin = seen(V.lin if lead is None else V.lin - lead * side)
        ang = seen(V.ang)
        return [lin + ang.cross(self.place(m)) for m in likewise(range(len(self.p)))]

    def _with_bristle(self, m: int, u: Vector3, side: float) -> Velocities:
        x, y = u.x, u.y
        roll = self.rolls[m]
        if roll is not None:
            x, y = x - roll[0] * side, y - roll[1] * side
        if self.anchors:
            ex, ey = self.anchors[m]
            x, y = x + self.r * ex, y + self.r * ey
        return Velocities(u.z, (x, y))

    def _over_ground(self, V: Motion) -> list[Vector3]:
        """Velocity of every point over the surface, body coordinates."""
        V = V if self.motion is None else V - self.motion
        return [V.lin + V.ang.cross(p) for p in likewise(self.p)]

    def speeds(self, V: Motion) -> list[tuple[Scalar, Scalar]]:
        """(along the normal, along the ground) of every point over the surface at the velocity V [m/s]."""
        out = []
        for m, u in enumerate(likewise(self._over_ground(V))):
            lead = self.leads[m]
            u = u if lead is None else u - lead
            roll, axes = self.rolls[m], self.frame(m)
            u = u if roll is None else u - axes.along_x * roll[0] - axes.along_y * roll[1]
            vn = axes.n.dot(u)
            out.append((vn, sqrt(maximum(u.dot(u) - vn * vn, 0.0))))
        return out
