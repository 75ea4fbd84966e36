"""One state through time: the steps of contact/step.py, or those of passive motion, as loops take them.

Both kinds have a state, are given inputs, and take steps in place. Of what they note of each step events,
sensors and contacts of a run are made: no step is taken twice.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.contact.monitor import NOTES
from robokit.conventions import GRAVITY
from robokit.dataclass_tools import Spare
from robokit.engine.maker import engine
from robokit.errors import InvalidValue
from robokit.model.robot import Robot
from robokit.sim import motion
from robokit.sim.contact_rows import commands, entries_of
from robokit.sim.contact_state import NOTED_AT_START, ContactState, step_numbers, steps_taken
from robokit.sim.integrators import kept_energy
from robokit.sim.motion import body_velocities, effective_inertias, momentum_at_base
from robokit.sim.step_kernel import Program

# ==== default step ================================================================================
# The time step that a simulation takes where none is given: 1 ms, halved until nothing turns far in it.
#
# In a fall the velocities jump where links meet the ground and their limits. In a deep tree of light links
# such a jump turns links by a large angle within a step, and the velocity products that a step misses there
# make or take energy. Free motion is of second order or better and asks for no shorter step, nor do damping
# and friction, which are implicit.
#
#     w = v / l,     v^2 = 2 g h,     1 / l^2 = sum_i m_i / l_i^2  /  sum_i m_i,     w dt <= SPIN
#
# v is the speed of a fall from the height h, the reach of the robot; l_i is how far from joint i a push on
# link i must act to turn it without a force on the joint (its centre of percussion), I_i / (m_i c_i). Where
# links ask for a shorter step, I_i is at least a tenth of 1 / (H^-1)_ii, what the joint turns with all others
# free: a cross link in a hip or a wrist is small, but does not turn without the leg or the hand that it
# carries.
#
# Measured on falls of chains of 5 to 100 links (w from 31 to 281 rad/s), four seeds each, 2 s, at 1/2 to 4
# ms: the energy that is taken, over that which moved, is 0.6 % at most up to w dt = 0.1, 4 % up to 0.2, 9 %
# up to 0.6 but for one fall of 11 %; from 0.8 on runs break down. Robots have 5 to 50 rad/s: 1 ms, and 4 ms
# as well.
#
# A start whose bodies spin faster than that asks for itself: the step is halved until none turns by more than
# SPIN in it.

LONGEST = 1e-3
"""Default time step [s] of a robot that needs no shorter one."""

SHORTEST = LONGEST / 2**10
"""Least default time step [s]."""

CARRIED = 0.1
"""Least inertia of a link about its joint, over that which the joint turns: 0.6 of it in chains of hinges."""

SPIN = 0.3
"""A body that turns by more in a step is worth a warning [rad]. The sine of the half is off its series' first
term by 0.4 %, which the axes of a step, those of its middle, leave out; at 1 rad it is 4 %."""

ROWS = 1024
"""Starts that are looked at together."""


def step_for_spin(dt: float, robot: Robot, q: np.ndarray, v: np.ndarray) -> float:
    """A time step halved as often as the spins of starts ask, but for those that ask for less than SHORTEST.

    Args:
        dt: the step [s].
        q, v: the starts, (nq,) and (nv,), or rows of them; a single row goes with many.
    """
    speed, _, _ = fastest_spin(robot, q, v, SPIN / dt, SPIN / SHORTEST)
    return _halved(dt, speed)


def _halved(dt: float, rate: float) -> float:
    """The step [s], halved until what turns at a rate [rad/s] turns by SPIN at most in it."""
    return dt / 2 ** max(0, math.ceil(math.log2(rate * dt / SPIN) - 1e-9))


def fastest_spin(
    robot: Robot, q: np.ndarray, v: np.ndarray, least: float, most: float = math.inf
) -> tuple[float, int, int]:
    """The largest angular velocity of a body [rad/s], its row and the body; (least, 0, 0) if none is larger.

    Args:
        q, v: as in :func:`step_for_spin`; rows that are not finite are skipped.
        least: [rad/s].
        most: rows with larger ones are skipped, too [rad/s].
    """
    q, v = np.atleast_2d(q), np.atleast_2d(v)
    found, rows = (least, 0, 0), max(len(q), len(v))
    with np.errstate(all="ignore"):  # no body turns faster than all joints together
        if not np.nanmax(np.abs(v).sum(axis=1), initial=0.0) > least:
            return found
    robot = robot if robot.samples is None else robot.sample(0)
    for first in range(0, rows, ROWS):
        x, y = (a if len(a) == 1 else a[first : first + ROWS] for a in (q, v))
        with np.errstate(all="ignore"):
            X = robot.tree.transforms(robot.split_q(list(x.T)))
            turning = body_velocities(robot.tree, X, robot.split_v(list(y.T)))
            speeds = [np.atleast_1d(np.sqrt(V.ang.dot(V.ang) + 0.0 * y.T[0])) for V in turning[1:]]
            good = np.logical_and.reduce([speed <= min(most, sys.float_info.max) for speed in speeds])
            for i, speed in enumerate(speeds, 1):
                k = int(np.where(good, speed, 0.0).argmax())
                if good[k] and speed[k] > found[0]:
                    found = (float(speed[k]), first + k, i)
    return found


def default_step(robot: Robot, falls: bool) -> float:
    """Time step for a robot: 1 ms, halved as often as its links ask.

    Args:
        falls: whether the method is that of falls; for the others 1 ms is enough.

    Returns:
        the step [s].
    """
    rate = turning_rate(robot) if falls else 0.0
    return max(_halved(LONGEST, rate), SHORTEST) if SPIN / LONGEST < rate < math.inf else LONGEST


def turning_rate(robot: Robot) -> float:
    """The rate w at which a fall turns the links [rad/s]; of samples, the largest."""
    alone = _turning_rate(robot, {})
    if not SPIN / LONGEST < alone < math.inf:
        return alone
    dofs = [
        (i, k)
        for i in robot.tree.outward()
        if robot.tree.parent[i] or robot.base != "floating"
        for k in range(robot.tree.joint[i].kind.nv)  # type: ignore[union-attr]
    ]
    carried = effective_inertias(robot, dofs)
    return _turning_rate(robot, {at: CARRIED * x for at, x in zip(dofs, carried, strict=True)})


def _turning_rate(robot: Robot, least: dict[tuple[int, int], Any]) -> float:
    """The rate, with a least inertia [kg m^2] for (joint, dof of the joint)."""
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    reach: list[float] = [0.0] * (tree.n + 1)
    mass: Any = 0.0
    bent: Any = 0.0
    height: Any = 0.0
    for i in tree.outward():
        I, p = tree.I[i], tree.parent[i]
        reach[i] = reach[p] + math.hypot(*X[i].r) if p else 0.0  # type: ignore[union-attr]
        some = np.where(np.asarray(I.m) > 0.0, I.m, 1.0)
        moment = np.sqrt(sum(np.square(x) for x in I.h))
        height = np.maximum(height, reach[i] + moment / some)
        mass = mass + I.m
        S = tree.joint[i].S  # type: ignore[union-attr]
        if p == 0 and robot.base == "floating":
            continue
        sharpest: Any = 0.0
        for k, (axis, momentum) in enumerate(zip(S.columns, S.of(I), strict=True)):
            if not any(axis.ang):
                continue
            inertia = np.maximum(axis.dot(momentum), least.get((i, k), 0.0))
            push = np.sqrt(sum(np.square(x) for x in momentum.lin))
            sharpest = np.maximum(
                sharpest, np.where(inertia > 0.0, push / np.where(inertia > 0.0, inertia, 1.0), 0.0)
            )
        bent = bent + I.m * sharpest**2
    g = math.hypot(*tree.gravity) or math.hypot(*GRAVITY)
    with np.errstate(all="ignore"):
        rate = np.sqrt(2.0 * g * height * bent / np.where(np.asarray(mass) > 0.0, mass, 1.0))
    return float(np.max(rate))


# ==== energies ====================================================================================
# Energies and momenta of states, and what the first step of a run is handed of them.
#
# The texts of the algorithms run here with NumPy arrays in place of scalars, many states at once. Nothing is
# compiled, because these figures are needed only once for each recorded state.

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


# ==== how steps are taken =========================================================================

ITERATED = 50
"""Steps of passive motion from which the loop inside the engine is faster than one call a step."""


def tally(program: Program, entries: np.ndarray) -> dict[str, Any]:
    """Figures for a run's summary, of the ledgers at its end (..., size); NaN in those that failed."""
    if not program.contact:
        return {}
    own = entries.reshape(-1, entries.shape[-1])[:, : program.sums]
    last = own[np.isfinite(own).all(axis=1)]
    first = motion.SIZE + program.given.entries
    steps, iterations, most, missed, _ = last[:, first : first + len(motion.OWN)].T
    found: dict[str, Any] = {}
    if program.accuracy is not None:
        rejected, shortest, longest, not_met = last[:, -len(motion.CONTROL) :].T
        found = {
            "accuracy": program.accuracy,
            "parts_taken": int(steps.sum()),
            "parts_rejected": int(rejected.sum()),
            "shortest_part": float(shortest[shortest > 0.0].min(initial=np.inf)),
            "longest_part": float(longest.max(initial=0.0)),
            "parts_not_met": int(not_met.sum()),
        }
        if not found["parts_taken"]:
            found["shortest_part"] = 0.0
    return found | {
        "contact_iterations_mean": float(iterations.sum() / max(1.0, steps.sum())),
        "contact_iterations_most": int(most.max(initial=0.0)),
        "residual_largest": float(last[:, motion.AT["residual"]].max(initial=0.0)),
        "steps_not_settled": int(missed.sum()),
    }


class ContactStepper:
    """Steps of one state by the kernel of contact/step.py.

    Attributes:
        state: all arrays of the step, the state among them.
    """

    def __init__(self, program: Program, dt: float, alone: bool = False) -> None:
        """At rest in the neutral configuration.

        Args:
            dt: time step [s].
            alone: whether its arrays are its own for good; else others get them when it is gone.
        """
        self.program, self.dt = program, dt
        self.state = self._made() if alone else self._spare()
        self._given: Any = None

    def _made(self) -> ContactState:
        program, dt = self.program, self.dt
        options: dict[str, Any] = {"reproducible": program.reproducible, "dtype": program.dtype}
        options["springs"] = program.springs.functions
        return ContactState(program.robot, dt, step_numbers(program, dt), **options)

    def _spare(self) -> ContactState:
        """Arrays of such steps: made, or left by others who do not need them any more."""
        program = self.program
        spare: Spare[ContactState] = program.robot.derived.get("spare states of contact", lambda: Spare(4))
        about = program.joints, program.ground, program.between, program.given, program.given_numbers
        if program.springs.functions:  # of the user: another one may have the same name
            return self._made()
        more = program.measured, program.accuracy, program.reproducible, engine(), self.dt, program.springs
        try:
            key = sha256(pickle.dumps((*about, *more, program.dtype))).digest()
        except (pickle.PicklingError, AttributeError, TypeError):  # measures that are functions of the user
            return self._made()
        found = spare.take(key, self._made)
        found.notes()
        found.arrays["watched"][0] = 0
        weakref.finalize(self, spare.give, key, found)
        return found

    @property
    def q(self) -> np.ndarray:
        """The configuration, in place."""
        return self.state.arrays["q"]

    @property
    def v(self) -> np.ndarray:
        """The velocity, in place."""
        return self.state.arrays["v"]

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        return self.state.refused

    @property
    def noting(self) -> bool:
        """Whether each step is noted."""
        return bool(self.state.arrays["watched"][0] == 2)

    @noting.setter
    def noting(self, on: bool) -> None:
        self.state.arrays["watched"][0] = 2 if on else 0

    def begin(
        self,
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
        entries: np.ndarray | None = None,
    ) -> None:
        """Set out from a state; from one on the way with what memory() and entries() gave there."""
        x = self.state.arrays
        x["q"][:], x["v"][:] = q, v
        if memory is None:
            self.state.forget()
        else:
            self.state.unpack(memory)
        self._enter(np.zeros(self.program.entries) if entries is None else entries)

    def give(self, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """Joint forces of the steps to come, and inputs from actuators and pushes."""
        x, layout, rest = self.state.arrays, self.program.given, iter(given)
        x["joint_forces"][:] = tau
        if layout.drives:
            for name, numbers in commands(x, next(rest), tau).items():
                x[name][...] = numbers
        if layout.places:
            x["push_wrench"][:] = np.reshape(next(rest), (-1, 6))
        if layout.motions:
            x["motion_values"][:] = np.reshape(next(rest), (-1, 3))

    def take(self, steps: int) -> int:
        """So many steps: how many left a state that is finite. None at all compile the step."""
        return self.state.take(steps)

    @property
    def taken(self) -> int | None:
        """Steps that the state has taken, by its own accounts; None where they are no longer finite."""
        taken = float(steps_taken(self.state.arrays))
        return int(taken) if math.isfinite(taken) else None

    def entries(self) -> np.ndarray:
        """The ledger of the program."""
        return entries_of(self.program, self.state.arrays).astype(float, copy=False)

    def impulse(self) -> np.ndarray:
        """That of the ground so far, (6,) as in the ledger."""
        return self.state.arrays["ledger"][motion.IMPULSE].astype(float)

    def memory(self) -> np.ndarray:
        """What the next step is handed besides q and v."""
        return self.state.packed()

    def notes(self) -> dict[str, np.ndarray]:
        """What was noted since the last call, by name (contact/monitor.py)."""
        return {name.removeprefix("noted_"): x for name, x in self.state.notes().items()}

    def last(self) -> dict[str, np.ndarray] | None:
        """The notes of the last step alone, which stay; None where it was not noted."""
        x = self.state.arrays
        end = int(x["noted"][0])
        if not end:
            return None
        first, share = end - 1, float(x["noted_share"][end - 1])
        while share < 1.0 and first:  # a step in parts
            first -= 1
            share += float(x["noted_share"][first])
        before = int(x["noted_end"][first - 1]) if first else 0
        found = {
            n.removeprefix("noted_"): a[first:end].copy() for n, a in x.items() if n.startswith("noted_")
        }
        found["end"] -= before
        found["contact"] = x["noted_contact"][before : x["noted_end"][end - 1]].copy()
        return found

    def forget_notes(self) -> None:
        """None are there any more."""
        self.state.arrays["noted"][:] = 0

    @property
    def noted_bytes(self) -> int:
        """Memory of what is noted; room that nothing was written to takes none."""
        x = self.state.arrays
        counts = dict(zip(NOTED_AT_START, x["noted"].tolist(), strict=True))
        return sum(x[a.name].strides[0] * counts[str(a.shape[0])] for a in NOTES[1:])

    def _enter(self, entries: np.ndarray) -> None:
        """Own accounts from those of the program."""
        x, more = self.state.arrays, self.program.given
        sums = x["ledger"]
        sums[: motion.SIZE] = entries[: motion.SIZE]
        first = motion.SIZE + more.entries
        sums[motion.SIZE :] = entries[first : first + len(motion.OWN)]
        if "control" in x:
            x["control"][:] = entries[first + len(motion.OWN) : self.program.sums]
        at = motion.SIZE
        if more.outside:
            x["outside_impulse"][:] = entries[at : at + 6]
            at += 6
        x["motor_sums"][:] = entries[at : at + x["motor_sums"].size].reshape(-1, 2)
        x["measured"][:] = entries[self.program.sums :]


class PassiveStepper:
    """Steps of one state by the kernel of passive motion.

    Attributes:
        q, v: the state, in place.
        noting: whether each step is noted.
        taken: steps since it was made.
    """

    def __init__(self, program: Program, dt: float, alone: bool = False) -> None:
        """See :class:`ContactStepper`."""
        self.program, self.dt, self.kernel = program, dt, program.kernel()
        robot, self.noting, self.taken = program.robot, False, 0
        self.q, self.v = robot.neutral(), np.zeros(robot.nv)
        self._parameters = program.parameters(dt)
        self._tau, self._given = np.zeros(robot.nv), [np.zeros(size) for _, size in program.given.inputs]
        self._noted: list[tuple[np.ndarray, ...]] = []
        self.begin(self.q, self.v)

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        return self.kernel.refused

    def begin(
        self,
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
        entries: np.ndarray | None = None,
    ) -> None:
        """See :class:`ContactStepper`."""
        self.q[:], self.v[:] = q, v
        self._carried = first_carried(self.program, q[None], v[None])[0] if memory is None else memory
        self._entries = np.zeros(self.program.entries) if entries is None else entries

    def give(self, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """See :class:`ContactStepper`."""
        self._tau, self._given = tau, list(given)

    def take(self, steps: int) -> int:
        """See :class:`ContactStepper`."""
        if steps < ITERATED or self.noting:
            return self._one_by_one(steps)
        given = self._tau, self._entries, self._carried, self._parameters, *self._given
        done, state = self.kernel.iterate(self.q, self.v, *given, steps=steps)
        if done:
            self._go_on(state, done)
        return done if self._finite else done - 1

    def _one_by_one(self, steps: int) -> int:
        if not steps:
            with contextlib.suppress(InvalidValue, ArithmeticError):
                self._next()
        for k in range(steps):
            if self.noting:
                self._noted.append((self.q.copy(), self.v.copy(), self._carried))
            try:
                self._go_on(self._next())
            except (InvalidValue, ArithmeticError):  # not finite; plain floats overflow, divide by 0
                return max(0, k - 1)
        return steps if not steps or self._finite else steps - 1

    def _next(self) -> Any:
        return self.kernel(
            self.q, self.v, self._tau, self._entries, self._carried, self._parameters, *self._given
        )

    def _go_on(self, state: Any, steps: int = 1) -> None:
        self.q[:], self.v[:], self._entries, self._carried = state
        self.taken += steps

    @property
    def _finite(self) -> bool:
        squares = (x.dot(x) for x in (self.q, self.v, self._entries, self._carried))
        if math.isfinite(sum(squares)):  # almost always, and quicker
            return True
        return all(bool(np.isfinite(x).all()) for x in (self.q, self.v, self._entries, self._carried))

    def entries(self) -> np.ndarray:
        """The ledger of the program."""
        return self._entries

    def impulse(self) -> np.ndarray:
        """That of the ground: none, (6,)."""
        return self._entries[motion.IMPULSE]

    def memory(self) -> np.ndarray:
        """See :class:`ContactStepper`."""
        return self._carried

    def notes(self) -> dict[str, np.ndarray]:
        """What steps set out from since the last call: q, v, carried."""
        rows, self._noted = self._noted, []
        parts = zip(*rows, strict=True) if rows else (x[None][:0] for x in (self.q, self.v, self.memory()))
        return dict(zip(("q", "v", "carried"), map(np.array, parts), strict=True))

    def last(self) -> dict[str, np.ndarray] | None:
        """See :class:`ContactStepper`."""
        if not self._noted:
            return None
        return {name: x[None] for name, x in zip(("q", "v", "carried"), self._noted[-1], strict=True)}

    def forget_notes(self) -> None:
        """See :class:`ContactStepper`."""
        self._noted = []

    @property
    def noted_bytes(self) -> int:
        """Memory of what is noted."""
        return len(self._noted) * sum(x.nbytes for x in self._noted[0]) if self._noted else 0


Stepper = ContactStepper | PassiveStepper


def stepper(program: Program, dt: float, alone: bool = False) -> Stepper:
    """What takes the steps of a program: see :class:`ContactStepper`."""
    return (ContactStepper if program.contact else PassiveStepper)(program, dt, alone)
