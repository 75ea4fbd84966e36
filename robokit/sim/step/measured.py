"""What is measured while a rollout runs: numbers of each row that every step brings up to date.

They stand at the end of the ledger. The first is the number of steps taken. The others belong to trackers
(trackers.py), each of which has some numbers and a text that makes the next ones of them and of what happens
in the step. So a peak is that of a step, however few steps are recorded, and no state is kept for it.

Times are kept as numbers of steps from 0; NEVER stands for what has not happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.scalars import Scalar, where

NEVER = -1.0
"""Number of a step that has not come."""


@dataclass
class Happened:
    """A step that was taken.

    Attributes:
        p: the robot and all that acts on it.
        step: number of the step, from 0.
        q, v, tau: state and joint forces before the step, by joint.
        flat: q and v after it, and the joint forces, flat lists.
        done: outcome of its kick; None where nothing but given forces acts on the joints.
        impulse: of the ground about the centre of mass, world axes [N m s; N s]; None where nothing touches.
        parameters: of the kernel; the first is the time step [s].
    """

    p: Problem
    step: Scalar
    q: Rows
    v: Rows
    tau: Rows
    flat: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]]
    done: Settled | None
    impulse: Force | None
    parameters: Sequence[Scalar]
    _V: list[Motion] | None = field(default=None, repr=False)

    @property
    def dt(self) -> Scalar:
        """Time step [s]."""
        return self.parameters[0]

    @property
    def V(self) -> list[Motion]:
        """Velocities of the bodies where the step's forces begin to act, body coordinates."""
        if self._V is None:
            if self.done is not None:
                self._V = self.done.V_before
            else:
                tree = self.p.tree
                self._V = body_velocities(tree, tree.transforms(self.q), self.v)
        return self._V

    @property
    def ground_force(self) -> Vector3:
        """Force of the ground on the robot, world axes [N]."""
        return Vector3.zero() if self.impulse is None else self.impulse.lin * (1.0 / self.dt)

    def force_on(self, points: Sequence[int]) -> Vector3:
        """Force of the ground on some contact points, numbered in the step's order, world axes [N]."""
        total, number, axes = Vector3.zero(), 0, self._axes()
        for acting in () if self.done is None else self.done.contacts:
            forces = acting.point_forces()
            mine = [f for m, f in enumerate(forces, number) if m in points]
            if mine:
                total = total + axes[acting.body.i].transpose_apply(sum(mine, Vector3.zero()))
            number += len(forces)
        return total

    def _axes(self) -> list[Matrix3]:
        """From world axes to those of each body, where the forces act."""
        found, parent = [Matrix3.identity()], self.p.tree.parent
        if self.done is not None:
            for i, X in enumerate(self.done.X[1:], 1):
                assert X is not None
                found.append(X.E @ found[parent[i]])
        return found


class Tracker(Protocol):
    """Some of the numbers that are measured, and how a step changes them."""

    @property
    def start(self) -> Sequence[float]:
        """The numbers before the first step."""

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """The numbers after a step."""


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


def later(better: Any, value: Scalar, step: Scalar, before: Sequence[Scalar]) -> list[Scalar]:
    """(value, step) where it is better than what there was before, else that."""
    return [where(better, value, before[0]), where(better, step, before[1])]
