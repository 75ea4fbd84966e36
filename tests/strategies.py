"""What hypothesis draws whole robots, their states, and arrays of odd layouts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ladder
import numpy as np
import pytest
from hypothesis import strategies as st

from robokit.algorithms.ltdl import ltdl
from robokit.dynamics.layout import INPUTS
from robokit.dynamics.table import KERNELS
from robokit.model import ModelBuilder, Placement, Robot

GRAVITIES = (None, (0.0, 0.0, 0.0), (1.0, -2.0, 3.0))


@st.composite
def robots(
    draw: Any,
    most: int = 5,
    kinds: tuple[str, ...] = ladder.ALL_KINDS,
    bases: tuple[str, ...] = ("fixed", "floating"),
) -> Robot:
    """A tree of up to ``most`` joints of any kinds; no joint at all is a robot too.

    Shape, kinds, base and gravity are drawn, so that they shrink; the numbers come from one seed. Every
    link has mass.
    """
    parent = [draw(st.integers(0, i)) for i in range(draw(st.integers(0, most)))]
    kind = [draw(st.sampled_from(kinds)) for _ in parent]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    b = ModelBuilder("drawn")
    for i in rng.permutation(len(parent) + 1):
        mass = float(rng.uniform(0.3, 3.0))
        b.link(f"link{i}", mass, rng.uniform(-0.2, 0.2, 3), ladder.inertia(rng, mass))
    for i in rng.permutation(len(parent)):
        straight = rng.random() < 0.4
        placement = Placement(
            np.eye(3) if straight else ladder.rotation(rng), rng.uniform(-0.4, 0.4, 3) * (rng.random() < 0.8)
        )
        axis = np.eye(3)[rng.integers(3)] if straight else rng.standard_normal(3)
        b.joint(
            f"joint{i}",
            kind[i],
            f"link{parent[i]}",
            f"link{i + 1}",
            placement,
            axis,
            float(rng.uniform(-1, 1)),
        )
    return b.build(draw(st.sampled_from(bases)), gravity=draw(st.sampled_from(GRAVITIES)))


OF_EVERY_ROBOT = [
    name for name, row in KERNELS.items() if not {"frames", "constraints"} & {*row.about.split()}
]
"""Kernels that have an answer for every robot: held links may be more than a robot can move."""

SHARE = [pytest.param(name, marks=pytest.mark.slow if k % 3 else ()) for k, name in enumerate(OF_EVERY_ROBOT)]
"""The same; two in three are in the heavier suite."""

LARGE = ("derivative", "inverse", "coriolis", "regressor")
"""Parts of the names of kernels whose results are matrices: their code grows fast with the robot."""


def has_large_code(name: str) -> bool:
    """Whether a kernel has as many results as a matrix."""
    return any(part in name for part in LARGE)


def robots_of(name: str, most: int = 5) -> st.SearchStrategy[Robot]:
    """Robots for a kernel of that name."""
    large = has_large_code(name)
    bases = ("floating",) if KERNELS[name].floating else ("fixed", "floating")
    return robots(min(most, 2) if large else most, bases=bases)


def arguments(robot: Robot, names: Sequence[str], rows: int, seed: int) -> list[np.ndarray]:
    """Arguments of a kernel of robokit.dynamics.build by name, (rows, n) each: states, and their matrices."""
    rng = np.random.default_rng(seed)
    n = robot.nv
    q = np.array([robot.random_configuration(rng) for _ in range(rows)]).reshape(rows, robot.nq)
    plain = ladder.Plain(robot)
    H = np.array([plain.crba(x) for x in q]).reshape(rows, n, n)
    L, D = np.zeros((rows, n, n)), np.ones((rows, n))
    for k in range(rows):
        factor, D[k] = ltdl(robot.tree.dof_parent, H[k].tolist())
        L[k] = np.array(factor).reshape(n, n)
    known = {"q": q, "H": H.reshape(rows, n * n), "L": L.reshape(rows, n * n), "D": D}
    return [known[x] if x in known else rng.standard_normal((rows, INPUTS[x].size(robot))) for x in names]


class Derived(np.ndarray):
    """An array of another class, like np.memmap."""


def _wide(x: np.ndarray, rows: slice = slice(None), columns: slice = slice(None)) -> np.ndarray:
    """x as a slice of an array that is NaN elsewhere: what must not be read would be noticed."""
    rows_step, columns_step = abs(rows.step or 1), abs(columns.step or 1)
    room = np.full((x.shape[0] * rows_step + 2, x.shape[1] * columns_step + 5), np.nan)
    part = room[: x.shape[0] * rows_step : rows_step, 3 : 3 + x.shape[1] * columns_step : columns_step]
    part = part[:: -1 if (rows.step or 1) < 0 else 1, :: -1 if (columns.step or 1) < 0 else 1]
    part[:] = x
    return part


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _unaligned(x: np.ndarray) -> np.ndarray:
    y = np.frombuffer(bytearray(x.nbytes + 1), np.uint8)[1:].view(np.float64).reshape(x.shape)
    y[...] = x
    return y


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.copy,
    "Fortran": np.asfortranarray,
    "columns of a wider array": _wide,
    "every second row": lambda x: _wide(x, rows=slice(None, None, 2)),
    "every third column": lambda x: _wide(x, columns=slice(None, None, 3)),
    "rows backwards": lambda x: _wide(x, rows=slice(None, None, -1)),
    "columns backwards": lambda x: _wide(x, columns=slice(None, None, -1)),
    "read-only": _read_only,
    "one row broadcast": lambda x: np.broadcast_to(x[:1].reshape(-1) if len(x) else x, x.shape),
    "float32": lambda x: x.astype(np.float32),
    "big-endian": lambda x: x.astype(">f8"),
    "unaligned": _unaligned,
    "derived": lambda x: x.copy().view(Derived),
    "metadata": lambda x: x.astype(np.dtype(float, metadata={"unit": "rad"})),
    "lists": lambda x: x.tolist() if x.size else x,
    "tuples of rows": lambda x: tuple(x) if x.size else x,
}
"""Ways to hand over an array (B, n). The numbers stay the same but for float32 and for the one row."""
