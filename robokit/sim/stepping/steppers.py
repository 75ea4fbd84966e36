"""One state through time: the steps of contact/step.py, or those of passive motion, as loops take them.

Both kinds have a state, are given inputs, and take steps in place. Of what they note of each step events,
sensors and contacts of a run are made: no step is taken twice.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import weakref
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from robokit.caching import Spare
from robokit.contact.monitor import NOTES
from robokit.engine.maker import engine
from robokit.errors import InvalidValue
from robokit.sim import motion
from robokit.sim.contact_state import ContactState, steps_taken
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.contact_rows import commands, entries_of
from robokit.sim.stepping.energies import first_carried
from robokit.sim.stepping.step_numbers import step_numbers

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
        """Memory of what is noted."""
        return sum(self.state.arrays[a.name].nbytes for a in NOTES)

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
