"""The points of one body on a plane: linearised for a sweep, and the forces that act in the end.

A point at the height phi with the velocity u feels, over a step of dt with u at its end,

    N = max(0, -k phi - kd n . u)                                      normal, kd = k dt + d
    t = -min(kd_t, mu N / |x|) x,  x = u_t + r e,  r = k_t / kd_t      friction

e is the point's anchor: how far a bristle between point and ground is bent, at most mu N / k_t. A point that
sticks is held by a spring and does not creep. Without anchors friction fades below the speed ``slip``:
t = -mu N u_t / sqrt(u_t^2 + slip^2).

Each sweep solves with both linearised at the last iterate: a point is on or off, and friction is a damper c.
The forces that act are those of the last sweep; what of them pulls or lies outside Coulomb's cone is a
share of a hundredth or less, and is entered into the ledger.

Source: 7-contact of this project's notes; linearised friction as in iteratively re-weighted least squares,
bristles as in P. Dahl (1968) and S. Cundall and O. Strack (1979).
Cost: about 100 operations a point and sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.contact_shapes import ContactShape
from robokit.sim.step.point_moments import Moments, along, isotropic, outer, push
from robokit.sim.step.surfaces import Surface
from robokit.spatial import ArticulatedInertia, Force, Motion, Symmetric3, Transform, Vector3
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where

TANGENTIAL = 30.0
"""Stiffness of a bristle over that of the ground: a box gives way by some micrometres before it slides."""

SLOWEST = 1e-9
"""Speed below which a bristle's friction has no direction [m/s]."""

IMPACT = 0.02
"""Speed from which a point that arrives bounces, besides what gravity adds in two steps [m/s]."""

RIGID = 1e3
"""Damper of a bouncing point over the one that stops its body in a step."""

SPIN_FADE = 1e-6
"""Speed of turning below which torsional and rolling friction fade out [rad/s]."""


SWINGING, CREEPING = -2.0, 0.4
"""Bounds of the rate of convergence that an extrapolation of normal forces believes."""

FAINT = 1e-3
"""Change of a normal force from which it is believed at all [N]."""


@dataclass(frozen=True)
class GroundLaw:
    """Constants of the contact law as scalars: plain numbers or inputs of a kernel.

    Attributes:
        height: of a horizontal ground at rest [m].
        k, d: of a point [N/m], [N s/m].
        slip: speed below which friction fades out [m/s]; None where points have anchors.
        mu: friction coefficient of each touching body.
        mass: effective mass of each touching body [kg].
        restitution: of each touching body; None where the springs and dampers decide.
        torsional, rolling: friction against turning about the normal and about the tangents [m], or None.
        plane: normal in world axes, distance from the origin, and the motion of its surface or None, of a
            plane that is not horizontal or moves.
        surfaces: of a ground that has more than a plane.
    """

    height: Scalar
    k: Scalar
    d: Scalar
    slip: Scalar | None
    mu: Sequence[Scalar]
    mass: Sequence[Scalar]
    restitution: Sequence[Scalar] | None = None
    torsional: Scalar | None = None
    rolling: Scalar | None = None
    plane: tuple[Vector3, Scalar, Motion | None] | None = None
    surfaces: Sequence[Surface] = ()


@dataclass(frozen=True)
class Axes:
    """A surface in a body's coordinates: normal, two tangents, height of the body's origin over it [m]."""

    n: Vector3
    along_x: Vector3
    along_y: Vector3
    z: Scalar

    @staticmethod
    def of_plane(n: Vector3, d: Scalar) -> Axes:
        """Those of the plane n . x = d, in world axes: x and y, turned by the shortest way to n.

        Source: J. Frisvad (2012) and T. Duff et al. (2017), orthonormal bases without branches.
        """
        s = where(n.z < 0.0, -1.0, 1.0)
        a = -1.0 / (s + n.z)
        b = n.x * n.y * a
        return Axes(
            n, Vector3(1.0 + s * n.x * n.x * a, s * b, -(s * n.x)), Vector3(b, s + n.y * n.y * a, -n.y), -d
        )


def ground_axes(tree: Tree, X: Sequence[Transform | None], world: Axes) -> list[Axes]:
    """A plane's axes, given in those of the world, in the coordinates of the bodies 0..N."""
    out = [world]
    for i in tree.outward():
        Xi, above = X[i], out[tree.parent[i]]
        assert Xi is not None
        n, x, y = (Xi.E @ axis for axis in (above.n, above.along_x, above.along_y))
        out.append(Axes(n, x, y, above.z + above.n.dot(Xi.r)))
    return out


@dataclass(frozen=True)
class Velocities:
    """Of one point: along the normal, and of its bristle along the two tangents [m/s]."""

    vn: Scalar
    x: tuple[Scalar, Scalar]

    @property
    def sliding(self) -> Scalar:
        """|x|^2."""
        return self.x[0] * self.x[0] + self.x[1] * self.x[1]


class BodyContact:
    """The points of one body in one step.

    Attributes:
        i: number of the body.
        p: positions, body coordinates [m].
        phi: heights over the ground [m].
        anchors: bristles at the step's end (they do not move in it) [m]; empty without.
        near: whether any point could be on (near_ground.py).
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
        self.p = [shape.at(n) for shape in points]
        self.phi = [n.dot(p) + axes.z for p in self.p]
        self._rest()
        self.anchors: list[tuple[Scalar, Scalar]] = []
        self.near: Any = True

    def _rest(self) -> None:
        """What follows from the heights: N = load - damp vn, and the speed below which a point is on."""
        self.reach = [where(phi > 0.0, phi / self.dt, self.rho * phi) for phi in self.phi]
        self.load = [-(self.law.k * phi) for phi in self.phi]
        self.damp = [self.kd for _ in self.phi]
        self.back: list[Scalar] = [0.0 for _ in self.phi]
        self.hardest = [self.kd_t for _ in self.phi]

    def _bounce(self, m: int, vn: Scalar) -> None:
        """A point that arrives fast leaves at the speed that its restitution says: N = damp (back - vn)."""
        fast = self.on0[m] & (vn < -IMPACT - 2.0 * self.falling_at(m))
        back, damp = -(self.restitution * vn), RIGID * self.mass / self.dt
        self.back[m] = where(fast, back, 0.0)
        self.load[m] = where(fast, damp * back, self.load[m])
        self.damp[m] = where(fast, damp, self.damp[m])
        self.lift[m] = where(fast, -back, self.lift[m])
        self.hardest[m] = where(fast, damp, self.hardest[m])

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

    # ---- points ------------------------------------------------------------------------------------

    def hold(self, V: Motion, anchors: Sequence[tuple[Scalar, Scalar]]) -> None:
        """Bend the bristles by what the points have moved in the last step, at the velocity V."""
        for m, (at, phi, (ex, ey)) in enumerate(zip(self._speeds(V), self.phi, anchors, strict=True)):
            ux, uy = at.x
            turn = self.surface_turn(m)
            if turn is not None:  # half a step's way back, where it was on average, the surface moved so
                axes, more = self.frame(m), turn.cross(V.lin) * (0.5 * self.dt)
                ux, uy = ux + axes.along_x.dot(more), uy + axes.along_y.dot(more)
            ex, ey = ex + self.dt * ux, ey + self.dt * uy
            # Not by the damper: over the ground there is nothing to hold on to, however fast the point comes.
            N = maximum(-(self.law.k * phi + self.law.d * maximum(at.vn, 0.0)), 0.0)
            most = self.mu_at(m) * N / self.k_t
            length = sqrt(ex * ex + ey * ey + 1e-30)
            keep = minimum(most / length, 1.0)
            self.anchors.append((ex * keep, ey * keep))

    def _speeds(self, V: Motion) -> list[Velocities]:
        """Of every point at the body's velocity V; x includes the bristle once there is one."""
        out = []
        for m, u in enumerate(self._over_ground(V)):
            axes = self.frame(m)
            x, y = axes.along_x.dot(u), axes.along_y.dot(u)
            if self.anchors:
                ex, ey = self.anchors[m]
                x, y = x + self.r * ex, y + self.r * ey
            out.append(Velocities(axes.n.dot(u), (x, y)))
        return out

    def _over_ground(self, V: Motion) -> list[Vector3]:
        """Velocity of every point over the surface, body coordinates."""
        V = V if self.motion is None else V - self.motion
        return [V.lin + V.ang.cross(p) for p in self.p]

    def speeds(self, V: Motion) -> list[tuple[Scalar, Scalar]]:
        """(along the normal, along the ground) of every point over the surface at the velocity V [m/s]."""
        out = []
        for m, u in enumerate(self._over_ground(V)):
            vn = self.frame(m).n.dot(u)
            out.append((vn, sqrt(maximum(u.dot(u) - vn * vn, 0.0))))
        return out

    # ---- sweeps ------------------------------------------------------------------------------------

    def foresee(self, V: Motion) -> None:
        """Points and dampers of the first sweep, from the velocity V at the start.

        A point is on if it would reach the surface. Its normal force is foreseen for the velocity that the
        body keeps where all its points brake it: that at V would be too large at an impact.
        """
        speeds = self._speeds(V)
        self.on0 = [
            at.vn - self.falling_at(m) + reach < 0.0
            for m, (at, reach) in enumerate(zip(speeds, self.reach, strict=True))
        ]
        self.w = [where(on, 1.0, 0.0) for on in self.on0]
        self.on = list(self.w)
        self.lift = [self.rho * phi for phi in self.phi]
        if self.restitution is not None:
            for m, at in enumerate(speeds):
                self._bounce(m, at.vn)
        braked = sum((w * damp for w, damp in zip(self.w, self.damp, strict=True)), 0.0)
        kept = self.mass / (self.mass + self.dt * braked)
        self.c, self.N = [], []
        for m, (at, w, back) in enumerate(zip(speeds, self.w, self.back, strict=True)):
            after = maximum(kept * at.vn + (1.0 - kept) * back, at.vn)
            self.N.append(w * maximum(self._normal(m, after), 0.0))
            self.c.append(self._damper(m, self.mu_at(m) * self.N[m], at.sliding))
        self._resist_turning(V)

    def look_again(self, V: Motion) -> None:
        """Points and dampers of a sweep in between, from the iterate V."""
        speeds = self._speeds(V)
        for m, at in enumerate(speeds):
            on = at.vn + where(self.on0[m], self.lift[m], self.reach[m]) < 0.0
            # Half of the old set stays: a set that is re-evaluated sharply flips in 2-cycles.
            self.w[m] = 0.5 * (self.w[m] + where(on, 1.0, 0.0))
            self.N[m] = where(self.on0[m], maximum(self._normal(m, at.vn), 0.0), 0.0)
        self._slide(speeds)
        self._resist_turning(V)

    def release(self, V: Motion) -> None:
        """Points and dampers of the last sweep: what pulls at the iterate V is let go."""
        speeds = self._speeds(V)
        self.N_before = list(self.N)
        for m, at in enumerate(speeds):
            N = self._normal(m, at.vn)
            self.w[m] = where(N > 0.0, self.w[m], 0.0)
            self.N[m] = self.w[m] * N
        self._slide(speeds)
        self._resist_turning(V)

    def extrapolate(self, V: Motion) -> None:
        """Points and dampers of one sweep more, from the iterate V.

        Where friction changes the normal forces (a leg that wedges, a foot on its corners), the sweeps come
        near the solution slowly or swing about it. So friction takes the normal forces at which the last
        three iterates point (Aitken's extrapolation, point by point).
        """
        speeds = self._speeds(V)
        for m, at in enumerate(speeds):
            N = self._normal(m, at.vn)
            self.w[m] = where(N > 0.0, self.w[m], 0.0)
            step, change = self.w[m] * N - self.N[m], self.N[m] - self.N_before[m]
            rate = step * change / (change * change + FAINT * FAINT)
            step = step / (1.0 - minimum(maximum(rate, SWINGING), CREEPING))
            self.N[m] = maximum(self.N[m] + step, 0.0)
        self._slide(speeds)
        self._resist_turning(V)

    def chosen(self) -> list[list[Scalar]]:
        """What the present sweep has chosen, to be changed in place."""
        return [self.w, self.N, self.c, self.turning]

    def converge(self, V: Motion) -> None:
        """Points and dampers of a sweep of the iteration to an accuracy, from the iterate V.

        A point that would reach the surface at some iterate is pressed or not by its force alone from then
        on: from reaching it to being pressed is a gap without a solution. Where a point is as it was at the
        iterate before, its weight is sharp; half of the old one stays only where it flips. Friction is that
        of the iterate alone, without what :meth:`_slide` guesses: the acceleration of the iteration learns
        that from the iterates.
        """
        for m, at in enumerate(self._speeds(V)):
            self.on0[m] = self.on0[m] | (at.vn + self.reach[m] < 0.0)
            N = where(self.on0[m], maximum(self._normal(m, at.vn), 0.0), 0.0)
            on = where(N > 0.0, 1.0, 0.0)
            self.w[m] = where(abs(on - self.on[m]) < 0.5, on, 0.5 * (self.w[m] + on))
            self.on[m], self.N[m] = on, N
            self.c[m] = self._damper(m, self.mu_at(m) * N, at.sliding)
        self._resist_turning(V)

    def memory(self) -> list[Scalar]:
        """What a sweep knows of those before, three numbers a point."""
        return [
            x
            for on0, on, w in zip(self.on0, self.on, self.w, strict=True)
            for x in (where(on0, 1.0, 0.0), on, w)
        ]

    def recall(self, V: Motion, rest: Iterator[Scalar]) -> None:
        """The points as :meth:`memory` has them, of a step that began with the velocity V."""
        self.foresee(V)
        for m in range(len(self.p)):
            self.on0[m] = next(rest) > 0.5
            self.on[m], self.w[m] = next(rest), next(rest)

    def _normal(self, m: int, vn: Scalar) -> Scalar:
        """The normal force of a point that is on, at the speed vn."""
        return self.load[m] - self.damp[m] * vn

    def _resist_turning(self, V: Motion) -> None:
        """Dampers against turning that give torsional and rolling friction at the iterate V."""
        law, n = self.law, self.axes.n
        self.turning: list[Scalar] = [0.0, 0.0]  # about the normal, about the tangents
        if law.torsional is None and law.rolling is None:
            return
        w = V.ang if self.motion is None else V.ang - self.motion.ang
        wn, pressed = n.dot(w), self.dt * sum(self.N, 0.0)
        if law.torsional is not None:
            self.turning[0] = law.torsional * pressed / sqrt(wn * wn + SPIN_FADE**2)
        if law.rolling is not None:
            square = maximum(w.dot(w) - wn * wn, 0.0)
            self.turning[1] = law.rolling * pressed / sqrt(square + SPIN_FADE**2)

    def _turning(self) -> Symmetric3 | None:
        """The same as a matrix on the angular velocity."""
        if self.law.torsional is None and self.law.rolling is None:
            return None
        n, (twist, roll) = self.axes.n, self.turning
        more = twist - roll
        return Symmetric3.diagonal(roll) + Symmetric3(*(x * more for x in outer(n)))

    def _slide(self, speeds: Sequence[Velocities]) -> None:
        """The dampers of points that slide, at the speeds that the body gains by what friction lacks.

        The body as a whole is let go: where four points hold it, each gains what all four lack along it.
        """
        lacks, ways = [], []
        whole = Vector3.zero()
        for m, at in enumerate(speeds):
            s, axes = sqrt(at.sliding + SLOWEST * SLOWEST), self.frame(m)
            lack = maximum(self.c[m] * s - self.dt * self.mu_at(m) * self.N[m], 0.0)
            way = (axes.along_x * at.x[0] + axes.along_y * at.x[1]) * (1.0 / s)
            whole = whole + way * lack
            lacks.append((s, lack))
            ways.append(way)
        for m, ((s, lack), way) in enumerate(zip(lacks, ways, strict=True)):
            s = s + maximum(lack, whole.dot(way)) / self.mass
            self.c[m] = self._damper(m, self.mu_at(m) * self.N[m], s * s)

    def _damper(self, m: int, friction: Scalar, square: Scalar) -> Scalar:
        """dt times the damper that gives a friction at a speed of that square, at most a bristle's."""
        slip = self.law.slip
        if slip is not None:
            return self.dt * friction / sqrt(square + slip * slip)
        return self.dt * minimum(friction / sqrt(square + SLOWEST * SLOWEST), self.hardest[m])

    def linear(self) -> tuple[ArticulatedInertia, Force]:
        """(dt K_i, impulse at V = 0) of the points and dampers of the present sweep."""
        n, W, C = self.axes.n, Moments(), Moments()
        impulse = Force.zero()
        for m, p in enumerate(self.p):
            if self.restitution is None:
                W = W + Moments.of(self.w[m], p)
            else:
                W = W + Moments.of(self.w[m] * self.damp[m], p)
                f = n * (self.w[m] * self.load[m] * self.dt)
                impulse = impulse + Force(p.cross(f), f)
            C = C + Moments.of(self.c[m], p)
            if self.anchors:
                f = self._bent(m)
                impulse = impulse - Force(p.cross(f), f)
        if self.restitution is None:
            G = W * (self.dt * self.kd) - C
            impulse = impulse + push(W, n, self.axes.z) * (self.dt * self.law.k)
        else:
            G = W * self.dt - C
        K = self._with_turning(isotropic(C) + along(G, n))
        return K, impulse if self.motion is None else impulse + K @ self.motion

    def _with_turning(self, K: ArticulatedInertia) -> ArticulatedInertia:
        turning = self._turning()
        return K if turning is None else ArticulatedInertia(K.A + turning, K.B, K.M)

    def _bent(self, m: int) -> Vector3:
        """Impulse against the bristle of a point, body coordinates [N s]."""
        (ex, ey), axes = self.anchors[m], self.frame(m)
        return (axes.along_x * ex + axes.along_y * ey) * (self.c[m] * self.r)

    # ---- what acts ---------------------------------------------------------------------------------

    def act(self, V: Motion) -> Acting:
        """The forces at the velocity V that the sweeps found."""
        done = Acting(self)
        for m, at in enumerate(self._speeds(V)):
            done.add(m, self.w[m] * self._normal(m, at.vn), self.c[m] / self.dt, at)
        turning = self._turning()
        if turning is not None:
            w = V.ang if self.motion is None else V.ang - self.motion.ang
            done.impulse = done.impulse - Force(turning @ w, Vector3.zero())
        return done


class Acting:
    """Impulses of one body's points in a step.

    Attributes:
        impulse: what acts, body coordinates [N m s; N s].
        forces: of the points (along the normal, along x, along y) [N].
        pressed: sum of the normal impulses [N s].
        pulled: sum of those that pull [N s].
        outside: sum of what of the tangential ones lies outside Coulomb's cone [N s].
        work: of a surface that moves [J].
        depth: of the deepest point [m].
    """

    def __init__(self, body: BodyContact) -> None:
        self.body = body
        self.impulse = Force.zero()
        self.forces: list[tuple[Scalar, Scalar, Scalar]] = []
        self.pressed: Any = 0.0
        self.pulled: Any = 0.0
        self.outside: Any = 0.0
        self.work: Any = 0.0
        self.depth: Any = 0.0

    def add(self, m: int, N: Scalar, T: Scalar, at: Velocities) -> None:
        """Enter point m: N along the normal, -T x along the ground."""
        axes, dt, p = self.body.frame(m), self.body.dt, self.body.p[m]
        x, y = at.x
        self.forces.append((N, -T * x, -T * y))
        f = (axes.n * N - (axes.along_x * x + axes.along_y * y) * T) * dt
        self.impulse = self.impulse + Force(p.cross(f), f)
        u = self.body.surface_velocity(m)
        if u is not None:
            self.work = self.work + u.dot(f)
        pressed = maximum(N, 0.0)
        self.pressed = self.pressed + dt * pressed
        self.pulled = self.pulled + dt * (pressed - N)
        excess = T * sqrt(at.sliding) - self.body.mu_at(m) * pressed
        self.outside = self.outside + dt * maximum(excess, 0.0)
        self.depth = maximum(self.depth, -self.body.phi[m])

    def point_forces(self) -> list[Vector3]:
        """Of every point, body coordinates [N]."""
        frames = [self.body.frame(m) for m in range(len(self.forces))]
        return [
            axes.n * N + axes.along_x * x + axes.along_y * y
            for axes, (N, x, y) in zip(frames, self.forces, strict=True)
        ]
