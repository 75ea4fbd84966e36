"""The rows of a rollout: their present states, their records, and which of them do not stay finite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.arguments import output
from robokit.dynamics import kinetic_energy, potential_energy
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import DeviceError, ShapeError
from robokit.sim import motion
from robokit.sim.measuring.run_ends import figures
from robokit.sim.run.energy_growth import first_excess, negligible, spring_energy
from robokit.sim.run.run_loop import stepping
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.contact_rows import ContactRunner
from robokit.sim.stepping.energies import first_carried
from robokit.sim.stepping.steppers import ContactStepper

LARGEST = [motion.AT[name] for name in ("depth", "residual")]
"""Entries of the ledger that are largest values, not sums."""


class Batch:
    """The present states of all rows, and their records.

    Attributes:
        q, v: records, (T, rows, nq) and (T, rows, nv).
        entries: records of the kept part of the ledger, (T, rows, ...), in double precision.
        arrays: inputs of the step's kernel, the state among them.
        given: those from actuators and pushes.
        state: q, v, ledger and carried numbers as they are now, (rows, ...) each.
        carried: the carried numbers of each record, (T, rows, C), where they are asked for; else those of
            each row's last record, (1, rows, C).
        ledger: the ledger since the start as of each row's last record, (rows, SIZE), in double precision.
        reached: the step of that record, (rows,).
        failed_at: step after which a row was not finite, (rows,); -1 where none.
        excess: whether a row had more energy than it could draw on, (rows,).
        finished: records that all rows have reached.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray | None,
        dt: float,
        marks: Sequence[int],
        keep: slice,
        out: tuple[np.ndarray, np.ndarray] | None = None,
        carried: bool = False,
        given: Sequence[np.ndarray] = (),
        measured: np.ndarray | None = None,
        number: int | None = None,
    ) -> None:
        """Take the starts.

        Args:
            q, v: starts, (rows, ...).
            tau: joint forces, (steps or 1, rows or 1, nv), or None.
            dt: time step [s].
            marks: steps taken at each record.
            keep: part of the ledger that is recorded.
            out: arrays for the records of q and v.
            carried: whether the carried numbers are recorded.
            given: inputs from actuators and pushes.
            measured: numbers of the measures before the first step, (rows, size).
            number: of the card that takes the steps; None for the processor.
        """
        self.program, self.dt, self.marks, self.keep = program, dt, list(marks), keep
        self.given = list(given)
        rows, T, dtype = len(q), len(marks), program.dtype
        shapes = [(T, rows, q.shape[1]), (T, rows, v.shape[1])]
        if out is None:
            self.q, self.v = (np.empty(shape, dtype) for shape in shapes)
        elif not isinstance(out, tuple | list) or len(out) != 2:
            raise ShapeError(f"out: expected two arrays, for q and v, got {type(out).__name__}")
        else:
            self.q, self.v = (output(f"out[{k}]", out[k], shapes[k], dtype) for k in (0, 1))
            if np.may_share_memory(self.q, self.v):
                raise ShapeError("out: the arrays for q and v share memory; give two that do not")
        self.runner = runner_of(program, dt, number)
        parameters = program.parameters(dt).astype(dtype, copy=False)
        with np.errstate(over="ignore"):  # such rows fail
            starts = [np.array(x, dtype, order="C")[None] for x in (q, v)]
        with np.errstate(all="ignore"):  # of the states as rounded: those that are recorded repeat to the bit
            carry = first_carried(program, *(x[0].astype(np.float64) for x in starts)).astype(dtype)
        self.arrays = [
            *starts,
            np.zeros((1, 1, program.robot.nv), dtype) if tau is None else tau,
            np.zeros((1, rows, program.entries), np.float64 if program.contact else dtype),
            carry[None],
            parameters[None] if parameters.ndim == 2 else parameters[None, None],
            *given,
        ]
        if measured is not None:
            self.arrays[3][0, :, program.sums :] = measured
        self.state = [self.arrays[k][0] for k in (0, 1, 3, 4)]
        self.carried = np.empty((T if carried else 1, rows, program.layout.size), dtype)
        self.ledger, self.reached = np.zeros((rows, program.entries)), np.zeros(rows, int)
        self.failed_at, self.excess = np.full(rows, -1), np.zeros(rows, bool)
        self.entries = np.empty((T, rows, len(range(program.entries)[keep])))
        self.finished = 1

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        program = self.program
        return self.runner.simulation(self.dt).refused if program.contact else program.kernel().refused

    def go(self, threads: int | None, progress: bool) -> bool:
        """Take the steps; whether Ctrl-C came."""
        rows = len(self.failed_at)
        self.record(0, 0, rows)
        with stepping(self.marks[-1], progress) as bar:
            self.finished, interrupted = self.runner.roll(
                self.arrays, rows, self.marks, self.record, threads, bar.update if bar is not None else None
            )
        return interrupted

    def record(self, k: int, first: int, last: int) -> None:
        """Store the states of rows first..last as record k, and find the rows that are no longer finite."""
        part = slice(first, last)
        q, v, since, carried = (x[part] for x in self.state)
        entries = self.ledger[part]
        if since.dtype == entries.dtype:
            entries[:] = since
        else:  # sums over thousands of steps would lose digits in single precision: they are made here
            top = np.maximum(entries[:, LARGEST], since[:, LARGEST])
            sums = slice(self.program.sums)
            with np.errstate(all="ignore"):
                entries[:, sums] += since[:, sums]
            entries[:, LARGEST] = top
            entries[:, self.program.sums :] = since[:, self.program.sums :]
            since[:, sums] = 0.0
        failed = self.failed_at[part]
        broken = np.flatnonzero(_not_finite(q, v, entries[:, : self.program.sums]) & (failed < 0))
        if len(broken):
            failed[broken] = self._when(k, broken + first)
        gone = failed >= 0
        if gone.any():
            for x in (q, v, since, entries):
                x[gone] = np.nan
        self.carried[k if len(self.carried) > 1 else 0, part] = carried
        self.reached[part] = self.marks[k]
        self.q[k, part], self.v[k, part], self.entries[k, part] = q, v, entries[:, self.keep]

    def drop_excess(self) -> int:
        """Fill the rows whose energy has grown without a cause with NaN, from their first such record on.

        Returns:
            their number.
        """
        n = self.finished
        if self.marks[n - 1] < FEWEST_STEPS:
            return 0
        failed = self.failed_at >= 0
        ground = self.program.ground
        moves = ground is not None and ground.moves
        driven = self.arrays[2].any() or bool(self.given) or moves or bool(self.program.springs.given)
        given = self.ledger[:, motion.AT["work"]] if driven else None
        rows, first = energy_failures(self.program, self.q[:n], self.v[:n], given, failed)
        for row, k in zip(rows, first, strict=True):
            self.failed_at[row], self.excess[row] = self.marks[k], True
            for x in (self.q, self.v, self.entries):
                x[k:, row] = np.nan
            self.ledger[row] = np.nan
        return len(rows)

    def _when(self, k: int, rows: np.ndarray) -> np.ndarray:
        """The step after which each of these rows is not finite, by repeating those since the last record."""
        found = np.full(len(rows), self.marks[k])
        if k == 0:
            return found
        if self.program.contact:
            return np.array([self.runner.failed.get(row, self.marks[k]) for row in rows.tolist()])
        first, last = self.marks[k - 1], self.marks[k]
        _, _, tau, entries, _, parameters, *given = self.arrays
        tau, *given = (x[first:last] if len(x) > 1 else x for x in (tau, *given))
        kept = self.carried[k - 1 if len(self.carried) > 1 else 0][None]
        again = [
            self.q[k - 1][rows][None],
            self.v[k - 1][rows][None],
            *(
                np.ascontiguousarray(x[:, rows] if x.shape[1] > 1 else x)
                for x in (tau, entries, kept, parameters, *given)
            ),
        ]
        again[3] = np.zeros_like(again[3])
        runner = runner_of(self.program, self.dt)
        memory, waiting = runner.workspace(), np.ones(len(rows), bool)
        for step in range(last - first):
            runner.run(again, memory, range(len(rows)), step, 1)
            q, v, sums = again[0][0], again[1][0], again[3][0, :, : self.program.sums]
            now = waiting & _not_finite(q, v, sums)
            found[now], waiting[now] = first + step + 1, False
            if not waiting.any():
                break
        return found


def runner_of(program: Program, dt: float, number: int | None = None) -> Any:
    """What takes many rows of a program through many steps.

    Args:
        dt: time step [s].
        number: of the card that does it; None for the processor.

    Raises:
        DeviceError: there is no such card, or it has no such steps.
    """
    if number is None:
        if not program.contact:
            return program.kernel().rollout_runner()
        own = ContactStepper(program, dt)
        return ContactRunner(program, lambda _: own.state)
    from robokit.engine.cuda import driver, rollout  # a processor's run need not import them
    from robokit.sim.stepping.contact_card import CardRunner

    card = driver.card(number)
    if program.contact:
        own = ContactStepper(program, dt)
        return CardRunner(program, lambda _: own.state, card, program.dtype)
    kernel = program.kernel()
    try:
        return rollout.RolloutOnCard(kernel, card)
    except (CompilerMissing, TraceTooLarge) as error:
        raise DeviceError(
            f'device="cuda:{number}": {kernel.name} has no code for a card ({error}); use device="cpu"'
        ) from error


def check_room(states: int, rows: int, size: int, dtype: str) -> None:
    """Refuse records that the machine's memory cannot hold.

    Args:
        states: recorded of each row.
        rows: of the rollout.
        size: scalars of a state.
        dtype: of these.

    Raises:
        ShapeError: it cannot.
    """
    need = states * (rows * size * np.dtype(dtype).itemsize + 8)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > memory:
        raise ShapeError(
            f"duration: {states:,} records of {rows:,} rows need {need / 2**30:,.0f} GiB of memory, of "
            f"{memory / 2**30:,.0f} GiB; take a larger record_every, fewer steps or fewer rows"
        )


def _not_finite(*arrays: np.ndarray) -> np.ndarray:
    """Which rows hold NaN or infinity."""
    with np.errstate(all="ignore"):
        if np.isfinite(sum(x.sum() for x in arrays)):  # almost always, and quicker
            return np.zeros(len(arrays[0]), bool)
        suspect = ~np.isfinite(sum(x.sum(axis=1) for x in arrays))
    if suspect.any():  # large numbers may have a sum that is not finite
        suspect[suspect] = [not all(np.isfinite(x[k]).all() for x in arrays) for k in np.flatnonzero(suspect)]
    return suspect


# ---- energy without a cause --------------------------------------------------------------------------------


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
    least = negligible(program)

    def excess(records: Sequence[int], least: np.ndarray) -> np.ndarray:
        both = [_energies(program, q[k].astype(float), v[k].astype(float), rows) for k in records]
        kinetic, potential = (np.array(x) for x in zip(*both, strict=True))
        return first_excess(kinetic, potential, np.zeros_like(kinetic), least)

    rows = rows[excess([0, len(q) - 1], least + given[rows]) < 2]
    if not len(rows):
        return rows, rows
    springs = [spring_energy(program.sample(int(k)), q[0, k].astype(float)) for k in rows]
    first = excess(range(len(q)), least + given[rows] + springs)
    found = (first < len(q)) & np.isfinite(q[np.minimum(first, len(q) - 1), rows]).all(axis=1)
    return rows[found], first[found]


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
