"""Numbers of single states of a rollout, by a kernel: the same bits whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from robokit.sim.step.measured import NOTHING
from robokit.sim.step.step_kernel import Program


def of_states(
    program: Program,
    name: str,
    text: Callable[[Program], Callable[..., Any]],
    size: int,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    dt: float,
) -> np.ndarray:
    """Numbers of states, one a row of the rollout: (B, size); NaN of those that are not finite.

    Args:
        program: the step.
        name: of the kernel.
        text: of the program, or of the same without its inertias, as :meth:`Program.built` takes it.
        size: how many numbers.
        q, v: the states, (B, ...).
        tau: joint forces, (B or 1, nv).
        dt: time step [s].
    """
    plain, robot = copy(program), program.robot
    plain.measured = NOTHING
    kernel = plain.built(name, text, inputs=[], outputs=[(name, (size,))])
    good = np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)
    q, v = np.where(good[:, None], q, robot.neutral()), np.where(good[:, None], v, 0.0)
    if len(tau) > 1:
        good &= np.isfinite(tau).all(axis=1)
    tau = np.where(np.isfinite(tau), tau, 0.0)
    inputs = [np.zeros(length) for _, length in program.given.inputs]
    rest = [np.zeros(program.layout.size), program.parameters(dt), *inputs]
    arrays = [q, v, tau if len(tau) > 1 else tau[0], *rest]
    with np.errstate(all="ignore"):
        found = np.asarray(
            kernel.batch(*(np.ascontiguousarray(x, program.dtype) for x in arrays)), dtype=float
        )
    found[~good] = np.nan
    return found
