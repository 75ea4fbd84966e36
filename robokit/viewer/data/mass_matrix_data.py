"""The patterns of the mass matrix and of its factors as a page shows them."""

from __future__ import annotations

import numpy as np

from robokit.dynamics.cost import algorithm_cost
from robokit.model.robot import Robot
from robokit.model.sparsity import cholesky_fill, factorisation_counts, inertia_pattern, ltdl_counts
from robokit.viewer.data.kept_data import kept
from robokit.viewer.data.packing import packed_bits
from robokit.viewer.payload_keys import CostData, CountData, StructureData

COUNTED = ("rnea", "crba", "ltdl", "aba")
"""Algorithms whose operations a page tells."""


def structure(robot: Robot) -> StructureData:
    """Patterns of H and of L of H = LLᵀ, the multiply-adds of both, and the operations of the algorithms."""
    parents = robot.dof_parent
    pattern = inertia_pattern(parents)
    filled = cholesky_fill(pattern)
    tree, cholesky = ltdl_counts(parents), factorisation_counts(filled)
    counts = CountData(
        entries=int(tree["entries"]),
        zeros=int(tree["zeros"]),
        zeros_share=float(tree["zeros_share"]),
        factorise=int(tree["factorise"]),
        factorise_dense=int(tree["factorise_dense"]),
        solve=int(tree["solve"]),
        solve_dense=int(tree["solve_dense"]),
        fill=int(filled.sum() - np.tril(pattern).sum()),
        cholesky_factorise=cholesky["factorise"],
        cholesky_solve=cholesky["solve"],
    )
    costs = robot.derived.get(
        "page costs", lambda: kept("page costs", robot, (), list[CostData], lambda: _costs(robot))
    )
    return StructureData(len(parents), packed_bits(pattern), packed_bits(filled), counts, costs)


def _costs(robot: Robot) -> list[CostData]:
    counted = {name: algorithm_cost(robot, name, before=False) for name in COUNTED}
    return [CostData(name, c.growth, c.mul, c.add, c.div, c.sincos, c.note) for name, c in counted.items()]
