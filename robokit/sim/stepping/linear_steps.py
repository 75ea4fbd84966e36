"""A step of the integrator "newton" and its derivatives, one state after the other."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from robokit.contact.conservation import NOTHING
from robokit.contact.step_derivatives import derivatives_kernel
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.memory import address
from robokit.sim.simulation import Simulation
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.step_numbers import step_numbers


class LinearSteps:
    """First steps of a program from given states, and how their ends change with these.

    Attributes:
        simulation: the arrays of the step.
    """

    def __init__(self, program: Program, dt: float, engine: str | None = None) -> None:
        """The arrays.

        Args:
            program: the step.
            dt: time step [s].
            engine: "python" for no machine code.
        """
        self.simulation = Simulation(program.robot, dt, step_numbers(program, dt), engine=engine)
        self.kernel = derivatives_kernel()
        self._call: Any = None
        self._of: Any = None

    def __call__(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after a step and its derivatives by q, v and tau in tangent spaces, (2 nv, 3 nv).

        Numbers are NaN where the step has no finite end. The derivatives are written over by the next call.
        """
        x, nv = self.simulation.arrays, self.simulation.robot.nv
        if not self._step(q, v, tau):
            return np.full(len(q), math.nan), np.full(nv, math.nan), np.full((2 * nv, 3 * nv), math.nan)
        end = x["q"].copy(), x["v"].copy()
        keeps = x["keeps"].copy()
        x["keeps"][:] = NOTHING - 1  # it stops after the kick
        self._step(q, v, tau)
        x["keeps"][:] = keeps
        return *end, self._derivatives()

    def _step(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> bool:
        """One step, the first from there; whether its end is finite."""
        x = self.simulation.arrays
        self.simulation.forget()
        x["q"][:], x["v"][:] = q, v
        x["joint_forces"][:] = tau
        return self.simulation.take(1) == 1

    def _derivatives(self) -> np.ndarray:
        nv = self.simulation.robot.nv
        if self._of is not self.simulation.work:
            self._of, self._call = self.simulation.work, self._made()
        found: np.ndarray = self._call().reshape(2 * nv, 3 * nv)
        return found

    def _made(self) -> Any:
        """A function that computes them from the arrays of the step as they are."""
        kernel, sizes = self.kernel, {n: self.simulation.sizes[n] for n in self.kernel.sizes}
        of_step = {**self.simulation.arrays, **self.simulation.work}
        found = {a.name: a.zeros(sizes) for a in kernel.arrays if a.role == "out"}
        given = [found[a.name] if a.role == "out" else of_step[a.name] for a in kernel.taken]
        try:
            if self.simulation.refused is not None or self.simulation.plain:
                raise NoMachineCode("")
            environment = kernel.environment(sizes, "float64")
        except NoMachineCode:

            def plain() -> np.ndarray:
                kernel.on_memory(*(sizes[n] for n in kernel.sizes), *given)
                return found["next"]

            return plain
        driver = kernel.driver("single", "float64")
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(driver)
        pointers = np.array([address(each) for each in given], np.uint64)
        where = address(pointers), address(environment)

        def run(_alive: Any = (pointers, environment, given)) -> np.ndarray:
            function(*where, 1)
            kernel.looked_at(environment)
            return found["next"]

        return run
