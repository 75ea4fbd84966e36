"""What is given to the steps of a run besides joint forces: actuators and pushes, as inputs of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.driving.actuators import Actuator
from robokit.sim.driving.prescribed import Motions, PrescribedMotion
from robokit.sim.driving.pushes import OutsideForces, Push
from robokit.sim.joints.given import GivenLayout
from robokit.sim.run.driven_joints import DrivenJoints

NEVER = np.iinfo(np.int64).max
"""Number of a step that does not come."""


class RunInputs:
    """Actuators and pushes of a run.

    Attributes:
        layout: what the step's text depends on.
        numbers: parameters of the kernel, floats or (B,).
        driven: the driven joints.
        rows: B where they differ from row to row of a rollout, else None.
    """

    def __init__(
        self,
        robot: Robot,
        actuators: Sequence[Actuator],
        pushes: Sequence[Push],
        dt: float,
        steps: int,
        q0: np.ndarray,
        rows: int | None,
        base: bool,
        divided: bool = False,
        motions: Sequence[PrescribedMotion] = (),
    ) -> None:
        """Fit them to the robot and the steps.

        Args:
            robot: the robot.
            actuators, pushes: checked.
            dt: step [s].
            steps: of the run.
            q0: configurations at the start, (B or 1, nq).
            rows: of a rollout; None where nothing else says how many there are.
            base: whether the first six joint forces are a wrench on a base that floats.
            divided: whether steps are taken in parts, to an accuracy.
            motions: that are prescribed.
        """
        self.driven = DrivenJoints(robot, actuators, dt, steps, q0, rows, divided)
        self.outside = OutsideForces(robot, pushes, dt, steps)
        self.motions = Motions(robot, motions, dt, steps)
        places = self.outside.places
        self.layout = GivenLayout(
            tuple(self.driven.drives),
            tuple((body, point is None) for body, point in places),
            base,
            links=tuple(self.outside.links),
            motions=tuple(self.motions.bodies),
        )
        points = [x for _, point in places if point is not None for x in point]
        self.numbers: list[Any] = [*self.driven.parameters(), *points]
        counts = {x for x in (self.driven.rows, self.outside.rows, self.motions.rows) if x is not None}
        self.rows = max(counts, default=None)
        self.counts = [("actuators", self.driven.rows), ("pushes", self.outside.rows)]

    @property
    def by_function(self) -> bool:
        """Whether a target is a function of the state."""
        return self.driven.by_function

    @property
    def law(self) -> tuple[np.ndarray, ...] | None:
        """How targets of the driven joints of a single run become their inputs, as in StepInputs."""
        linear = self.driven.linear if self.driven else None
        return None if linear is None else tuple(each[0] for each in linear)

    def at(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[list[np.ndarray], int]:
        """The inputs of a step of a simulation, and the next step at which they change."""
        found, change = [], NEVER
        if self.driven:
            u, change = self.driven.at(step, q, v)
            found.append(u)
        if self.outside:
            wrenches, next_change = self.outside.at(step)
            found.append(wrenches)
            change = min(change, next_change)
        if self.motions:
            found.append(self.motions.at(step))
            change = step + 1
        return found, change

    def tables(self, steps: int, dtype: str) -> list[np.ndarray]:
        """The inputs of all steps and rows of a rollout, (T or 1, B or 1, n) each."""
        found = []
        if self.driven:
            found.append(self.driven.whole_table())
        if self.outside:
            found.append(self.outside.table(steps))
        if self.motions:
            found.append(self.motions.table(steps))
        return [np.ascontiguousarray(x, dtype=dtype) for x in found]
