"""What the first step of a run is handed, by the engine's graph: the same bits as in a page.

A step hands momentum and energy to the next (step/carried.py), and the first one needs those of the start.
NumPy on the text of the algorithms gives them to rounding (recorded.py); this gives them as the kernels of a
page do (page_step.py), which take the same text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.sim.motion.momentum_projection import momentum_at_base
from robokit.sim.step.energy_momentum import kept_energy
from robokit.sim.step.step_kernel import Program

ROWS = 1024
"""States at a time."""


def kept_of(program: Program, tree: Any, rows: Any, speeds: Any) -> list[Any]:
    """Momentum (6) [N m s; N s] and energy [J] that a step keeps; 0 where it does not."""
    layout = program.layout
    kept = list(momentum_at_base(tree, rows, speeds)) if layout.momentum else [0.0] * 6
    return [*kept, kept_energy(tree, rows, speeds) if layout.energy else 0.0]


def start_momentum(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Those of states, (B, nq) and (B, nv), row by row those of the program's rows: (B, 7)."""
    robot, real = program.robot, "float64"
    kernel = program.built("start", _text, [], [("kept", (7,))])
    parameters = np.atleast_2d(program.parameters(1.0))
    rest = [np.zeros((1, size)) for _, size in program.given.inputs]
    out = np.zeros((len(q), 7))
    for first in range(0, len(q), ROWS):
        part = slice(first, first + ROWS)
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
