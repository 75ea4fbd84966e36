"""The forces of a body's points that act in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from robokit.sim.touching.body_points import Velocities
from robokit.sim.touching.contact import BodyContact
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.scalars import Scalar, is_zero, likewise, maximum, sqrt


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
        """Enter point m: N along the normal, -T x along the ground; the impulse in the axes of sums."""
        body, dt = self.body, self.body.dt
        x, y = (-T * each for each in at.x)
        self.forces.append((N, x, y))
        f = body.vector(m, x * dt, y * dt, N * dt)
        self.impulse = self.impulse + Force(body.place(m).cross(f), f)
        u = body.surface_velocity(m)
        if u is not None:
            self.work = self.work + u.dot(body.in_body(f))
        pressed = maximum(N, 0.0)
        self.pressed = self.pressed + dt * pressed
        self.pulled = self.pulled + dt * (pressed - N)
        excess = T * sqrt(at.sliding) - self.body.mu_at(m) * pressed
        self.outside = self.outside + dt * maximum(excess, 0.0)
        self.depth = maximum(self.depth, -self.body.phi[m])

    def give_back(self, impulse: Force, work: Scalar, each: Sequence[tuple[Scalar, Scalar, Scalar]]) -> None:
        """Add what the points give in return.

        Args:
            impulse: their sum, body coordinates [N m s; N s].
            work: on a surface that moves [J].
            each: of each point, along the normal, along x and along y [N s].
        """
        dt = self.body.dt
        self.impulse, self.work = self.impulse + impulse, self.work + work
        forces, self.forces = self.forces, []
        self.pressed, self.pulled, self.outside = 0.0, 0.0, 0.0
        for m, (before, more) in enumerate(likewise(zip(forces, each, strict=True))):
            N, x, y = (a if is_zero(b) else a + b * (1.0 / dt) for a, b in zip(before, more, strict=True))
            self.forces.append((N, x, y))
            pressed = maximum(N, 0.0)
            self.pressed = self.pressed + dt * pressed
            self.pulled = self.pulled + dt * (pressed - N)
            excess = sqrt(x * x + y * y) - self.body.mu_at(m) * pressed
            self.outside = self.outside + dt * maximum(excess, 0.0)

    def values(self) -> list[Scalar]:
        """All its numbers, for :meth:`take`."""
        sums = [self.pressed, self.pulled, self.outside, self.work, self.depth]
        return [*self.impulse, *(x for force in self.forces for x in force), *sums]

    def take(self, values: Iterator[Scalar]) -> None:
        """Have these values instead, of as many points as it has now."""
        self.impulse = Force(Vector3(*islice(values, 3)), Vector3(*islice(values, 3)))
        self.forces = [(next(values), next(values), next(values)) for _ in self.forces]
        self.pressed, self.pulled, self.outside, self.work, self.depth = islice(values, 5)

    def point_forces(self) -> list[Vector3]:
        """Of every point, body coordinates [N]."""
        frames = [self.body.frame(m) for m in range(len(self.forces))]
        return [
            axes.n * N + axes.along_x * x + axes.along_y * y
            for axes, (N, x, y) in zip(frames, self.forces, strict=True)
        ]


def forces_at(body: BodyContact, V: Motion) -> Acting:
    """The forces of a body's points at the velocity V that the sweeps found."""
    done = Acting(body)
    for m, at in enumerate(likewise(body.velocities(V))):
        done.add(m, body.w[m] * body.normal_at(m, at.vn), body.c[m] * (1.0 / body.dt), at)
    done.impulse = Force(body.in_body(done.impulse.ang), body.in_body(done.impulse.lin))
    turning = body.turning_matrix()
    if turning is not None:
        w = V.ang if body.motion is None else V.ang - body.motion.ang
        done.impulse = done.impulse - Force(turning @ w, Vector3.zero())
    return done
