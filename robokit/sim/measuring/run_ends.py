"""Numbers of single states of a rollout, by a kernel: the same bits whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.tree import Tree
from robokit.sim.motion import bases_are_free
from robokit.sim.step_kernel import NOTHING_MEASURED, Program


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
        name: of the kernel.
        text: of the program, or of the same without its inertias, as :meth:`Program.built` takes it.
        size: how many numbers.
        q, v: the states, (B, ...).
        tau: joint forces, (B or 1, nv).
        dt: time step [s].
    """
    plain, robot = copy(program), program.robot
    plain.measured = NOTHING_MEASURED
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


# ---- energy, momentum and heights -------------------------------------------------------------------------


SIZE = 10
"""Figures of a state: kinetic and potential energy [J], height of the centre of mass and of the base [m],
centroidal momentum, angular and linear, world axes [N m s; N s]."""


def figures(program: Program, dt: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The figures of states (B, ...), one a row of the rollout: (B, SIZE); NaN of those that are not finite.

    Args:
        dt: time step [s].
    """
    return of_states(program, "figures", _text, SIZE, q, v, np.zeros((1, program.robot.nv)), dt)


def _text(program: Program) -> Any:
    robot = program.robot

    def text(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
        tree = program.problem(parameters, more).tree
        rows, speeds = robot.split_q(q), robot.split_v(v)
        energy = [kinetic_energy(tree, rows, speeds), potential_energy(tree, rows)]
        base = forward_kinematics(tree, rows)[root(tree)].r.z if root(tree) else 0.0
        if not has_mass(program):
            return [[*energy, 0.0, base, *[0.0] * 6]]
        height, momentum = center_of_mass(tree, rows).z, centroidal_momentum(tree, rows, speeds)
        return [[*energy, height, base, *momentum]]

    return text


def has_mass(program: Program) -> bool:
    """Whether the robot has a centre of mass."""
    return program.open or bool(np.all(program.robot.total_mass))


def root(tree: Tree) -> int:
    """The body that is the base of the (first) robot that floats; 0 where none does."""
    return tree.children[0][0] if bases_are_free(tree) else 0
