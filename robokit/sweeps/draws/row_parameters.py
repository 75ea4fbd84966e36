"""The parameters of rows: what each row draws, or what its number decides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robokit.sweeps.draws.distributions import Distribution, Grid, Sobol
from robokit.sweeps.draws.parameter_table import ROBOT
from robokit.sweeps.draws.random_streams import sobol_points, uniforms


def draw(parameters: Mapping[str, Distribution], seed: int, first: int, last: int) -> dict[str, np.ndarray]:
    """The parameters of rows first..last, (B,) each.

    Args:
        parameters: of the sweep.
        seed: of the sweep.
        first, last: the first row, and the one after the last.
    """
    rows = np.arange(first, last, dtype=np.uint64)
    even = [name for name, x in parameters.items() if isinstance(x, Sobol)]
    points = sobol_points(seed, even, first, last) if even else np.zeros((len(rows), 0))
    places = grid_places(parameters, rows)
    found = {}
    for name, given in parameters.items():
        if isinstance(given, Grid):
            found[name] = given.at_places(places[name])
        elif isinstance(given, Sobol):
            found[name] = given.at(points[:, even.index(name)])
        elif given.drawn:
            found[name] = given.at(uniforms(seed, name, rows)[:, 0])
        else:
            found[name] = given.at(np.zeros(len(rows)))
    return found


def grid_places(parameters: Mapping[str, Distribution], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Of each grid, which of its values a row has: the last grid changes fastest, robots faster still."""
    grids = {name: x for name, x in parameters.items() if isinstance(x, Grid)}
    rest, found = rows.astype(np.int64), {}
    for name in sorted(grids, key=lambda x: x == ROBOT)[::-1]:
        n = len(grids[name].points)
        found[name] = rest % n
        rest = rest // n
    return found


def combinations(parameters: Mapping[str, Distribution]) -> int:
    """How many combinations the grids of a sweep have; 1 without grids."""
    total = 1
    for given in parameters.values():
        total *= len(given.points) if isinstance(given, Grid) else 1
    return total
