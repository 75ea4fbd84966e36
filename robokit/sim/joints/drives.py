"""Forces of actuators: on the diagonal of H, as damping is, and within their limits.

    tau = u - kp q - lag v - b y + tau_given,     u = kp q* + (kd + extra) v* + feedforward
    b = alpha kd + extra,     lag = (1 - alpha) kd,     alpha = 1 / (1 - e^-z) - 1 / z,     z = dt kd / m
    extra = kp dt 2 R / (1 + 2 R),     R = kp dt^2 / m

q is the configuration at mid step, v the velocity at the start and y that at the end of the step, m the
inertia that the joint moves. For a joint alone and kp = 0 the law is exact: y = e^-z v. It is of second
order, and no gain is too stiff: with A = 1 + dt b / m and c = 1 - dt lag / m, the roots of the
characteristic polynomial z^2 - (1 + (c - R) / A) z + c / A of a step lie inside the unit circle if extra >=
(1/2 - 2/R) kp dt. That holds up to an inertia eight times smaller than m.

Limits: the effort may not exceed L, and beyond nine tenths of the largest speed it falls to zero,

    tau <= min(L, G (v_max - y)),     tau >= -min(L, G (v_max + y)).

A joint whose law at the last iterate exceeds a limit gets the limit, the force L with slope 0 or the line of
slope G. The first iterate knows nothing of the step yet: there a single joint of inertia m is solved for.

Cost: about 5 operations a driven joint, and 20 an iteration where it is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robokit.spatial.scalars import Scalar, clamp, is_zero, maximum, minimum, where

Rows = Sequence[Sequence[Scalar]]

SLOW = 1e-6
"""Speed of a joint below which it is at rest [rad/s | m/s]."""

SLIGHT = 0.01
"""Share of its limit by which an effort may exceed it after the last sweep that all states take."""


@dataclass(frozen=True)
class Drive:
    """One driven joint: what the text of a step depends on.

    Attributes:
        body: number of the joint.
        servo: whether there are gains; else the force is u alone.
        effort: whether it is limited.
        speed: whether that is.
    """

    body: int
    servo: bool
    effort: bool
    speed: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the numbers that the joint takes."""
        names: tuple[str, ...] = ("kp", "b", "lag") if self.servo else ()
        if self.effort:
            names += ("effort",)
        if self.speed:
            names += ("speed", "taper")
        return (*names, "mass") if self.effort or self.speed else names


@dataclass(frozen=True)
class DriveNumbers:
    """The numbers of one driven joint, floats or scalars of a kernel.

    Attributes:
        kp, b, lag: of the law above.
        effort: L [N m | N].
        speed: v_max [rad/s | m/s].
        taper: G, the slope at which the effort falls to zero [N m s/rad | N s/m].
        mass: inertia that the joint moves [kg m^2 | kg], roughly.
    """

    kp: Scalar = 0.0
    b: Scalar = 0.0
    lag: Scalar = 0.0
    effort: Scalar = 0.0
    speed: Scalar = 0.0
    taper: Scalar = 0.0
    mass: Scalar = 0.0


class DriveState:
    """The actuators in one step, linearised at the last iterate of the solve."""

    def __init__(
        self,
        drives: Sequence[Drive],
        numbers: Sequence[DriveNumbers],
        u: Sequence[Scalar],
        q: Rows,
        v: Rows,
        tau: Rows,
        dt: Scalar,
    ) -> None:
        """Prepare the step.

        Args:
            drives: the driven joints.
            numbers: of each.
            u: of each, what does not depend on the state.
            q: configuration at mid step, by joint.
            v: velocities at the start, by joint.
            tau: joint forces given besides, by joint; those of driven joints share their limits.
            dt: step [s].
        """
        self.drives, self.numbers, self.tau, self.dt = drives, numbers, tau, dt
        self.old: list[list[Scalar]] | None = None
        self.b, self.command = [], []
        for drive, x, target in zip(drives, numbers, u, strict=True):
            i = drive.body
            command = target + tau[i][0]
            self.b.append(x.b if drive.servo else 0.0)
            self.command.append(command - x.kp * q[i][0] - x.lag * v[i][0] if drive.servo else command)
        self.lines: list[list[Scalar]] = []
        """(slope, force at rest) of each driven joint."""
        self.limited: list[Scalar] = []
        """1.0 where a driven joint is at a limit, else 0.0."""

    def linearise(self, x: Rows) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        """Slope b and force at rest of all joint forces given, tau = force - b qd, from the iterate x.

        Returns:
            both by joint and dof; joints without a drive have slope 0 and their tau.
        """
        self.old = self.lines or None
        self.lines, self.limited = [], []
        slopes: list[list[Scalar]] = [[0.0] * len(row) for row in self.tau]
        rest: list[list[Scalar]] = [list(row) for row in self.tau]
        for k, drive in enumerate(self.drives):
            i = drive.body
            slope, force, at_limit = self._line(k, x[i][0])
            self.lines.append([slope, force])
            self.limited.append(at_limit)
            slopes[i][0], rest[i][0] = slope, force
        return slopes, rest

    def _line(self, k: int, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """(slope, force at rest, whether limited) of one driven joint."""
        drive, n, b, command = self.drives[k], self.numbers[k], self.b[k], self.command[k]
        if not drive.effort and not drive.speed:
            return b, command, 0.0
        at = x
        if self.old is None and drive.servo:
            at = (n.mass * x + self.dt * command) / (n.mass + self.dt * b)
        wanted = command - b * at if drive.servo else command
        free = x
        if self.old is not None and drive.speed:
            slope, force = self.old[k]
            free = x - self.dt * (force - slope * x) / n.mass
        up, down = (self._bound(k, s * x, s * free) for s in (1.0, -1.0))
        over, under = wanted > up[0], wanted < -down[0]
        slope = where(over, up[2], where(under, down[2], b))
        force = where(over, up[1], where(under, -down[1], command))
        return slope, force, where(over | under, 1.0, 0.0)

    def _bound(self, k: int, x: Scalar, free: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The largest force in one direction: at the iterate, at rest, and its slope.

        Args:
            k: number of the drive.
            x: velocity of the iterate in this direction.
            free: the same without the drive. A joint that is too fast without it gets no force, neither to
                push on nor to brake.
        """
        drive, n = self.drives[k], self.numbers[k]
        if not drive.speed:
            return n.effort, n.effort, 0.0
        line = maximum(n.taper * (n.speed - x), 0.0)
        fast = free >= n.speed
        top, rest, slope = line, n.taper * n.speed, n.taper
        if drive.effort:
            flat = line >= n.effort
            top, rest, slope = minimum(line, n.effort), where(flat, n.effort, rest), where(flat, 0.0, slope)
        return where(fast, 0.0, top), where(fast, 0.0, rest), where(fast, 0.0, slope)

    def excess(self, x: Rows) -> Scalar:
        """Largest effort at x above a limit and SLIGHT of it, of joints that were below it at the iterate."""
        most: Scalar = 0.0
        for drive, n, (slope, force) in zip(self.drives, self.numbers, self.lines, strict=True):
            if drive.effort and not is_zero(slope):
                most = maximum(most, abs(force - slope * x[drive.body][0]) - n.effort * (1.0 + SLIGHT))
        return most

    def memory(self) -> list[Scalar]:
        """What a sweep knows of those before: two numbers a driven joint."""
        return [x for line in self.lines for x in line]

    def recall(self, rest: Iterator[Scalar]) -> None:
        """The lines as :meth:`memory` has them."""
        self.lines = [[next(rest), next(rest)] for _ in self.drives]

    def chosen(self) -> list[list[Scalar]]:
        """What the present sweep has chosen, to be changed in place."""
        return [*self.lines, self.limited]

    def toward_rest(self, x: Rows) -> list[list[Scalar]]:
        """Slopes by joint and dof, of lines through the force at x and that at rest, which are kept.

        What meets another body is stopped there, and far from x. The line of a motor that is near its largest
        speed has many times its effort at rest: the body would be thrown back by what its motor cannot do.
        """
        out: list[list[Scalar]] = [[0.0] * len(row) for row in self.tau]
        for k, (drive, n) in enumerate(zip(self.drives, self.numbers, strict=True)):
            slope, force = self.lines[k]
            if drive.effort or drive.speed:
                y, command = x[drive.body][0], self.command[k]
                most = minimum(n.effort, n.taper * n.speed) if drive.effort and drive.speed else n.effort
                most = most if drive.effort else n.taper * n.speed
                now, at_rest = force - slope * y, clamp(command, -most, most)
                moves = abs(y) > SLOW
                secant = maximum((at_rest - now) / where(moves, y, 1.0), 0.0)
                slope = where(moves, secant, slope)
                self.lines[k] = [slope, now + slope * y]
            out[drive.body][0] = slope
        return out

    def forces(self, x: Rows) -> list[list[Scalar]]:
        """The joint forces given and those of the actuators at x, by joint and dof."""
        out = [list(row) for row in self.tau]
        for drive, (slope, force) in zip(self.drives, self.lines, strict=True):
            out[drive.body][0] = force if is_zero(slope) else force - slope * x[drive.body][0]
        return out
