"""Forces of actuators: on the diagonal of H, as damping is, and within their limits.

    tau = u - kp q - lag v - b y + tau_given,     u = kp q* + (kd + extra) v* + feedforward

q is the configuration at mid step, v the velocity at the start and y that at the end of the step, m the
inertia that the joint moves; b, lag and extra, and why no gain is too stiff: contact/constraints/motors.py.

Limits: the effort may not exceed L, and it pushes no further than to the largest speed,

    |tau| <= L,     tau > 0 only where y <= v_max,     tau < 0 only where y >= -v_max.

With d the direction in which the law pushes, a joint pushes with the least of three: what the law wants, L,
and what brings it to the largest speed at the end of the step. That is foreseen from the iterate x, whose
effort was tau_x (0 before the first sweep),

    top = d tau_x + r m / dt (v_max - d x),     r = 1 in the first sweep, CAUTION later.

If top < 0, the joint is too fast without its motor, which neither pushes nor brakes. If it lies between 0 and
the other two, the joint is held at the largest speed by a line, top + HOLD m / dt (v_max - d y), or a flatter
one, so that at x it is not above L: other joints may keep this one from its largest speed. Each sweep takes
its top from the line before, so m need not be right. A first iterate knows nothing of the step: there, m is
taken as that of a joint alone.

Cost: about 5 operations a driven joint, and 20 an iteration where it is limited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.spatial.scalars import Scalar, is_zero, maximum, minimum, where

Rows = Sequence[Sequence[Scalar]]

CAUTION = 0.1
"""Share of the inertia that the largest speed is looked ahead with, once there is an iterate: a joint whose
inertia is ten times smaller than m would jump to and fro between its limits past the speed between them."""

HOLD = 100.0
"""Slope that holds a joint at its largest speed, times dt / m. In single precision, the effort of a joint at
this speed is uncertain by so many roundings of its momentum over dt."""


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
            names += ("speed",)
        return (*names, "mass") if self.effort or self.speed else names


@dataclass(frozen=True)
class DriveNumbers:
    """The numbers of one driven joint, floats or scalars of a kernel.

    Attributes:
        kp, b, lag: of the law above.
        effort: L [N m | N].
        speed: v_max [rad/s | m/s].
        mass: inertia that the joint moves [kg m^2 | kg], roughly.
    """

    kp: Scalar = 0.0
    b: Scalar = 0.0
    lag: Scalar = 0.0
    effort: Scalar = 0.0
    speed: Scalar = 0.0
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
        d = where(wanted < 0.0, -1.0, 1.0)
        if not drive.speed:
            limited = d * wanted > n.effort
            return where(limited, 0.0, b), where(limited, d * n.effort, command), where(limited, 1.0, 0.0)
        rate = n.mass / self.dt
        gap = n.speed - d * x
        top = rate * gap
        if self.old is not None:
            slope, force = self.old[k]
            top = d * (force - slope * x) + CAUTION * top
        top = maximum(top, 0.0)
        held, line = top > 0.0, HOLD * rate
        if drive.effort:
            held, top = held & (top < n.effort), minimum(top, n.effort)
            far = gap * line > n.effort - top
            line = where(far, (n.effort - top) / where(far, gap, 1.0), line)
        limited = d * wanted > top
        line = where(held, line, 0.0)
        slope = where(limited, line, b)
        force = where(limited, d * (top + line * n.speed), command)
        return slope, force, where(limited, 1.0, 0.0)

    def forces(self, x: Rows) -> list[list[Scalar]]:
        """The joint forces given and those of the actuators at x, by joint and dof."""
        out = [list(row) for row in self.tau]
        for drive, (slope, force) in zip(self.drives, self.lines, strict=True):
            out[drive.body][0] = force if is_zero(slope) else force - slope * x[drive.body][0]
        return out
