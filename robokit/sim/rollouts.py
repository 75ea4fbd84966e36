"""Many states of one robot through time at once: ``rk.rollout``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arguments import check_finite, output, real_array, whole_number
from robokit.dataclass_tools import cached_attribute, equal
from robokit.dynamics import kinetic_energy, potential_energy
from robokit.dynamics.choices import card_number, dtype_there, on_host
from robokit.dynamics.run import dtype_name
from robokit.errors import ShapeError, SimulationError, shown
from robokit.model.robot import Robot
from robokit.sim import motion
from robokit.sim.actuators import Actuator
from robokit.sim.contact_rows import ContactRunner
from robokit.sim.distances import CollisionPairs
from robokit.sim.events import MOST_BYTES, StepInputs, retaken
from robokit.sim.ground import Ground
from robokit.sim.motion import floats
from robokit.sim.rollout_measures import (
    ChosenMeasures,
    Readings,
    figures,
    wanted_measures,
)
from robokit.sim.run_inputs import MOST_STEPS, RunSetup, set_up_run
from robokit.sim.run_loop import (
    Records,
    first_excess,
    limited_times,
    negligible,
    shape_error,
    spring_energy,
    stepping,
    trajectory_of,
    warn_of_entered,
    warn_of_length,
    warn_of_rows,
)
from robokit.sim.starts import DEEP, distances, torn
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import add_up, contact_scale, kernel_inputs, left_over, not_finite, tally
from robokit.sim.trajectory import Trajectory

# ==== the rows of a rollout =======================================================================
# The rows of a rollout: their present states, their records, and which of them do not stay finite.

LARGEST = [motion.AT[name] for name in ("depth", "residual")]  # no sums, but largest values


class Batch:
    """The present states of all rows, and their records.

    Attributes:
        q, v: records, (T, rows, nq) and (T, rows, nv).
        entries: records of the kept part of the ledger, (T, rows, ...), in double precision.
        arrays: inputs of the step's kernel, the state among them.
        given: those from actuators and pushes.
        state: q, v, ledger and carried numbers as they are now, (rows, ...) each.
        carried: the carried numbers of each row's last record, (rows, C).
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
        given: Sequence[np.ndarray] = (),
        measured: np.ndarray | None = None,
        number: int | None = None,
    ) -> None:
        """Take the starts q and v, (rows, ...), for steps of dt [s].

        tau are joint forces, (steps or 1, rows or 1, nv), or None; ``given`` inputs from actuators and
        pushes. ``marks`` counts the steps at each record, ``keep`` is the part of the ledger that is
        recorded, and ``out`` has arrays for the records of q and v. ``measured`` are numbers of the measures
        before the first step, (rows, size); ``number`` is that of the card that takes the steps, None for the
        processor.
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
        self.runner = runner_of(program, dt, number, self)
        self.arrays = kernel_inputs(program, q, v, dt, tau, given)
        if measured is not None:
            self.arrays[3][0, :, program.sums :] = measured
        self.state = [self.arrays[k][0] for k in (0, 1, 3, 4)]
        self.carried = np.empty((rows, program.layout.size), dtype)
        self.ledger, self.reached = np.zeros((rows, program.entries)), np.zeros(rows, int)
        self.failed_at, self.excess = np.full(rows, -1), np.zeros(rows, bool)
        self.entries = np.empty((T, rows, len(range(program.entries)[keep])))
        self.finished = 1

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        program = self.program
        return self.runner.simulation.refused if program.contact else program.kernel().refused

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
        else:
            sums = self.program.sums
            add_up(entries[:, :sums], since[:, :sums], LARGEST)
            entries[:, sums:] = since[:, sums:]
        failed = self.failed_at[part]
        broken = np.flatnonzero(not_finite(q, v, entries[:, : self.program.sums]) & (failed < 0))
        if len(broken):
            failed[broken] = self._when(k, broken + first)
        gone = failed >= 0
        if gone.any():
            for x in (q, v, since, entries):
                x[gone] = np.nan
        self.carried[part] = carried
        self.reached[part] = self.marks[k]
        self.q[k, part], self.v[k, part], self.entries[k, part] = q, v, entries[:, self.keep]

    def drop_excess(self) -> int:
        """Fill rows with NaN from their first record with too much energy on; how many they are."""
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
        start, none = (self.q[k - 1][None], self.v[k - 1][None]), np.zeros_like(entries)
        inputs = *start, tau, none, self.carried[None], parameters, *given
        again = [np.array(x[:, rows] if x.shape[1] > 1 else x, order="C") for x in inputs]

        def look(steps: int, *_: int) -> None:
            gone = not_finite(again[0][0], again[1][0], again[3][0, :, : self.program.sums])
            found[gone] = np.minimum(found[gone], first + steps)

        runner_of(self.program, self.dt).roll(again, len(rows), range(last - first + 1), look, threads=1)
        return found


def runner_of(program: Program, dt: float, number: int | None = None, owner: Any = None) -> Any:
    """What takes many rows of a program through many steps of dt [s], on a card of this number or the
    processor; of an ``owner`` see :func:`robokit.sim.steppers.left_over`.

    Raises DeviceError where there is no such card, or it has no such steps.
    """
    if number is None:
        if not program.contact:
            return program.kernel().rollout_runner()
        return left_over(ContactRunner, program, dt, owner)
    from robokit.sim.card_rows import card_runner  # a processor's run need not import it

    return card_runner(program, dt, number)


def check_room(states: int, rows: int, size: int, dtype: str) -> None:
    """Raise ShapeError for records that the machine's memory cannot hold.

    ``states`` are recorded of each row, and ``size`` is how many scalars of ``dtype`` one has.
    """
    need = states * (rows * size * np.dtype(dtype).itemsize + 8)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > memory:
        raise ShapeError(
            f"duration: {states:,} records of {rows:,} rows need {need / 2**30:,.0f} GiB of memory, of "
            f"{memory / 2**30:,.0f} GiB; take a larger record_every, fewer steps or fewer rows"
        )


# ---- energy without a cause --------------------------------------------------------------------------------

FEWEST_STEPS = 20  # steps of a rollout from which its rows are checked: in fewer, energy has no time to grow
FARTHEST = 1e8  # largest coordinate of a sound run [rad | m]; kernels refuse angles without digits


def energy_failures(
    program: Program, q: np.ndarray, v: np.ndarray, work: np.ndarray | None, failed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows that have more energy at the end than they could draw on, (F,), and of the first
    such record of each, (F,).

    See robokit.sim.run_loop. The ends of all rows are checked, and all records of those rows that fail there
    or are not finite. A row that has lost the energy again by the end is not found. q and v are the records,
    (T, B, nq) and (T, B, nv); ``work`` is that of the joint forces on each row until its end, (B,) [J], None
    without joint forces; ``failed``, (B,), says which rows are not finite.
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


# ==== rollout: many states of one robot through time at once ======================================

FORCE = slice(motion.AT["impulse_fx"], motion.AT["impulse_fz"] + 1)


@dataclass
class Rollout:
    """Recorded states of many simulations of one robot.

    Attributes:
        t: (T,) [s].
        q: (T, B, nq) configurations [rad | m | unit quaternion wxyz]; NaN in a row that failed, from then on.
            q and v have the rollout's dtype.
        v: (T, B, nv) velocities [rad/s | m/s], with NaN as in q.
        contact_force: (T, B, 3) force of the ground on the robot, world axes [N]: the mean over the time
            since the previous record; 0 at the start. None without a ground. :meth:`trajectory` has that of
            single steps.
        failed: (F,) numbers of the rows that did not stay finite, or whose energy grew without a cause,
            ascending.
        failed_time: (F,) time from which each is NaN [s].
        robot: the robot.
        measures: what was measured, (B,) each, by the names of the columns in ``rk.measures``.
        tau: joint forces as given, (T or 1, B or 1, nv) [N m | N], or None. It is a copy if they shared
            memory with ``out``.
        ground: the ground, or None.
        device: what it was computed on, "cpu" or "cuda:0".
        summary: figures of the run: rows, steps, steps_per_second (of all rows together), deepest_penetration
            of the worst row [m], loop_gap of the worst row at the end [m], ...
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    contact_force: np.ndarray | None
    failed: np.ndarray
    failed_time: np.ndarray
    robot: Robot
    tau: np.ndarray | None = None
    ground: Ground | None = None
    summary: dict[str, Any] = field(default_factory=dict, compare=False)  # has times of computing
    program: Program | None = field(default=None, repr=False, compare=False)
    marks: Sequence[int] = field(default=(), repr=False)
    given: Sequence[np.ndarray] = field(default=(), repr=False)
    ledgers: Readings | None = field(default=None, repr=False, compare=False)
    measures: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    device: str = "cpu"

    __eq__ = equal

    if not TYPE_CHECKING:  # for mypy, what is not defined here does not exist

        def __getattr__(self, name: str) -> Any:
            from robokit.unknown_names import OF_A_RUN, no_attribute

            raise no_attribute(self, name, OF_A_RUN)

    def __repr__(self) -> str:
        T, B, _ = self.q.shape
        lost = f", {len(self.failed)} failed" if len(self.failed) else ""
        return f"<Rollout of {self.robot.name!r}: {B} rows, {T} states, 0 to {self.t[-1]:g} s{lost}>"

    @cached_attribute
    def energy_balance(self) -> np.ndarray:
        """(B,) energy that each row has gained without a cause [J]: of mechanical + dissipated - work.

        It is the error of the time steps, and, in single precision, of rounding. NaN in a row that failed.
        """
        return self._ledgers.energy_balance()

    @property
    def deepest(self) -> np.ndarray:
        """(B,) deepest penetration of each row into the ground so far [m]; NaN in a row that failed."""
        return self._ledgers.entry("depth")

    @property
    def pulled(self) -> np.ndarray:
        """(B,) pulling contact impulses as a fraction of pushing ones; NaN in a row that failed."""
        return self._ledgers.share("pulled")

    @property
    def outside(self) -> np.ndarray:
        """(B,) contact impulses outside Coulomb's cone as a fraction of pushing ones; NaN in failed rows."""
        return self._ledgers.share("outside")

    @property
    def _ledgers(self) -> Readings:
        assert self.ledgers is not None
        return self.ledgers

    def trajectory(self, row: int) -> Trajectory:
        """One row with energies, momentum and contacts; a row that failed, up to its last finite state.

        The row is computed again, to the same bits, with the energy accounting that a rollout does not
        record.

        Raises:
            ShapeError: no such row, or its start or tau have been changed since.
            SimulationError: its start was not finite.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> runs = rk.rollout(robot, [[1.0, 0.0], [2.0, 0.0]], duration=0.05)
            >>> np.allclose(runs.trajectory(1).q, runs.q[:, 1])
            True
        """
        rows = self.q.shape[1]
        if not isinstance(row, int | np.integer) or not -rows <= row < rows:
            raise ShapeError(f"row: expected a whole number from 0 to {rows - 1}, got {shown(row)}")
        row, program = int(row) % rows, self.program
        assert program is not None
        first = self.q[0, row], self.v[0, row]
        if not all(np.isfinite(x).all() for x in first):
            raise SimulationError(f"row {row} was not finite from the start")
        n = int((np.isfinite(self.q[:, row]).all(axis=1) & np.isfinite(self.v[:, row]).all(axis=1)).sum())
        program = program.sample(row)
        dtype, dt, marks = self.q.dtype, self.summary["dt"], list(self.marks[:n])
        tau = np.zeros((1, 1, self.v.shape[2])) if self.tau is None else self.tau
        records = Records(inputs=StepInputs.of_row([tau, *self.given], row))
        start = first[0].astype(float), first[1].astype(float)
        own = program, dt, start, marks, records.inputs
        notes = retaken(*own, record=records.add, most=MOST_BYTES)
        pairs = (records.q, self.q[:n, row]), (records.v, self.v[:n, row])
        if not all(np.array_equal(np.array(a).astype(dtype), b) for a, b in pairs):
            if self.device != "cpu":
                raise ShapeError(
                    f"row {row} was computed on {self.device}, to other bits than the processor's; "
                    'rk.simulate from its start, or a rollout with reproducible=True and dtype="float64", '
                    "has a trajectory"
                )
            raise ShapeError(f"row {row} does not repeat: q, v or tau have been changed since the rollout")
        found = trajectory_of(program, dt, records, notes)
        found.tau = None if self.tau is None else records.inputs.rows(records.steps)[0]
        found.robot = self.robot if self.robot.samples is None else program.robot
        return found


def rollout(
    robot: Robot,
    q0: Any = None,
    v0: Any = None,
    duration: float = 1.0,
    dt: float | None = None,
    ground: Ground | bool | None = None,
    tau: Any = None,
    integrator: str | None = None,
    gravity: Sequence[float] | None = None,
    record_every: int | None = None,
    joint_damping: float | None = None,
    progress: bool = False,
    *,
    steps: int | None = None,
    threads: int | None = None,
    actuators: Actuator | Sequence[Actuator] | None = None,
    pushes: Any = None,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    dtype: Any = None,
    self_collision: CollisionPairs | bool | None = None,
    accuracy: float | None = None,
    measures: Any = None,
    reproducible: bool | None = None,
    springs: Any = None,
    motions: Any = None,
    device: Any = None,
) -> Rollout:
    """Simulate many states of a robot at once: all steps in machine code, on all processors.

    Each row moves as in :func:`robokit.simulate`, with the same defaults, and independently of the other
    rows; in double precision on the processor to the bit. A row that is no longer finite becomes NaN and is
    listed in ``.failed``; the others continue. In a rollout of 20 steps or more, a row whose energy has grown
    without a cause at the end (see robokit.sim.run_loop) also fails, from the first such record on. Ctrl-C
    ends the rollout and returns the states that all rows have reached, with ``summary["interrupted"]`` set.

    A robot made by ``with_inertias`` needs no code of its own. With one set of parameters per sample, row k
    moves as ``robot.sample(k)``. Friction may have one coefficient per row.

    Args:
        robot: the robot; with B samples, there are B rows.
        q0: configurations at the start, (B, nq), or (nq,) for all rows; neutral by default.
        v0: velocities at the start, (B, nv), or (nv,) for all rows; zero by default.
        duration: [s]; rounded to whole steps.
        dt: time step [s]; with a ground at most 4 ms. None as in :func:`robokit.simulate`.
        ground: ``rk.Ground(...)``, True for one with default values, None for none; its friction may be
            (B,).
        tau: joint forces [N m | N]: (nv,) or (B, nv) constant, (T, nv) or (T, B, nv) for T = steps, each
            held over its step. In three dimensions, a length of 1 stands for "all": (T, 1, nv), (1, B, nv).
            If B = T, two-dimensional arrays are refused as ambiguous. None for none. The array is kept, not
            copied, if it has the dtype and shares no memory with ``out``.
        integrator, gravity, joint_damping, self_collision: as in :func:`robokit.simulate`.
        record_every: steps between recorded states; by default those of about 5 ms. The last state is
            always recorded: ``record_every=steps`` records the start and the last state only.
        progress: show a progress bar.
        steps: number of steps, instead of a duration.
        threads: number of threads; None for the number that is worthwhile.
        actuators: as in :func:`robokit.simulate`, with targets like ``tau`` or keyframes, but no functions;
            gains and limits may be (B, n), one set per row.
        pushes: as in :func:`robokit.simulate`, the same for all rows, or with wrenches (B, 3) or (B, 6).
        out: arrays (T, B, nq) and (T, B, nv) to record q and v in, T counting the recorded states.
        dtype: "float64" or "float32": of all steps and of the recorded states. None: that of arrays on a
            card, otherwise "float64". Free motion takes about 0.55 of the time in single precision: a
            humanoid is then off by 1e-5 after 1000 steps. The base's position is rounded to 6e-8 of its
            distance from the world's origin.
        accuracy: as in :func:`robokit.simulate`; each row has parts of its own.
        measures: measures of every step of each row, whatever is recorded: names of ``rk.measures``, your own
            ``rk.Measure``, or True for all of robokit's. Measures need a step that is compiled for them.
        reproducible: as in :func:`robokit.simulate`: each row is then, to the bit, the simulation from its
            start, in any batch, at any place in it, and on any number of threads.
        springs: as in :func:`robokit.simulate`, the same for all rows.
        motions: as in :func:`robokit.simulate`; arrays may be (steps + 1, B), one motion per row.
        device: "cuda", or "cuda:1", takes the steps on a graphics card (:doc:`/gpu`), where the states stay
            from record to record; records are returned as NumPy arrays. Starts and joint forces may be arrays
            on a card, which is then the device. None or "cpu": the processor. :class:`robokit.Simulation`
            keeps its states on the card throughout.

    Returns:
        the recorded states. :meth:`Rollout.trajectory` gives one row with energies, momentum and contact
        forces.

    Raises:
        ShapeError: an argument of the wrong shape or content, or a start deep inside the ground. Starts and
            joint forces of single rows may be NaN: such a row fails.
        UnknownName: as in :func:`robokit.simulate`; there is no such dtype.
        SingularInertia: as :func:`robokit.simulate`.
        DeviceError: there is no such card, or it does not support this simulation; the message says what to
            do.

    Warns:
        SimulationWarning: as in :func:`robokit.simulate`, about the worst row; also about rows that failed.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> runs = rk.rollout(robot, [[1.0, 0.0], [2.0, 0.0]], duration=0.05)
        >>> runs.q.shape, len(runs.failed)
        ((11, 2, 2), 0)
    """
    real = dtype_name(dtype_there(dtype, q0, v0, tau))
    steps = None if steps is None else whole_number("steps", steps, 0, int(MOST_STEPS))
    threads = None if threads is None else whole_number("threads", threads, 1)
    number = card_number(device, q0, v0, tau)
    if number is not None and threads is not None:
        raise ShapeError(f"threads: expected None with a card, got {threads}; threads are for the processor")
    q0, v0, tau = (on_host(name, x) for name, x in (("q0", q0), ("v0", v0), ("tau", tau)))
    wanted = wanted_measures(measures)
    setup = set_up_run(
        robot, q0, v0, duration, dt, ground, integrator, record_every, joint_damping, gravity, actuators,
        pushes, springs, motions, many=True, by_step=tau is not None, steps=steps, dtype=real,
        self_collision=self_collision, accuracy=accuracy, reproducible=reproducible,
    )  # fmt: skip
    robot, program, total, q, v = setup.robot, setup.program, setup.steps, setup.q, setup.v
    forces, rows = controls(tau, setup, real)
    base = forces is not None and floats(robot.tree) and bool(forces[..., :6].any())
    known = rows if rows > 1 or (len(q) == len(v) == rows == 1 and forces is not None) else None
    inputs = setup.inputs(known, base)
    rows = inputs.rows or rows
    program = program.with_given(inputs.layout, inputs.numbers)
    chosen = ChosenMeasures(wanted, program) if wanted else None
    program = chosen.program if chosen else program
    given = inputs.tables(total, real)
    check_room(total // setup.every + 1, rows, robot.nq + robot.nv, real)
    marks = [*range(0, total, setup.every), total]
    keep = FORCE if program.ground is not None else slice(0, 0)
    if out is not None and forces is not None:  # copied where the records would be written over them
        shared = any(isinstance(x, np.ndarray) and np.may_share_memory(forces, x) for x in out)
        forces = forces.copy() if shared else forces
    q, v = (np.broadcast_to(x, (rows, x.shape[1])) for x in (q, v))
    started = time.perf_counter()
    first = None
    if chosen:
        first = chosen.first(q, v, np.zeros((1, robot.nv)) if forces is None else forces[0], setup.dt)
    batch = Batch(
        program, q, v, forces, setup.dt, marks, keep, out, given=given, measured=first, number=number
    )
    compiled = time.perf_counter()
    warn_of_length(batch.refused, robot.name)
    interrupted = batch.go(threads, progress)
    seconds = time.perf_counter() - compiled
    lost = batch.drop_excess()
    found = _collect(batch, forces)
    found.robot, found.device = robot, "cpu" if number is None else f"cuda:{number}"
    if chosen:
        found.measures = chosen.columns(found._ledgers)
    found.summary |= setup.summary | {
        "steps_per_second": rows * marks[batch.finished - 1] / seconds if seconds else 0.0,
        "compile_seconds": compiled - started,
        "step_seconds": seconds,
        "interrupted": interrupted,
        "rows_of_excess_energy": lost,
    }
    found.summary |= tally(program, batch.ledger)
    warn_of_rows(found.summary, found.failed, found.failed_time, setup.depth)
    _warn_of_worst_row(found, batch.ledger)
    return found


def _warn_of_worst_row(found: Rollout, ledger: np.ndarray) -> None:
    """Warn of bodies that went into each other in the row with the largest overlap.

    Where bodies or the ground differ between the rows, nothing is looked for.
    """
    program = found.program
    assert program is not None
    same = program.robot.samples is None and (program.ground is None or program.ground.rows is None)
    if same and program.contact:
        row = int(np.nan_to_num(ledger[:, motion.AT["overlap"]]).argmax())
        warn_of_entered(program, found.summary, found.q[:, row].astype(float), found.t)


NOT_FINITE, EXCESS = "the state is no longer finite", "the energy has grown without a cause"
"""Why a row failed."""


def _collect(batch: Batch, tau: np.ndarray | None) -> Rollout:
    """What was recorded."""
    n, program = batch.finished, batch.program
    marks = batch.marks[:n]
    t = batch.dt * np.array(marks, dtype=float)
    force = None
    if program.ground is not None:
        force = batch.entries[:n]
        force[1:] = np.diff(force, axis=0) / np.diff(t)[:, None, None]
    failed = np.flatnonzero((batch.failed_at >= 0) & (batch.failed_at <= marks[-1]))
    found = Rollout(
        t, batch.q[:n], batch.v[:n], force, failed, batch.dt * batch.failed_at[failed], program.robot,
        tau, program.ground, program=program, marks=marks, given=batch.given,
        ledgers=_ledgers(batch, failed),
    )  # fmt: skip
    found.summary = {
        "robot": program.robot.name,
        "integrator": program.name,
        "dt": batch.dt,
        "dtype": program.dtype,
        "rows": len(batch.failed_at),
        "steps": marks[-1],
    }
    if program.given.drives:
        times = limited_times(program, batch.ledger)
        found.summary["saturated"] = {
            name: _finite(x / np.maximum(1, batch.reached), np.mean) / batch.dt for name, x in times.items()
        }
    if program.loops is not None:
        last = batch.q[n - 1].astype(float)
        found.summary["loop_gap"] = _finite(distances(program.robot, last), np.max)
        if name := torn(program.robot, last[np.isfinite(last).all(axis=1)]):
            found.summary["loop_torn"] = name
    if program.ground is not None:
        found.summary |= {
            "shape_error": shape_error(program),
            "deepest_penetration": _finite(batch.ledger[:, motion.AT["depth"]], np.max),
            "deepest_fine": DEEP * contact_scale(program.robot, program.ground),
        }
    return found


def _ledgers(batch: Batch, failed: np.ndarray) -> Readings:
    """What is known of the rows at the end; NaN where Ctrl-C found a row beyond the others."""
    n = batch.finished
    ends = [x[[0, n - 1]].astype(np.float64) for x in (batch.q, batch.v)]
    entries = batch.ledger.copy()
    entries[batch.reached != batch.marks[n - 1]] = np.nan
    reason, when = np.full(len(entries), None, dtype=object), np.full(len(entries), np.nan)
    reason[failed], reason[batch.excess] = NOT_FINITE, EXCESS
    when[failed] = batch.dt * batch.failed_at[failed]
    return Readings(batch.program, ends[0], ends[1], entries, batch.dt, batch.marks[n - 1], reason, when)


def _finite(x: np.ndarray, summary: Callable[[np.ndarray], Any]) -> float:
    """A figure of the rows that did not fail."""
    good = x[np.isfinite(x)]
    return float(summary(good)) if len(good) else 0.0


# ---- joint forces ------------------------------------------------------------------------------------------


def controls(tau: Any, setup: RunSetup, dtype: str = "float64") -> tuple[np.ndarray | None, int]:
    """Joint forces as (steps or 1, rows or 1, nv) of a dtype, and the number of rows.

    tau is what :func:`robokit.rollout` was given; it may say how many rows there are where nothing else does.
    Raises ShapeError for a shape or content that makes no sense, or another number of rows.
    """
    steps, rows, n = setup.steps, setup.rows, setup.robot.nv
    if tau is None:
        return None, rows
    accepted = (
        f"({n},), ({rows}, {n}), ({steps}, {n}) or ({steps}, {rows}, {n}) for {rows} rows, {steps} steps"
    )
    if callable(tau):
        raise ShapeError(
            f"tau: expected joint forces of shape {accepted}, got a function; if forces depend on the "
            "state, rk.Simulation(..., batch=B) advances the rows step by step"
        )
    array = real_array("tau", tau, accepted, dtype=dtype)
    shape = array.shape
    if array.ndim == 1:
        array = array[None, None]
    elif array.ndim == 2:
        by_row, by_step = len(array) == rows, len(array) == steps
        if by_row and by_step and rows > 1:
            raise ShapeError(
                f"tau: {shape} could be one row per state or one per step; give ({steps}, 1, {n}) for forces "
                f"that change with time or (1, {rows}, {n}) for constant ones"
            )
        array = array[None] if by_row else array[:, None] if by_step else array
    elif array.ndim == 3 and rows == 1 and not setup.counted:
        rows = max(1, array.shape[1])  # the only argument that counts rows
    fits = array.ndim == 3 and array.shape[0] in (1, steps) and array.shape[1] in (1, rows)
    if not fits or array.shape[2] != n:
        raise ShapeError(f"tau: expected shape {accepted}, got {shape}")
    if steps == 0:
        return None, rows
    if array.shape[1] == 1 and rows > 1:  # meant for all rows
        check_finite("tau", array)
    # The engine goes from row to row and from step to step by any stride, but the numbers of one row must
    # lie side by side.
    good = array.strides[2] == array.itemsize and array.flags.aligned
    return array if good else np.ascontiguousarray(array), rows
