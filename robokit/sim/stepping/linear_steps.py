"""A step with contacts and its derivatives, one state after the other.

Derivatives are those of the problem that a step solves, so it is solved to TIGHT here. A run stops earlier:
its steps end as near to these as their tolerance is. What only moves freely ends as in a run, bit for bit.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from robokit.contact.conservation import NOTHING
from robokit.contact.fields import LINE, MOTOR, STEP_DERIVATIVES
from robokit.contact.step_derivatives import derivatives_kernel
from robokit.contact.step_pullback import pullback_kernel
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.kernel import LoopKernel
from robokit.sim.contact_state import ContactState
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.step_numbers import step_numbers

TIGHT = 1e-13
"""Of the residual, over the impulses of the step: differences over 1e-7 then see six digits."""


class LinearSteps:
    """First steps of a program from given states, and how their ends change with these.

    Attributes:
        robot: the robot.
        simulation: the arrays of the step.
        found: of the last pullback, what parameters are worth (STEP_PULLBACK of contact/fields.py).
        wanted: what motors are given besides joint forces, (n_motors,) [N m | N]; None leaves their command.
    """

    def __init__(self, program: Program, dt: float, engine: str | None = None) -> None:
        """The arrays.

        Args:
            dt: time step [s].
            engine: "python" for no machine code.
        """
        self.robot = program.robot
        options = {"engine": engine, "springs": program.springs.functions}
        self.simulation = ContactState(program.robot, dt, step_numbers(program, dt), **options)
        self.simulation.arrays["orders"][:] = 0  # derivatives read the pattern by rows
        self.found: dict[str, np.ndarray] = {}
        self.wanted: np.ndarray | None = None
        self._calls: dict[str, Any] = {}
        self._end: dict[str, np.ndarray] = {}
        self._of: Any = None

    def __call__(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after a step and its derivatives by q, v and tau in tangent spaces, (2 nv, 3 nv).

        Numbers are NaN where the step has no finite end. The derivatives are written over by the next call.
        """
        nv = len(self.simulation.arrays["v"])
        closed = self._taken(q, v, tau)
        if closed is None:
            return np.full(len(q), math.nan), np.full(nv, math.nan), np.full((2 * nv, 3 * nv), math.nan)
        slopes = self._run(derivatives_kernel(), "next").reshape(2 * nv, 3 * nv)
        if self.wanted is not None:
            self._through_motors(slopes[:, 2 * nv :])
        return *(closed or self._end_of_drift()), slopes

    def end(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) after a step, without derivatives; NaN where it has no finite end."""
        x = self.simulation.arrays
        given = float(x["tolerance"][0])
        x["keeps"][:] = NOTHING
        for tolerance in (TIGHT, given):
            x["tolerance"][:] = tolerance
            if not self._step(q, v, tau):
                return np.full(len(q), math.nan), np.full(len(v), math.nan)
            if not self.simulation.work["solved"][2]:
                break
        x["tolerance"][:] = given
        return self.simulation.arrays["q"].copy(), self.simulation.arrays["v"].copy()

    def depth(self) -> float:
        """How deep something was in what does not move, in the step that was taken last [m]."""
        x = self.simulation.work
        found = slice(int(x["counts"][0]))
        depths = -x["contact_gap"][found][x["contact_bodies"][found, 0] == 0]
        return float(depths.max(initial=0.0))

    def _end_of_drift(self) -> tuple[np.ndarray, np.ndarray]:
        return self.found["q_next"].copy(), self.found["v_next"].copy()

    def _through_motors(self, by_tau: np.ndarray) -> None:
        """Joint forces of driven joints go through their motors: none is felt beyond the largest effort."""
        x = {**self.simulation.arrays, **self.simulation.work}
        rows = np.flatnonzero(x["r_kind"][: x["n_of"][1]] == MOTOR)
        j, gain, limit = x["r_row"][rows], x["r_gain"][rows], x["r_speed_R"][rows]
        u = gain * x["y"][j]
        free = (x["r_aim"][rows] - u) / x["r_R"][rows]
        g = np.clip(free, x["r_low"][rows], x["r_high"][rows])
        slower = x["r_speed"][rows] - np.where(g < 0.0, -u, u) < limit * np.abs(g)
        by_tau[:, j[slower | (np.abs(g) < np.abs(free))]] = 0.0

    def pullback(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, of_q: np.ndarray, of_v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after a step; how a number changes with q, v and tau, (3, nv), in reverse mode.

        Args:
            q, v, tau: the state and the joint forces.
            of_q, of_v: how it changes with the next q, in the tangent space, and with the next v; (nv,) each.
        """
        nv = len(self.simulation.arrays["v"])
        closed = self._taken(q, v, tau)
        if closed is None:
            self.found = {}
            return np.full(len(q), math.nan), np.full(nv, math.nan), np.full((3, nv), math.nan)
        found = self.pulled(of_q, of_v)
        return *(closed or self._end_of_drift()), found

    def pulled(self, of_q: np.ndarray, of_v: np.ndarray, again: bool = False) -> np.ndarray:
        """What q, v and tau are worth, (3, nv), after a step that :meth:`pullback` has taken.

        Args:
            of_q, of_v: what the next q and v are worth, (nv,) each.
            again: whether nothing but these has changed since the last call.
        """
        found = self._run(pullback_kernel(), "of_start", of_end=np.array([of_q, of_v]), again=int(again))
        if self.wanted is not None:
            x = self.simulation.arrays
            found[2, x["dof_row"][x["motor_dof"]]] = self.found["of_motor"]
        return found

    def _taken(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | tuple[()] | None:
        """Take a step that stops after its kick, which is in the arrays then.

        Its end where that closes loops, (); None where the kick is not finite.
        """
        x = self.simulation.arrays
        given = float(x["tolerance"][0])
        end: tuple[np.ndarray, np.ndarray] | tuple[()] = ()
        loops: dict[str, np.ndarray] = {}
        for tolerance in (TIGHT, given):
            x["tolerance"][:] = tolerance
            if self.simulation.sizes["n_loops"]:
                x["keeps"][:] = NOTHING
                if not self._step(q, v, tau):
                    break
                end, loops = (x["q"].copy(), x["v"].copy()), self._loops()
            x["keeps"][:] = NOTHING - 1
            if not self._step(q, v, tau) or not self.simulation.work["solved"][2]:
                break  # else the shift of a contact has no end: the step as a run takes it
        x["tolerance"][:] = given
        if self.simulation.sizes["n_loops"]:
            self._place_loops(loops)
        return end if np.isfinite(self.simulation.work["y"]).all() else None

    def _loops(self) -> dict[str, np.ndarray]:
        """The robot and the rows of its loops at the end of a step, if it has any."""
        if not self.simulation.sizes["n_loops"]:
            return {}
        x = self.simulation.work
        names = {"S": "end_S", "R": "end_R", "p": "end_p", "c_E": "end_E"}
        return {to: x[name].copy() for name, to in names.items()} | {
            "end_v": self.simulation.arrays["v"].copy()
        }

    def _place_loops(self, found: dict[str, np.ndarray]) -> None:
        """Where the kernels find them: rows in the places that they have in the kick."""
        sizes, x = self.simulation.sizes, self.simulation.work
        wanted = {a.name: a for a in STEP_DERIVATIVES if a.name.startswith("end_")}
        known = {name: each.shape for name, each in self._end.items()}
        if known != {name: tuple(a.at(sizes)) for name, a in wanted.items()}:
            self._end, self._calls = {name: a.zeros(sizes) for name, a in wanted.items()}, {}
        if not found:
            return
        rows = np.flatnonzero(x["c_kind"][: x["n_of"][0]] == LINE)
        for name, given in found.items():
            if name == "end_E":
                self._end[name][rows] = given[: len(rows)]
            else:
                self._end[name][...] = given

    def _step(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> bool:
        """One step, the first from there; whether its end is finite."""
        x = self.simulation.arrays
        self.simulation.forget()
        x["q"][:], x["v"][:] = q, v
        x["joint_forces"][:] = tau
        if self.wanted is not None:
            rows = x["dof_row"][x["motor_dof"]]
            x["motor_command"][:, 0] = self.wanted + tau[rows]
            x["joint_forces"][rows] = 0.0
        return self.simulation.take(1) == 1

    def _run(self, kernel: LoopKernel, wanted: str, **more: Any) -> np.ndarray:
        """An output of a kernel on the arrays of the step as they are, and on more."""
        if self._of is not self.simulation.work:
            self._of, self._calls = self.simulation.work, {}
        if kernel.name not in self._calls:
            self._calls[kernel.name] = self._made(kernel)
        run, own = self._calls[kernel.name]
        for name, given in more.items():
            own[name][...] = given
        run()
        self.found = own
        found: np.ndarray = own[wanted]
        return found

    def _made(self, kernel: LoopKernel) -> tuple[Any, dict[str, np.ndarray]]:
        """A function that runs a kernel, and the arrays that the step has not."""
        sizes = {n: self.simulation.sizes[n] for n in kernel.sizes}
        of_step = {**self.simulation.arrays, **self.simulation.work, **self._end}
        own = {a.name: a.zeros(sizes) for a in kernel.taken if a.name not in of_step}
        given = [(of_step | own)[a.name] for a in kernel.taken]
        try:
            if self.simulation.refused is not None or self.simulation.plain:
                raise NoMachineCode("")
            return kernel.single(sizes, given), own
        except NoMachineCode:
            return functools.partial(kernel.on_memory, *(sizes[n] for n in kernel.sizes), *given), own
