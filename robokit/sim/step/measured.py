"""What is measured while a rollout runs: numbers of each row that every step brings up to date.

They stand at the end of the ledger. The first is the number of steps taken. The others belong to measures
(contact/measures.py, measuring/own_measure.py), each of which has some numbers, and makes the next ones of
them and of what happens in the step. So a peak is that of a step, however few steps are recorded, and no
state is kept for it. This is for passive motion; steps with contact do it themselves (contact/monitor.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from robokit.contact.measures import MEASURES, Subjects
from robokit.sim.joints.joint_law import pressing
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.held_forces import Held, Problem
from robokit.spatial import Motion, Vector3
from robokit.spatial.scalars import Scalar, maximum


@dataclass
class Happened:
    """A step that was taken.

    Attributes:
        p: the robot and all that acts on it.
        step: number of the step, from 0.
        q, v, tau: state and joint forces before the step, by joint.
        flat: q and v after it, and the joint forces, flat lists.
        held: joint forces of the step; None where nothing but given forces acts on the joints.
        parameters: of the kernel; the first is the time step [s].
        forces: of the ground on each link that can touch it, then on the whole robot, world axes [N], flat.
        subjects: whom measures are about.
    """

    p: Problem
    step: Scalar
    q: Rows
    v: Rows
    tau: Rows
    flat: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]]
    held: Held | None
    parameters: Sequence[Scalar]
    forces: Sequence[Scalar] = (0.0, 0.0, 0.0)
    subjects: Subjects = field(default_factory=Subjects)
    _V: list[Motion] | None = field(default=None, repr=False)

    @property
    def dt(self) -> Scalar:
        """Time step [s]."""
        return self.parameters[0]

    @property
    def V(self) -> list[Motion]:
        """Velocities of the bodies where the step begins, body coordinates."""
        if self._V is None:
            if self.held is not None and self.held.V is not None:
                self._V = self.held.V
            else:
                tree = self.p.tree
                self._V = body_velocities(tree, tree.transforms(self.q), self.v)
        return self._V

    @property
    def limits(self) -> Iterator[tuple[Scalar, Scalar, Scalar]]:
        """Of each joint with limits: force of its stop, velocity, and how far it is past a limit."""
        for _, i in self.subjects.joints:
            stop, q = self.p.joints.stop[i], self.q[i][0]
            assert stop is not None and self.held is not None
            past = maximum(q - stop.upper, stop.lower - q)
            yield pressing(stop, q, self.held.stops[i][0]), self.v[i][0], past

    @property
    def ground_force(self) -> Vector3:
        """Force of the ground on the robot, world axes [N]."""
        return Vector3(*self.forces[-3:])

    def force_on(self, link: int) -> Vector3:
        """Force of the ground on a link, by its number among those that can touch it, world axes [N]."""
        return Vector3(*self.forces[3 * link : 3 * link + 3])


class Tracker(Protocol):
    """Some of the numbers that are measured, and how a step changes them."""

    @property
    def start(self) -> Sequence[float]:
        """The numbers before the first step."""

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """The numbers after a step."""


@dataclass(frozen=True)
class Kept:
    """The numbers of one of robokit's measures; a tracker."""

    name: str
    subjects: Subjects

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return MEASURES[self.name].start(self.subjects)

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        return MEASURES[self.name].passive(numbers, replace(happened, subjects=self.subjects))


@dataclass(frozen=True)
class MeasuredLayout:
    """What is measured.

    Attributes:
        trackers: whose numbers they are, in this order.
    """

    trackers: tuple[Tracker, ...] = ()

    @property
    def size(self) -> int:
        """Numbers in all."""
        return len(self.start)

    @property
    def start(self) -> list[float]:
        """The numbers before the first step."""
        return [0.0, *(x for each in self.trackers for x in each.start)] if self.trackers else []

    def part(self, tracker: Tracker) -> slice:
        """Where the numbers of a tracker are among all."""
        at = 1
        for each in self.trackers:
            if each == tracker:
                break
            at += len(each.start)
        return slice(at, at + len(tracker.start))

    def after(self, before: Sequence[Scalar], happened: Callable[[Scalar], Happened]) -> list[Scalar]:
        """The numbers after a step.

        Args:
            before: the numbers before it.
            happened: number of the step -> what happened in it.
        """
        if not self.trackers:
            return []
        step, at = before[0], 1
        now, out = happened(step), [step + 1.0]
        for each in self.trackers:
            size = len(each.start)
            out += each.after(before[at : at + size], now)
            at += size
        return out


NOTHING = MeasuredLayout()
