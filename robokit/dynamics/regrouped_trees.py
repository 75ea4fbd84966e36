"""The trees that texts are given: the robot's own, or one of fewer numbers with the same result.

The texts stay those of the book. Where a row of table.py says that only sums over the bodies matter, its
text gets the inertias of ../model/regrouping.py in place of the bodies' own. Where also nothing given or
returned is in the frame of a body, it gets frames that are slid along their joints' axes
(../model/regrouping.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.dynamics.table import Algorithm
from robokit.model.inertial_parameters import inertias, row
from robokit.model.regrouping import placements, regrouped, shifts, slid, sparse
from robokit.model.robot import Robot
from robokit.model.tree import Tree


def tree_for(algorithm: Algorithm, robot: Robot) -> Tree:
    """The tree that the algorithm's text is given."""
    if not algorithm.sums:
        return robot.tree
    to_ground, frames = algorithm.sums == "joints", _frames_are_free(algorithm)

    def made() -> Tree:
        tree = robot.tree
        if frames:
            tree = slid(tree, shifts(tree, to_ground, tree.I if robot.parameters is None else ()))
        return replace(tree, I=regrouped(tree, to_ground))

    return robot.derived.get(("regrouped tree", to_ground, frames), made)


def tree_of_parameters(algorithm: Algorithm, robot: Robot, parameters: Sequence[Any]) -> Tree:
    """The same for a kernel that takes the inertial parameters of :func:`parameters_for` as an input."""
    tree, I = robot.tree, inertias(parameters)
    if algorithm.sums:
        to_ground = algorithm.sums == "joints"
        I = sparse(tree, to_ground, I)
        if _frames_are_free(algorithm):
            tree = replace(tree, XT=placements(tree, shifts(tree, to_ground)))
    return replace(tree, I=I)


def _frames_are_free(algorithm: Algorithm) -> bool:
    """Whether nothing that the algorithm takes or returns is in the frame of a body or link."""
    return bool(algorithm.sums) and not algorithm.about and "f_ext" not in algorithm.inputs.split()


def parameters_for(algorithm: Algorithm, robot: Robot) -> np.ndarray:
    """Inertial parameters that the robot's kernel of the algorithm takes: (n,) or (B, n), n = 10 (N + 1)."""
    to_ground, frames = algorithm.sums == "joints", _frames_are_free(algorithm)

    def made() -> np.ndarray:
        tree, given = robot.tree, robot.inertial_parameters
        if algorithm.sums:
            if frames:
                tree = slid(tree, shifts(tree, to_ground))
            numbers = [x for I in regrouped(tree, to_ground) for x in row(I)]
            given = np.stack([np.broadcast_to(x, given.shape[:-2]) for x in numbers], axis=-1)
        flat = given.reshape(*robot.inertial_parameters.shape[:-2], -1)
        return np.ascontiguousarray(flat.view(np.float64))  # not the dtype object of a pickled array

    return robot.derived.get(("regrouped parameters", algorithm.sums, frames), made)
