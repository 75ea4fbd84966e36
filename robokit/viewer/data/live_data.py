"""Physics in the page: the step of a run as WebAssembly."""

from __future__ import annotations

import base64
import functools
import gzip
import math

import numpy as np

from robokit.conventions import GRAVITY
from robokit.engine import Kernel
from robokit.errors import RobokitError
from robokit.sim.motion import ledger
from robokit.sim.motion.momentum_projection import hangs_on_nothing
from robokit.sim.record import Trajectory
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.page_step import PageStep, page_step
from robokit.viewer.data.packing import base64_text
from robokit.viewer.payload_keys import LiveData, ModuleData, SlotData

STRETCH = 0.5
"""Stretch of the hand's spring at which it holds the robot's weight [m]."""

DAMPING = 0.3
"""Of the robot on that spring, over what keeps it from swinging."""


def live_data(trajectory: Trajectory, worker: str) -> LiveData:
    """What a page needs to go on with a run.

    Args:
        trajectory: the run.
        worker: the text of the page's Worker.

    Raises:
        RobokitError: the trajectory was loaded from a file, or its step cannot become WebAssembly.
    """
    program = _program(trajectory)
    return live_data_of(program, trajectory.summary["dt"], trajectory.q[0], trajectory.v[0], worker)


def live_data_of(
    program: Program,
    dt: float,
    q: np.ndarray,
    v: np.ndarray,
    worker: str,
    reproducible: bool | None = None,
    parameters: np.ndarray | None = None,
    pushes: bool = False,
) -> LiveData:
    """What a page needs to take the step of a program.

    Args:
        program: the step.
        dt: its time step [s].
        q, v: the start, (nq,) and (nv,).
        worker: the text of the page's Worker.
        reproducible: as of :func:`robokit.sim.stepping.page_step.page_step`.
        parameters: of the step, (P,), where those of the program are of several rows.
        pushes: as of :func:`robokit.sim.stepping.page_step.page_step`.

    Raises:
        RobokitError: the step cannot become WebAssembly.
    """
    steps = page_step(program, reproducible, pushes)
    robot = steps.program.robot
    given = steps.program.parameters(dt) if parameters is None else parameters
    masses = [float(m) for m in robot.inertial_parameters[..., 1:, 0].reshape(-1, robot.nbodies)[0]]
    mass = float(sum(masses))
    stiffness = mass * abs(GRAVITY[2]) / STRETCH
    return LiveData(
        worker="'use strict';\n" + worker,
        step=module_data(steps.step),
        look=module_data(steps.look),
        q=base64_text(q.astype("<f8")),
        v=base64_text(v.astype("<f8")),
        parameters=base64_text(given.astype("<f8")),
        tables=[(name, base64_text(table.astype("<f8"))) for name, table in steps.tables],
        friction=steps.friction,
        gravity=robot.tree.gravity,
        dt=float(dt),
        mass=mass,
        masses=masses,
        contacts=steps.bodies,
        momentum=steps.program.layout.momentum,
        energy=steps.program.layout.energy,
        floats=hangs_on_nothing(robot.tree),
        ledger=list(ledger.SLOTS),
        stiffness=stiffness,
        damping=2.0 * math.sqrt(stiffness * mass) * DAMPING,
    )


def live_modules(trajectory: Trajectory) -> tuple[PageStep, list[ModuleData]]:
    """The kernels of a page for a run, and what the page gets of them: the step and the look.

    Raises:
        RobokitError: the trajectory was loaded from a file, or its step cannot become WebAssembly.
    """
    steps = page_step(_program(trajectory))
    return steps, [module_data(steps.step), module_data(steps.look)]


def _program(trajectory: Trajectory) -> Program:
    if trajectory.program is None:
        raise RobokitError(
            "live: the trajectory was loaded from a file, which does not hold its step; "
            "simulate it again, or write the page with live=False"
        )
    return trajectory.program


@functools.lru_cache(maxsize=4)
def module_data(kernel: Kernel) -> ModuleData:
    """A kernel as the page gets it.

    Raises:
        RobokitError: it cannot become WebAssembly.
    """
    from robokit.engine.backend.llvm import CompilerMissing
    from robokit.engine.backend.wasm import WASM, unpacked
    from robokit.engine.trace.graph import TraceTooLarge

    try:
        module = unpacked(kernel.compiled(WASM))
    except (CompilerMissing, TraceTooLarge) as error:
        raise RobokitError(f"live: {error}; write the page with live=False") from error
    packed = gzip.compress(module.content, 9, mtime=0)
    slots = [SlotData(name, at, count) for name, at, count in (*module.inputs, *module.outputs)]
    return ModuleData(base64.b64encode(packed).decode("ascii"), len(module.content), slots)
