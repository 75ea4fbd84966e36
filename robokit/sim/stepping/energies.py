"""Energies and momenta of states, and what the first step of a run is handed of them.

The texts of the algorithms run here with NumPy arrays in place of scalars, many states at once. Nothing is
compiled, because these figures are needed only once for each recorded state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.model.robot import Robot
from robokit.sim.integrators import kept_energy
from robokit.sim.motion import momentum_at_base
from robokit.sim.step_kernel import Program

BLOCK = 2048
"""States at a time: arrays of this length stay in the cache."""


def in_blocks(
    text: Callable[..., Sequence[Any]], width: int, *arrays: np.ndarray, block: int = BLOCK
) -> np.ndarray:
    """text(columns of each array, ...) -> width scalars, for all rows: (T, width)."""
    T = len(arrays[0])
    out = np.zeros((T, width))
    for start in range(0, T, block):
        part = slice(start, min(start + block, T))
        for k, x in enumerate(text(*(list(a[part].T) for a in arrays))):
            out[part, k] = x
    return out


def energies(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy [J], (T,) each."""
    tree = robot.tree

    def text(qs: Any, vs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs)
        return [kinetic_energy(tree, rows, robot.split_v(vs)), potential_energy(tree, rows)]

    # Masses of one's own: a row for each.
    both = in_blocks(text, 2, q, v, block=BLOCK if robot.samples is None else len(q))
    return both[:, 0], both[:, 1]


def momenta(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Centroidal momentum [angular; linear], world axes, (T, 6) [N m s; N s]; zero where nothing moves."""
    tree = robot.tree
    if robot.total_mass == 0.0:
        return np.zeros((len(q), 6))
    return in_blocks(
        lambda qs, vs: list(centroidal_momentum(tree, robot.split_q(qs), robot.split_v(vs))), 6, q, v
    )


def first_carried(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What the first step is handed besides q and v, for rows of states (B, ...): (B, C)."""
    robot, layout = program.robot, program.layout
    out = np.zeros((len(q), layout.size))
    if program.contact:  # the step itself looks at what it is to keep
        return out[:, :1]
    if program.reproducible:
        if (layout.momentum and np.any(robot.total_mass)) or layout.energy:
            kept = start_momentum(replace(program, dtype="float64"), q, v)
            out[:, : 6 * layout.momentum] = kept[:, : 6 * layout.momentum]
            if layout.energy:
                out[:, -1] = kept[:, 6]
        return out
    block = BLOCK if robot.samples is None else len(q)  # masses of one's own: a row for each

    def measured(text: Callable[..., Any], width: int) -> np.ndarray:
        return in_blocks(
            lambda qs, vs: list(text(robot.tree, robot.split_q(qs), robot.split_v(vs))),
            width, q, v, block=block,
        )  # fmt: skip

    if layout.momentum and np.any(robot.total_mass):
        out[:, :6] = measured(momentum_at_base, 6)
    if layout.energy:
        out[:, -1:] = measured(lambda *state: [kept_energy(*state)], 1)
    return out


def even(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows as one array; zeros follow what is shorter than others."""
    longest = max(map(len, rows))
    if all(len(row) == longest for row in rows):
        return np.array(rows)
    return np.array([np.concatenate([row, np.zeros(longest - len(row))]) for row in rows])


def kept_of(program: Program, tree: Any, rows: Any, speeds: Any) -> list[Any]:
    """Momentum (6) [N m s; N s] and energy [J] that a step keeps; 0 where it does not."""
    layout = program.layout
    kept = list(momentum_at_base(tree, rows, speeds)) if layout.momentum else [0.0] * 6
    return [*kept, kept_energy(tree, rows, speeds) if layout.energy else 0.0]


def start_momentum(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Those of states, (B, nq) and (B, nv), row by row those of the program's rows: (B, 7).

    By the engine's graph: the bits are those of a page (page_step.py), whose kernels take the same text.
    """
    robot, real = program.robot, "float64"
    kernel = program.built("start", _text, [], [("kept", (7,))])
    parameters = np.atleast_2d(program.parameters(1.0))
    rest = [np.zeros((1, size)) for _, size in program.given.inputs]
    out = np.zeros((len(q), 7))
    for first in range(0, len(q), BLOCK):
        part = slice(first, first + BLOCK)
        own = parameters[part] if len(parameters) > 1 else parameters
        rows = [q[part], v[part], np.zeros((1, robot.nv)), np.zeros((1, program.layout.size)), own, *rest]
        given = [np.asarray(x, real) for x in rows]
        out[part] = kernel.unchecked(given, len(q[part]))[0]
    return out


def _text(program: Program) -> Any:
    robot = program.robot

    def text(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
        tree = program.problem(parameters, more).tree
        return [kept_of(program, tree, robot.split_q(q), robot.split_v(v))]

    return text
