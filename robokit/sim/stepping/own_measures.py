"""Measures of the user's own in steps of "contact": after each step, by a kernel of the robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.sim.step.measured import Happened, Kept, Tracker
from robokit.sim.step.step_kernel import Program


class OwnMeasures:
    """Brings the numbers of a program's own measures up to date."""

    def __init__(self, program: Program) -> None:
        self.program, self.carried = program, np.zeros(program.layout.size)
        layout = program.measured
        self.trackers: list[tuple[Tracker, slice]] = [
            (each, layout.part(each)) for each in layout.trackers if not isinstance(each, Kept)
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
            more: inputs of the step.
        """
        if self._kernel is None:
            self._kernel = self._built(forces.shape[-2] * forces.shape[-1])
        flat = forces.reshape(*forces.shape[:-2], -1)
        given = *state, numbers, flat, self.carried, parameters, *more
        new = self._kernel(*(np.ascontiguousarray(x, float) for x in given))
        numbers[...] = new[0] if isinstance(new, list | tuple) else new

    def _built(self, size: int) -> Any:
        trackers = self.trackers

        def text(bare: Program) -> Any:
            def after(
                q: Any, v: Any, tau: Any, numbers: Any, forces: Any, carried: Any, parameters: Any, *more: Any
            ) -> list[list[Any]]:
                p, out = bare.problem(parameters, more), list(numbers)
                taken = Happened(p, numbers[0] - 1.0, [], [], [], (q, v, tau), None, parameters, forces)
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
