"""Trackers: what is measured of the ground's forces, joint limits and velocities, step by step.

They find what robokit.sim.record.events finds in every step of a single run: the same conditions, the same
times. In steps of "contact" contact/monitor.py does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from robokit.contact.monitor import IMPACT, REST, SHORTEST
from robokit.sim.joints.joint_law import pressing
from robokit.sim.step.measured import NEVER, Happened, later
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, floor, maximum, where


@dataclass(frozen=True)
class LinkForces:
    """Of each link that can touch the ground.

    Numbers: square of the largest force [N^2] and its step, where ``peaks``; first step with a force that
    presses, where ``touches``.

    Attributes:
        count: of links.
        peaks, touches: which.
    """

    count: int
    peaks: bool
    touches: bool

    @property
    def each(self) -> int:
        """Numbers of a link."""
        return 2 * self.peaks + self.touches

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return ([0.0, NEVER] * self.peaks + [NEVER] * self.touches) * self.count

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker: nothing touches in passive motion; steps of contact keep it (contact/monitor.py)."""
        return numbers


@dataclass(frozen=True)
class PeakLoad:
    """Square of the largest force of the ground on the whole robot [N^2], and its step."""

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, NEVER]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker: nothing touches in passive motion; steps of contact keep it (contact/monitor.py)."""
        return numbers


@dataclass(frozen=True)
class Deepest:
    """The deepest point in the ground [m] and its step."""

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, NEVER]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker: nothing touches in passive motion; steps of contact keep it (contact/monitor.py)."""
        return numbers


@dataclass(frozen=True)
class Limits:
    """Joints that reach their limits.

    Numbers: how often any does; of each joint, first step of the stop that presses now (NEVER if it has
    counted already), the step after the last in which a stop pressed (negative for the upper one; 0 for
    none), and the first step of the first stop that counts.

    A stop counts once it has lasted SHORTEST or was reached faster than IMPACT; interruptions up to SHORTEST
    do not end it.

    Attributes:
        bodies: of the joints.
    """

    bodies: tuple[int, ...]

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, *[NEVER, 0.0, NEVER] * len(self.bodies)]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        held = happened.held
        if held is None:
            return list(numbers)
        few = maximum(1.0, -floor(0.5 - SHORTEST / happened.dt))
        hits, out = numbers[0], []
        for k, i in enumerate(self.bodies):
            rate, old, stop = happened.v[i][0], numbers[3 * k + 1 : 3 * k + 4], happened.p.joints.stop[i]
            assert stop is not None
            force = pressing(stop, happened.q[i][0], held.stops[i][0])
            text = _Stop(force, rate, few, happened.step, old)
            more, *new = cond((force > 0.0) | (force < 0.0), text, partial(list, (0.0, *old)))
            hits = hits + more
            out += new
        return [hits, *out]


@dataclass
class _Stop:
    """The text of one joint, called where its stop presses."""

    force: Scalar
    rate: Scalar
    few: Scalar
    step: Scalar
    before: Sequence[Scalar]

    def __call__(self) -> list[Scalar]:
        begun, last, first = self.before
        step, side = self.step, where(self.force > 0.0, 1.0, -1.0)
        goes_on = (last * side > 0.0) & (step - last * side < self.few + 0.5)
        fast = where(goes_on, 0.0, abs(self.rate)) >= IMPACT
        begun = where(goes_on, begun, step)
        long = step + 1.5 - begun > self.few
        counts = (begun >= 0.0) & (long | fast)
        first = where(counts & (first < 0.0), begun, first)
        return [where(counts, 1.0, 0.0), where(counts, NEVER, begun), side * (step + 1.0), first]


@dataclass(frozen=True)
class PastLimits:
    """How far a joint is past a limit at most [rad | m], in which step, and number of the joint.

    Attributes:
        bodies: of the joints.
    """

    bodies: tuple[int, ...]

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, NEVER, NEVER]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        far, which = numbers[0], numbers[2]
        for k, i in enumerate(self.bodies):
            stop, q = happened.p.joints.stop[i], happened.q[i][0]
            assert stop is not None
            past = maximum(q - stop.upper, stop.lower - q)
            farther = past > far
            far, which = where(farther, past, far), where(farther, float(k), which)
        return [far, where(far > numbers[0], happened.step, numbers[1]), which]


@dataclass(frozen=True)
class Motion:
    """Square of the robot's largest speed [m^2/s^2], its step, and the last step in which it is not at rest.

    The speed is the root of twice the kinetic energy over the mass.
    """

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, NEVER, NEVER]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        tree, V = happened.p.tree, happened.V
        mass = sum((tree.I[i].m for i in tree.outward()), 0.0)
        square = sum((V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()), 0.0) / mass
        return [
            *later(square > numbers[0], square, happened.step, numbers),
            where(square < REST * REST, numbers[2], happened.step),
        ]


@dataclass(frozen=True)
class FastestBody:
    """Square of the largest speed of a body's centre of mass [m^2/s^2], its step, and number of the body.

    Attributes:
        bodies: that have mass.
    """

    bodies: tuple[int, ...]

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return [0.0, NEVER, NEVER]

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        tree, V = happened.p.tree, happened.V
        most, which = numbers[0], numbers[2]
        for i in self.bodies:
            u = (tree.I[i] @ V[i]).lin * (1.0 / tree.I[i].m)
            square = u.dot(u)
            faster = square > most
            most, which = where(faster, square, most), where(faster, float(i), which)
        return [most, where(most > numbers[0], happened.step, numbers[1]), which]
