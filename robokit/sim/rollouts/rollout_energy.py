"""Rows of a rollout whose energy has grown without a cause."""

from __future__ import annotations

import numpy as np

from robokit.dynamics import kinetic_energy, potential_energy
from robokit.sim.measuring.run_ends import figures
from robokit.sim.run.energy_growth import first_excess, negligible, spring_energy
from robokit.sim.step.step_kernel import Program

FEWEST_STEPS = 20
"""Steps of a rollout from which its rows are checked: in fewer, energy has no time to grow."""

FARTHEST = 1e8
"""Largest coordinate [rad | m] of a sound run; the kernels refuse angles that have lost their digits."""


def energy_failures(
    program: Program, q: np.ndarray, v: np.ndarray, work: np.ndarray | None, failed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that have more energy at the end than they could draw on, see robokit.sim.run.energy_growth.

    The ends of all rows are checked, and all records of those rows that fail there or are not finite. A row
    that has lost the energy again by the end is not found.

    Args:
        program: the step.
        q, v: the records, (T, B, nq) and (T, B, nv).
        work: of the joint forces on each row until its end, (B,) [J]; None without joint forces.
        failed: (B,) whether a row is not finite.

    Returns:
        numbers of the rows, (F,), and of the first record of each that has too much, (F,).
    """
    given = np.zeros(len(failed)) if work is None else 2.0 * np.maximum(work, 0.0)
    rows = np.flatnonzero((np.abs(q[0]) <= FARTHEST).all(axis=1))
    if work is not None:  # that of a row that is not finite is not known
        rows = rows[~failed[rows]]
    if not len(rows):
        return rows, rows
    ends, least = [0, len(q) - 1], negligible(program)
    rows = rows[_excess(program, q[ends], v[ends], rows, least + given[rows]) < 2]
    if not len(rows):
        return rows, rows
    springs = [spring_energy(program.sample(int(k)), q[0, k].astype(float)) for k in rows]
    first = _excess(program, q, v, rows, least + given[rows] + springs)
    found = (first < len(q)) & np.isfinite(q[np.minimum(first, len(q) - 1), rows]).all(axis=1)
    return rows[found], first[found]


def _excess(
    program: Program, q: np.ndarray, v: np.ndarray, rows: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """first_excess of some rows; a state that is not finite has infinite energy."""
    both = [_energies(program, qk.astype(float), vk.astype(float), rows) for qk, vk in zip(q, v, strict=True)]
    kinetic, potential = (np.array(x) for x in zip(*both, strict=True))
    return first_excess(kinetic, potential, np.zeros_like(kinetic), least)


def _energies(
    program: Program, q: np.ndarray, v: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy of some rows, (F,) each; infinite kinetic energy beyond FARTHEST."""
    robot = program.robot
    with np.errstate(all="ignore"):
        good = (np.abs(q) <= FARTHEST).all(axis=1) & np.isfinite(v).all(axis=1)
    # One kernel for all inertias, where they are inputs of the step; in single precision for samples alone.
    shared = robot.samples is not None or (program.open and program.dtype == "float64")
    if not shared:
        q, v, good = q[rows], v[rows], good[rows]
    q, v = np.where(good[:, None], q, robot.neutral()), np.where(good[:, None], v, 0.0)
    if shared:
        kinetic, potential = figures(program, 1.0, q, v)[rows, :2].T
        return np.where(good[rows], kinetic, np.inf), potential
    kinetic = np.where(good, kinetic_energy(robot, q, v), np.inf)
    return kinetic, np.asarray(potential_energy(robot, q))
