"""Steps by the kernel of contact/step.py, as the loops over steps of runs and rollouts take them."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator, Sequence
from copy import copy
from hashlib import sha256
from typing import Any

import numpy as np

from robokit.contact.step_control import TICKS
from robokit.derived import Spare
from robokit.engine import Kernel
from robokit.engine.maker import engine
from robokit.errors import InvalidValue
from robokit.sim.contact_state import ContactState
from robokit.sim.motion import ledger
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_rows import ContactRunner, commands, entries_of
from robokit.sim.stepping.step_numbers import step_numbers


def stepper(program: Program) -> Kernel | ContactSteps:
    """What takes the steps of a program: its kernel, or that of contact/step.py."""
    return ContactSteps(program) if program.contact else program.kernel()


def tally(program: Program, entries: np.ndarray) -> dict[str, Any]:
    """Figures for a run's summary, of the ledgers at its end (..., size); NaN in those that failed."""
    if not program.contact:
        return {}
    own = entries.reshape(-1, entries.shape[-1])[:, : program.sums]
    last = own[np.isfinite(own).all(axis=1)]
    first = ledger.SIZE + program.given.entries
    steps, iterations, most, missed = last[:, first : first + len(ledger.OWN)].T
    found: dict[str, Any] = {}
    if program.accuracy is not None:
        rejected, shortest, longest, not_met = last[:, -len(ledger.CONTROL) :].T
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
        "residual_largest": float(last[:, ledger.AT["residual"]].max(initial=0.0)),
        "steps_not_settled": int(missed.sum()),
    }


class ContactSteps:
    """The steps of a program, one state at a time."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._simulations: dict[float, ContactState] = {}
        self._in_parts: dict[float, ContactState] = {}
        self._last: Any = None
        self._entries: Any = None

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        found = [each.refused for each in self._simulations.values()]
        return next((why for why in found if why), None)

    def simulation(self, dt: float) -> ContactState:
        """The arrays of steps of dt."""
        if dt not in self._simulations:
            self._simulations[dt] = self._spare(self.program, dt)
        return self._simulations[dt]

    def _spare(self, program: Program, dt: float) -> ContactState:
        """Arrays of a program's steps: made, or left by others who do not need them any more."""
        spare: Spare[ContactState] = program.robot.derived.get("spare simulations", lambda: Spare(4))
        about = program.joints, program.ground, program.between, program.given, program.given_numbers
        more = program.measured, program.accuracy, program.reproducible, engine(), dt

        def make() -> ContactState:
            return ContactState(
                program.robot, dt, step_numbers(program, dt), reproducible=program.reproducible
            )

        try:
            key = sha256(pickle.dumps((*about, *more))).digest()
        except (pickle.PicklingError, AttributeError, TypeError):  # measures that are functions of the user
            return make()
        found = spare.take(key, make)
        found.arrays["watched"][0] = 0
        weakref.finalize(self, spare.give, key, found)
        return found

    def __call__(self, *arguments: Any) -> list[np.ndarray]:
        """The state after one step."""
        return self.iterate(*arguments, steps=1)[1]

    def iterate(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        entries: np.ndarray,
        carried: np.ndarray,
        parameters: np.ndarray,
        *given: np.ndarray,
        steps: int,
        told: bool = True,
    ) -> tuple[int, list[np.ndarray]]:
        """Steps with the same inputs: how many were good, and the state after them (q, v, ledger, carried).

        Where it is not ``told`` the last two are of no use but to go on with: they stand for what they are.

        Raises:
            InvalidValue: the state is not finite.
        """
        if carried is not self._last and not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise InvalidValue("the state is not finite")
        dt = float(np.ravel(parameters)[0])
        simulation = self.simulation(dt)
        x = simulation.arrays
        x["q"][:], x["v"][:] = q, v
        if carried is not self._last:  # else it is still there
            simulation.unpack(carried)
        if entries is not self._entries:
            self._enter(x, entries)
        self._give(x, tau, given)
        done = simulation.take(steps)
        self._entries, self._last = self.tell(dt) if told else (np.zeros(0), np.zeros(0))
        return done, [x["q"].copy(), x["v"].copy(), self._entries, self._last]

    def tell(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """The ledger, and what the next step is handed, after the last one of dt."""
        simulation = self.simulation(dt)
        return entries_of(self.program, simulation.arrays), simulation.packed()

    def parts(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        carried: np.ndarray,
        dt: float,
        *given: np.ndarray,
    ) -> Iterator[tuple[ContactState, float]]:
        """A step once more: after each of its parts the arrays that it left, and how long it was [s].

        Steps that are not divided are one part.
        """
        entries, parameters = np.zeros(self.program.entries), np.array([dt])
        self.iterate(q, v, tau, entries, carried, parameters, *given, steps=1)
        whole = self.simulation(dt)
        if self.program.accuracy is None:
            yield whole, dt
            return
        x, parts = self.in_parts(dt).arrays, whole.arrays["parts"]
        x["q"][:], x["v"][:] = q, v
        self.in_parts(dt).unpack(carried)
        self._give(x, tau, given)
        for n in np.repeat(parts[1 : 1 + parts[0]] // 2, 2).tolist():
            x["dt"][0] = dt * (n * (1.0 / TICKS))
            self.in_parts(dt).take(1)
            yield self.in_parts(dt), float(x["dt"][0])

    def in_parts(self, dt: float) -> ContactState:
        """The arrays in which parts of steps of dt are taken once more."""
        if dt not in self._in_parts:
            plain = copy(self.program)
            plain.accuracy = None
            made = self._spare(plain, dt)
            made.arrays["part"] = np.zeros(3, np.int32)  # which is handed on, and not used
            self._in_parts[dt] = made
        return self._in_parts[dt]

    def _give(self, x: dict[str, np.ndarray], tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        layout, rest = self.program.given, iter(given)
        x["joint_forces"][:] = tau
        if layout.drives:
            for name, numbers in commands(x, next(rest), tau).items():
                x[name][...] = numbers
        if layout.places:
            x["push_wrench"][:] = np.reshape(next(rest), (-1, 6))

    def _enter(self, x: dict[str, np.ndarray], entries: np.ndarray) -> None:
        """Own accounts from those of the program."""
        sums, more = x["ledger"], self.program.given
        sums[: ledger.SIZE] = entries[: ledger.SIZE]
        first = ledger.SIZE + more.entries
        sums[ledger.SIZE :] = entries[first : first + len(ledger.OWN)]
        if "control" in x:
            x["control"][:] = entries[first + len(ledger.OWN) : self.program.sums]
        at = ledger.SIZE
        if more.outside:
            x["outside_impulse"][:] = entries[at : at + 6]
            at += 6
        x["motor_sums"][:] = entries[at : at + x["motor_sums"].size].reshape(-1, 2)
        x["measured"][:] = entries[self.program.sums :]

    def rollout_runner(self) -> ContactRunner:
        """What takes many rows through many steps."""
        return ContactRunner(self.program, self.simulation)
