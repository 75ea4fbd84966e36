"""The recipe of a sweep: all that its rows follow from.

Row k is a function of the recipe and of k: its parameters, its start, its motion, its measures. None of it
depends on the chunk that it is computed in, on the machine, or on other rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robokit.errors import ShapeError, shown
from robokit.sim.record import Trajectory
from robokit.sweeps.recipes.recipe_fields import RecipeFields

if TYPE_CHECKING:
    import pyarrow


class Recipe(RecipeFields):
    """All that the rows of a sweep follow from.

    Attributes:
        robots: by name, as they are kept.
        parameters: by name, as distributions, in the order of the columns.
        count: number of rows.
        seed: of the random streams.
        duration: of each run [s].
        dt: time step [s], by robot.
        ground: the ground, or None.
        measures: what is measured: names, and measures of the user's own.
        standing: by robot, whether the starts are standing configurations.
        options: what else the runs are given: integrator, joint_damping.
        trajectories: rows whose motion is recorded.
        versions: of robokit and of the libraries that the recipe was made with, by name; the processor, and a
            hash of robokit's source.
    """

    def compute(self, first: int, last: int) -> pyarrow.Table:
        """Parameters and measures of rows first..last: the same bits in every chunk and on every machine."""
        from robokit.sweeps.recipes.chunk_rows import (
            chunk_table,  # the simulator is imported where it is used
        )

        return chunk_table(self, first, last)

    def trajectory(self, row: int, record_every: int | None = None) -> Trajectory:
        """The run of a row once more, with ledger, contacts and events, to the same bits.

        Args:
            row: its number.
            record_every: steps between two records; None for about 5 ms.

        Raises:
            ShapeError: there is no such row.
            SimulationError: the row failed before its first step.
        """
        from robokit.sweeps.recipes.chunk_rows import row_trajectory

        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < self.count:
            raise ShapeError(f"row: expected a whole number from 0 to {self.count - 1}, got {shown(row)}")
        return row_trajectory(self, int(row), record_every)
