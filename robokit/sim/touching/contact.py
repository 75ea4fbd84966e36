"""The points of one body on a plane, linearised for a sweep.

A point at the height phi with the velocity u feels, over a step of dt with u at its end,

    N = max(0, -k phi - kd n . u)                                      normal, kd = k dt + d
    t = -min(kd_t, mu N / |x|) x,  x = u_t + r e,  r = k_t / kd_t      friction

e is the point's anchor: how far a bristle between point and ground is bent, at most mu N / k_t. A point that
sticks is held by a spring and does not creep. Without anchors friction fades below the speed ``slip``:
t = -mu N u_t / sqrt(u_t^2 + slip^2). A point that reaches the surface in the step feels this for the part of
the step that is left.

Each sweep solves with both linearised at the last iterate: a point is on or off, and friction is a damper c.
The forces that act are those of the last sweep; what of them pulls or lies outside Coulomb's cone is a
share of a hundredth or less, and is entered into the ledger.

Source: 7-contact of this project's notes; linearised friction as in iteratively re-weighted least squares,
bristles as in P. Dahl (1968) and S. Cundall and O. Strack (1979).
Cost: about 100 operations a point and sweep.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from robokit.sim.touching.body_points import BodyPoints, Velocities
from robokit.sim.touching.point_moments import Moments, along, isotropic, outer
from robokit.spatial import ArticulatedInertia, Force, Motion, Symmetric3, Vector3
from robokit.spatial.scalars import Scalar, clamp, likewise, maximum, minimum, sqrt, where

SLOWEST = 1e-9
"""Speed below which a bristle's friction has no direction [m/s]."""

SHORTEST, WHOLE = 0.05, 1.0 - 1e-6
"""Least part of a step in which a point that arrives touches, and the part from which it rests.

A robot that was put on the ground is over it by rounding. To rest there and to arrive are alike, but their
derivatives are not.
"""

IMPACT = 0.02
"""Speed from which a point that arrives bounces, besides what gravity adds in two steps [m/s]."""

RIGID = 1e3
"""Damper of a bouncing point over the one that stops its body in a step.

It leaves N / damp of the speed at which it aims, so it aims beyond by as much: in the first sweep by what
stops the body, then by its force at the last iterate. What is left after two sweeps is a millionth.
"""

LIGHT = 0.5
"""Mass that a point of a bouncing body moves sideways, over the body's: two sevenths of a ball's."""

SPIN_FADE = 1e-6
"""Speed of turning below which torsional and rolling friction fade out [rad/s]."""

SHORTEST_ARM = 1e-3
"""Least distance from the body's origin at which its points are taken to resist turning [m]."""

SWINGING, CREEPING = -2.0, 0.4
"""Bounds of the rate of convergence that an extrapolation of normal forces believes."""

FAINT = 1e-3
"""Change of a normal force from which it is believed at all [N]."""

CREEPS = 5e-3
"""Speed up to which a point creeps or rests [m/s]."""


class BodyContact(BodyPoints):
    """The points of one body, and what the sweeps choose for them."""

    def _arrive(self, m: int, vn: Scalar) -> None:
        """The law of a point that is over the surface at the step's start acts for the part that is left.

        When it arrives follows from its speed vn before and from gravity. Its depth is the mean of that part,
        without what gravity adds, as the depth of a point that rests. Its damper lets it fall as far as the
        surface: else it would hover where gravity alone brings it down in a step.
        """
        start = self.phi[m] - 0.5 * self.dt * vn
        approach = minimum(vn - 0.5 * self.falling_at(m), -SLOWEST)
        left = clamp(1.0 + start / (approach * self.dt), SHORTEST, 1.0)
        arrives = self.on0[m] & (left < WHOLE)
        left = where(arrives, left, 1.0)
        depth = where(arrives, 0.5 * self.dt * (left * maximum(-vn, 0.0)), -self.phi[m])
        free = where(arrives, clamp(start * (2.0 / self.dt) + vn, 0.0, self.falling_at(m)), 0.0)
        self.damp[m], self.hardest[m] = left * self.kd, left * self.kd_t
        self.load[m] = self.damp[m] * (self.rho * depth - free)

    def _bounce(self, m: int, vn: Scalar) -> None:
        """A point that arrives fast leaves at the speed ``back`` that its restitution says."""
        fast = self.on0[m] & (vn < -IMPACT - 2.0 * self.falling_at(m))
        back, damp = -(self.restitution * vn), RIGID * self.mass / self.dt
        self.fast[m] = fast
        self.unforeseen[m] = where(fast, 0.0, self.unforeseen[m])
        self.back[m] = where(fast, back, 0.0)
        self.damp[m] = where(fast, damp, self.damp[m])
        self.hardest[m] = where(fast, damp, self.hardest[m])

    def _aim(self, m: int, N: Scalar) -> None:
        """The damper of a point that bounces gives N at the speed at which the point is to leave."""
        if self.restitution is not None:
            self.load[m] = where(self.fast[m], self.damp[m] * self.back[m] + maximum(N, 0.0), self.load[m])

    # ---- sweeps ------------------------------------------------------------------------------------

    def foresee(self, V: Motion) -> None:
        """Points and dampers of the first sweep, from the velocity V at the start.

        A point is on if it would reach the surface. Its normal force is foreseen for the velocity that the
        body keeps where all its points brake it: that at V would be too large at an impact. Of what the rest
        of the robot does to the body nothing is known yet; where a point was pressed in the last step too, it
        is taken to be what it was then. The sweeps that follow would not make good for it.
        """
        speeds = self.velocities_before(V)
        self.on0 = [
            at.vn - self.falling_at(m) + reach < 0.0
            for m, (at, reach) in enumerate(likewise(zip(speeds, self.reach, strict=True)))
        ]
        self.w = [where(on, 1.0, 0.0) for on in self.on0]
        self.on = list(self.w)
        for m, at in enumerate(likewise(speeds) if self.restitution is None else ()):
            self._arrive(m, at.vn)
        if self.restitution is not None:
            for m, at in enumerate(likewise(speeds)):
                self._bounce(m, at.vn)
        braked = sum((w * damp for w, damp in zip(self.w, self.damp, strict=True)), 0.0)
        kept = self.mass / (self.mass + self.dt * braked)
        self.c, self.N = [], []
        for m, (at, w, back) in enumerate(likewise(zip(speeds, self.w, self.back, strict=True))):
            after = kept * at.vn
            if self.restitution is not None:
                after = where(self.fast[m], back, after)
                stopped = self.damp[m] * (back - at.vn) * (self.mass / maximum(self.dt * braked, self.mass))
                self._aim(m, stopped)
            after = maximum(after, at.vn)
            self.foreseen[m] = w * maximum(self.normal_at(m, after), 0.0)
            self.N.append(w * maximum(self.foreseen[m] + self.unforeseen[m], 0.0))
            self.c.append(self._damper(m, self.mu_at(m) * self.N[m], _speed(at)))
        self._resist_turning(V)

    def look_again(self, V: Motion) -> None:
        """Points and dampers of a sweep in between, from the iterate V."""
        speeds = self.velocities(V)
        for m, at in enumerate(likewise(speeds)):
            N = self.normal_at(m, at.vn)
            on = where(self.on0[m], -N, at.vn + self.reach[m]) < 0.0
            # Half of the old set stays: a set that is re-evaluated sharply flips in 2-cycles.
            self.w[m] = 0.5 * (self.w[m] + where(on, 1.0, 0.0))
            self.N[m] = where(self.on0[m], maximum(N, 0.0), 0.0)
            self._aim(m, N)
        self._slide(speeds)
        self._resist_turning(V, again=True)

    def met(self, V: Motion) -> None:
        """As :meth:`press`, in the first sweep after other bodies have pushed this one to V.

        Friction has not answered yet: what it lacks is what of :attr:`acted` it cannot give, not what its
        dampers would give at V. Else a point that others move by as little as bristles hold would be let go.
        """
        for m, (at, (_, x, y)) in enumerate(likewise(zip(self.velocities(V), self.acted, strict=True))):
            self.c[m] = self.dt * sqrt(x * x + y * y + SLOWEST * SLOWEST) / _speed(at)
        self.press(V)

    def press(self, V: Motion) -> None:
        """Points and dampers after other bodies have pushed this one to the iterate V.

        Points that now reach the surface are on, too. None is let go: :meth:`release` is next.
        """
        speeds = self.velocities(V)
        for m, at in enumerate(likewise(speeds)):
            N = self.normal_at(m, at.vn)
            on = where(self.on0[m], -N, at.vn + self.reach[m]) < 0.0
            self.w[m] = maximum(self.w[m], where(on, 1.0, 0.0))
            self.N[m] = where(self.on0[m], maximum(N, 0.0), 0.0)
            self._aim(m, N)
        self._slide(speeds)
        self._resist_turning(V, again=True)

    def release(self, V: Motion) -> None:
        """Points and dampers of the last sweep: what pulls at the iterate V is let go."""
        speeds = self.velocities(V)
        self.N_before = list(self.N)
        for m, at in enumerate(likewise(speeds)):
            N = self.normal_at(m, at.vn)
            self.w[m] = where(N > 0.0, self.w[m], 0.0)
            self.N[m] = self.w[m] * N
            self._aim(m, N)
        self._slide(speeds)
        self._resist_turning(V, again=True)

    def extrapolate(self, V: Motion) -> None:
        """Points and dampers of one sweep more, from the iterate V.

        Where friction changes the normal forces (a leg that wedges, a foot on its corners), the sweeps come
        near the solution slowly or swing about it. So friction takes the normal forces at which the last
        three iterates point (Aitken's extrapolation, point by point).
        """
        speeds = self.velocities(V)
        for m, at in enumerate(likewise(speeds)):
            N = self.normal_at(m, at.vn)
            self.w[m] = where(N > 0.0, self.w[m], 0.0)
            step, change = self.w[m] * N - self.N[m], self.N[m] - self.N_before[m]
            rate = step * change / (change * change + FAINT * FAINT)
            step = step / (1.0 - clamp(rate, SWINGING, CREEPING))
            self.N[m] = maximum(self.N[m] + step, 0.0)
            self._aim(m, N)
        self._slide(speeds)
        self._resist_turning(V, again=True)

    def converge(self, V: Motion) -> None:
        """Points and dampers of a sweep of the iteration to an accuracy, from the iterate V.

        A point that would reach the surface at some iterate is pressed or not by its force alone from then
        on: from reaching it to being pressed is a gap without a solution. Where a point is as it was at the
        iterate before, its weight is sharp; half of the old one stays only where it flips. Friction is that
        of the iterate alone, without what :meth:`_slide` guesses: the acceleration of the iteration learns
        that from the iterates.
        """
        for m, at in enumerate(self.velocities(V)):
            self.on0[m] = self.on0[m] | (at.vn + self.reach[m] < 0.0)
            N = where(self.on0[m], maximum(self.normal_at(m, at.vn), 0.0), 0.0)
            on = where(N > 0.0, 1.0, 0.0)
            self.w[m] = where(abs(on - self.on[m]) < 0.5, on, 0.5 * (self.w[m] + on))
            self.on[m], self.N[m] = on, N
            self._aim(m, N)
            self.c[m] = self._damper(m, self.mu_at(m) * N, _speed(at))
        self._resist_turning(V)

    def memory(self) -> list[Scalar]:
        """What a sweep knows of those before: three numbers a point, four where it may bounce."""
        known = [
            x
            for on0, on, w in zip(self.on0, self.on, self.w, strict=True)
            for x in (where(on0, 1.0, 0.0), on, w)
        ]
        return known if self.restitution is None else [*known, *self.load]

    def recall(self, V: Motion, rest: Iterator[Scalar]) -> None:
        """The points as :meth:`memory` has them, of a step that began with the velocity V."""
        self.foresee(V)
        for m in range(len(self.p)):
            self.on0[m] = next(rest) > 0.5
            self.on[m], self.w[m] = next(rest), next(rest)
        if self.restitution is not None:
            self.load = [next(rest) for _ in self.p]

    def normal_at(self, m: int, vn: Scalar) -> Scalar:
        """The normal force of a point that is on, at the speed vn."""
        return self.load[m] - self.damp[m] * vn

    def untrue(self, V: Motion, forces: Sequence[tuple[Scalar, Scalar, Scalar]]) -> Scalar:
        """By how much the normal forces of points that creep or rest are not what the law says at V [N].

        Args:
            V: the body's velocity.
            forces: of the points, the first of each along the normal [N].
        """
        total: Scalar = 0.0
        pairs = zip(self.speeds(V), forces, strict=True)
        for m, ((vn, slip), (given, _, _)) in enumerate(likewise(pairs)):
            on = where(self.on0[m], 1.0, where(vn + self.reach[m] < 0.0, 1.0, 0.0))
            off = abs(on * maximum(self.normal_at(m, vn), 0.0) - given)
            total = total + where(vn * vn + slip * slip < CREEPS * CREEPS, off, 0.0)
        return total

    def choice(self) -> list[list[Scalar]]:
        """What of the choice of a sweep the forces depend on."""
        rows = [self.w, self.c, self.turning]
        return rows if self.restitution is None else [*rows, self.load]

    def _resist_turning(self, V: Motion, again: bool = False) -> None:
        """Dampers against turning that give torsional and rolling friction at the iterate V.

        ``again``: at the rates that the body gains by what friction lacks there, as in :meth:`_slide`. Else a
        body at rest would start by a tenth more in each sweep where a tenth more pulls than friction holds.
        """
        law, n, before = self.law, self.axes.n, self.turning
        self.turning = [0.0, 0.0]  # about the normal, about the tangents
        if law.torsional is None and law.rolling is None:
            return
        w = V.ang if self.motion is None else V.ang - self.motion.ang
        wn, pressed = n.dot(w), self.dt * sum(self.N, 0.0)
        about_tangents = maximum(w.dot(w) - wn * wn, 0.0)
        inertia = self.mass * functools.reduce(maximum, [p.dot(p) for p in self.p], SHORTEST_ARM**2)
        for k, (friction, square) in enumerate(((law.torsional, wn * wn), (law.rolling, about_tangents))):
            if friction is not None:
                rate = sqrt(square + SPIN_FADE**2)
                if again:
                    rate = rate + maximum(before[k] * rate - friction * pressed, 0.0) / inertia
                self.turning[k] = friction * pressed / rate

    def turning_matrix(self) -> Symmetric3 | None:
        """The same as a matrix on the angular velocity."""
        if self.law.torsional is None and self.law.rolling is None:
            return None
        n, (twist, roll) = self.axes.n, self.turning
        more = twist - roll
        return Symmetric3.diagonal(roll) + Symmetric3(*(x * more for x in outer(n)))

    def _slide(self, speeds: Sequence[Velocities]) -> None:
        """The dampers of points that slide, at the speeds that the body gains by what friction lacks.

        The body as a whole is let go: where four points hold it, each gains what all four lack along it, less
        what those that stick could give more.
        """
        lacks, ways = [], []
        whole = Vector3.zero()
        for m, at in enumerate(likewise(speeds)):
            s = _speed(at)
            lack = self.c[m] * s - self.dt * self.mu_at(m) * self.N[m]
            own = maximum(lack, 0.0)
            if self.restitution is not None:  # an impact is one step: what friction can do more is foreseen
                lack = where(self.fast[m], minimum(lack, lack * (1.0 / LIGHT)), lack)
                own = where(self.fast[m], lack, own)
            way = self.vector(m, *at.x) * (1.0 / s)
            whole = whole + way * lack
            lacks.append((s, own))
            ways.append(way)
        for m, ((s, own), way) in enumerate(likewise(zip(lacks, ways, strict=True))):
            s = s + maximum(own, whole.dot(way)) * (1.0 / self.mass)
            s = s if self.restitution is None else maximum(s, SLOWEST)
            self.c[m] = self._damper(m, self.mu_at(m) * self.N[m], s)

    def _damper(self, m: int, friction: Scalar, speed: Scalar) -> Scalar:
        """dt times the damper that gives a friction at that speed, at most a bristle's."""
        slip = self.law.slip
        if slip is not None:
            return self.dt * friction / sqrt(speed * speed + slip * slip)
        return self.dt * minimum(friction / speed, self.hardest[m])

    def linear(self) -> tuple[ArticulatedInertia, Force]:
        """(dt K_i, impulse at V = 0) of the points and dampers of the present sweep."""
        n, G, C = self.axes.n, Moments(), Moments()
        pressed: Scalar = 0.0
        turned, bent = Vector3.zero(), Force.zero()
        for m, p in enumerate(likewise(self.p)):
            arm, e = p.cross(n), self.w[m] * (self.dt * self.load[m])
            pressed, turned = pressed + e, turned + arm * e
            G = G + Moments.of(self.w[m] * (self.dt * self.damp[m]) - self.c[m], arm)
            C = C + Moments.of(self.c[m], p)
            if self.anchors:
                way = self._bristle(m)
                bent = bent + Force(p.cross(way), way) * (self.c[m] * self.r)
            roll = self._rolling(m)
            if roll is not None:
                bent = bent - Force(p.cross(roll), roll) * self.c[m]
        impulse = Force(turned, n * pressed) - bent
        K = self._with_turning(isotropic(C) + along(G, n))
        if self.motion is not None:
            lead = next((x for x in self.leads if x is not None), Vector3.zero())
            impulse = impulse + K @ Motion(self.motion.ang, self.motion.lin + lead)
        return K, impulse

    def _with_turning(self, K: ArticulatedInertia) -> ArticulatedInertia:
        turning = self.turning_matrix()
        return K if turning is None else ArticulatedInertia(K.A + turning, K.B, K.M)

    def _bristle(self, m: int) -> Vector3:
        """How far the bristle of a point is bent, body coordinates [m]."""
        (ex, ey), axes = self.anchors[m], self.frame(m)
        return axes.along_x * ex + axes.along_y * ey

    def _rolling(self, m: int) -> Vector3 | None:
        """Velocity after the kick at which a point rolls, body coordinates [m/s]; None where it is 0."""
        roll, axes = self.rolls[m], self.frame(m)
        return None if roll is None else axes.along_x * roll[0] + axes.along_y * roll[1]


def _speed(at: Velocities) -> Scalar:
    """|x|, at least SLOWEST."""
    return sqrt(at.sliding + SLOWEST * SLOWEST)
