"""Measures of the user's own in steps of "newton": after each step, by a kernel of the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.sim.step.measured import Happened, Tracker
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.step_numbers import TRACKERS, touching_links
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar


@dataclass
class _Taken(Happened):
    """A step that was taken, with the forces on the links that can touch the ground, and on all."""

    forces: Sequence[Scalar] = ()
    links: Sequence[int] = ()

    @property
    def ground_force(self) -> Vector3:
        """See Happened."""
        return Vector3(*self.forces[-3:])

    def force_on(self, points: Sequence[int]) -> Vector3:
        """See Happened; the points are those of a link."""
        k = self.links[points[0]]
        return Vector3(*self.forces[3 * k : 3 * k + 3])


class OwnMeasures:
    """Brings the numbers of a program's own measures up to date."""

    def __init__(self, program: Program) -> None:
        self.program, self.carried = program, np.zeros(program.layout.size)
        layout = program.measured
        self.trackers: list[tuple[Tracker, slice]] = [
            (each, layout.part(each)) for each in layout.trackers if type(each) not in TRACKERS
        ]
        self._kernel: Any = None

    def __bool__(self) -> bool:
        return bool(self.trackers)

    def after(
        self,
        numbers: np.ndarray,
        state: Sequence[np.ndarray],
        forces: np.ndarray,
        parameters: np.ndarray,
        more: Sequence[np.ndarray],
    ) -> None:
        """The numbers after a step, in place of those before; of one state, or of rows of states.

        Args:
            numbers: all that are measured, the monitor's as they are after the step.
            state: q and v after the step, and its joint forces.
            forces: on the links that can touch the ground, and on all, (L + 1, 3) [N].
            parameters: of the program.
            more: inputs of the step and tables of the ground.
        """
        if self._kernel is None:
            self._kernel = self._built(forces.shape[-2] * forces.shape[-1])
        flat = forces.reshape(*forces.shape[:-2], -1)
        given = *state, numbers, flat, self.carried, parameters, *more
        new = self._kernel(*(np.ascontiguousarray(x, float) for x in given))
        numbers[...] = new[0] if isinstance(new, list | tuple) else new

    def _built(self, size: int) -> Any:
        known = {name: k for k, name in enumerate(touching_links(self.program))}
        points, trackers, links = self.program.points, self.trackers, list[int]()
        if points is not None:
            links = [known[points.link[k]] for k in points.order(self.program.robot.nbodies)]

        def text(bare: Program) -> Any:
            def after(
                q: Any, v: Any, tau: Any, numbers: Any, forces: Any, carried: Any, parameters: Any, *more: Any
            ) -> list[list[Any]]:
                p, out = bare.problem(parameters, more), list(numbers)
                taken = _Taken(
                    p, numbers[0] - 1.0, [], [], [], (q, v, tau), None, None, parameters, None, forces, links
                )
                for tracker, part in trackers:
                    out[part] = tracker.after(numbers[part], taken)
                return [out]

            return after

        n = self.program.measured.size
        return self.program.built(
            "own_measures",
            text,
            inputs=[("measured", n), ("forces", size)],
            outputs=[("measured_next", (n,))],
        )
