"""The trees that texts are given: the robot's own, or one of fewer numbers with the same result.

The texts stay those of the book. Where a row of table.py says that only sums over the bodies matter, its text
gets the inertias of ../model/regrouping.py in place of the bodies' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.dynamics.table import Algorithm
from robokit.model.inertial_parameters import inertias, row
from robokit.model.regrouping import regrouped, sparse
from robokit.model.robot import Robot
from robokit.model.tree import Tree


def tree_for(algorithm: Algorithm, robot: Robot) -> Tree:
    """The tree that the algorithm's text is given."""
    if not algorithm.sums:
        return robot.tree
    to_ground = algorithm.sums == "joints"

    def made() -> Tree:
        return replace(robot.tree, I=regrouped(robot.tree, to_ground))

    return robot.derived.get(("regrouped tree", to_ground), made)


def tree_of_parameters(algorithm: Algorithm, robot: Robot, parameters: Sequence[Any]) -> Tree:
    """The same for a kernel that takes the inertial parameters of :func:`parameters_for` as an input."""
    I = inertias(parameters)
    if algorithm.sums:
        I = sparse(robot.tree, algorithm.sums == "joints", I)
    return replace(robot.tree, I=I)


def parameters_for(algorithm: Algorithm, robot: Robot) -> np.ndarray:
    """Inertial parameters that the robot's kernel of the algorithm takes: (n,) or (B, n), n = 10 (N + 1)."""
    to_ground = algorithm.sums == "joints"

    def made() -> np.ndarray:
        given = robot.inertial_parameters
        if algorithm.sums:
            numbers = [x for I in regrouped(robot.tree, to_ground) for x in row(I)]
            given = np.stack([np.broadcast_to(x, given.shape[:-2]) for x in numbers], axis=-1)
        flat = given.reshape(*robot.inertial_parameters.shape[:-2], -1)
        return np.ascontiguousarray(flat.view(np.float64))  # not the dtype object of a pickled array

    return robot.derived.get(("regrouped parameters", algorithm.sums), made)
