"""Physics in the page: the step of a run as WebAssembly."""

from __future__ import annotations

import base64
import functools
import gzip
import math
import zlib
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from robokit.contact import accounts
from robokit.conventions import GRAVITY
from robokit.engine import Kernel
from robokit.engine.signature import ArrayOf
from robokit.errors import RobokitError
from robokit.model.parts import Joint
from robokit.sim import motion
from robokit.sim.joint_forces import Drive
from robokit.sim.motion import hangs_on_nothing
from robokit.sim.page_step import ARRAYS, LOOK, contact_page, page_module, page_step
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import default_step, size_of
from robokit.sim.trajectory import Trajectory
from robokit.viewer.motion_data import base64_text, packed
from robokit.viewer.payload_keys import LiveData, ModuleData, MotorData, MotorsData, SlotData, StepperData

STRETCH = 0.5  # stretch of the hand's spring at which it holds the robot's weight [m]
DAMPING = 0.3  # damping ratio of the robot on that spring


def live_data(trajectory: Trajectory, worker: str) -> LiveData:
    """What a page, with this text of its Worker, needs to go on with a run; errors of :func:`check_live`."""
    program = _program(trajectory)
    # Its steps are not divided to an accuracy.
    dt = trajectory.summary["dt"] if program.accuracy is None else default_step(program.robot, True)
    made = live_data_of(program, dt, trajectory.q[0], trajectory.v[0], worker)
    return replace(made, motors=motors_of(trajectory, program))


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
    """What a page needs to take the step of a program; RobokitError if it cannot become WebAssembly.

    Args:
        program, dt: the step, and its time step [s].
        q, v: the start, (nq,) and (nv,).
        worker: the text of the page's Worker.
        reproducible, pushes: as in :func:`robokit.sim.page_step.page_step`.
        parameters: of the step, (P,), where those of the program are of several rows.
    """
    robot = program.robot
    masses = [float(m) for m in robot.inertial_parameters[..., 1:, 0].reshape(-1, robot.nbodies)[0]]
    mass = float(sum(masses))
    stiffness = mass * abs(GRAVITY[2]) / STRETCH
    if program.contact:
        step = _contact(program, dt, pushes)
    else:
        steps = page_step(program, reproducible, pushes)
        given = steps.program.parameters(dt) if parameters is None else parameters
        step = _none() | {
            "step": module_data(steps.step),
            "look": module_data(steps.look),
            "parameters": base64_text(given.astype("<f8")),
            "momentum": steps.program.layout.momentum,
            "energy": steps.program.layout.energy,
            "ledger": list(motion.SLOTS),
        }
    return LiveData(
        worker="'use strict';\n" + worker,
        **step,
        q=base64_text(q.astype("<f8")),
        v=base64_text(v.astype("<f8")),
        gravity=robot.tree.gravity,
        dt=float(dt),
        mass=mass,
        masses=masses,
        floats=hangs_on_nothing(robot.tree),
        stiffness=stiffness,
        damping=2.0 * math.sqrt(stiffness * mass) * DAMPING,
    )


def _contact(program: Program, dt: float, pushes: bool) -> dict[str, Any]:
    """The step of the integrator "contact"."""
    page, module = contact_page(program, dt, pushes), page_module()
    x = page.numbers
    given = [a.name for a in ARRAYS if a.name in x and a.name != "face_normal"]
    told = {
        name: x[name].reshape(-1).view(np.uint8).reshape(-1, x[name].itemsize).T[: _width(x[name])]
        for name in given
    }
    tables = [list(table) for table in told.values()]
    content = b"".join(row.tobytes() for rows in zip_longest(*tables) for row in rows if row is not None)
    stepper = StepperData(
        module=base64.b64encode(module).decode("ascii"),
        bytes=len(gzip.decompress(module)),
        sizes=list(page.sizes.items()),
        arrays=",".join(_told(a, len(told.get(a.name, ())), [*page.sizes]) for a in ARRAYS),
        steps=len(ARRAYS) - len(LOOK),
        numbers=base64.b64encode(zlib.compress(content, 9)).decode("ascii"),
    )
    grips = [float(min(page.grips)), float(max(page.grips))] if len(page.grips) else []
    return _none() | {"stepper": stepper, "grips": grips, "ledger": list(accounts.ENTRIES)}


def _told(a: ArrayOf, width: int, sizes: list[str]) -> str:
    """What ``StepperData.arrays`` says of an array, of whose numbers so many bytes are given."""
    extents = (f"@{sizes.index(size)}" if isinstance(size, str) else size for size in a.shape)
    marks = str(width or "") + "#" * (a.kind == "integer") + "*" * (a.role == "inout")
    return marks + " ".join(map(str, (a.name, *extents)))


def _width(x: np.ndarray) -> int:
    """Lowest bytes that hold the numbers: fewer where all are whole, small and at least 0."""
    small = x.dtype.kind == "i" and x.min() >= 0
    return max(1, (int(x.max()).bit_length() + 7) // 8) if small else x.itemsize


def _none() -> dict[str, Any]:
    """Empty values of the arguments that only one of the two kinds of step has."""
    return {
        "stepper": None, "step": None, "look": None, "parameters": "", "own": [], "momentum": False,
        "energy": False, "grips": [],
    }  # fmt: skip


def check_live(trajectory: Trajectory) -> None:
    """See that the page can take the steps of a run.

    Raises RobokitError: the trajectory was loaded from a file, its step cannot become WebAssembly, or
    something acts that no page knows.
    """
    program = _program(trajectory)
    if not program.contact:
        steps = page_step(program)
        module_data(steps.step), module_data(steps.look)


def _program(trajectory: Trajectory) -> Program:
    if trajectory.program is None:
        raise RobokitError(
            "live: the trajectory was loaded from a file, which does not hold its step; "
            "simulate it again, or write the page with live=False"
        )
    program = trajectory.program
    if program.springs.functions or program.given.motions:
        what = "springs whose force is a function" if program.springs.functions else "prescribed motions"
        raise RobokitError(f"live: the page's step does not support {what}; write the page with live=False")
    return program


@functools.lru_cache(maxsize=4)
def module_data(kernel: Kernel) -> ModuleData:
    """A kernel as the page gets it; RobokitError if it cannot become WebAssembly."""
    from robokit.engine.backend.llvm import CompilerMissing
    from robokit.engine.loops.wasm import WASM, unpacked
    from robokit.engine.trace.graph import TraceTooLarge

    try:
        module = unpacked(kernel.compiled(WASM))
    except (CompilerMissing, TraceTooLarge) as error:
        raise RobokitError(f"live: {error}; write the page with live=False") from error
    packed = gzip.compress(module.content, 9, mtime=0)
    slots = [SlotData(name, at, count) for name, at, count in (*module.inputs, *module.outputs)]
    return ModuleData(base64.b64encode(packed).decode("ascii"), len(module.content), slots)


# ---- driven joints and their targets -------------------------------------------------------------

MOST_CHANGES = 400  # times at which targets are kept, where they change more often: a screen shows no more

UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "force": ("N m", "N")}
"""Range of targets of revolute and of prismatic joints without limits."""


def motors_of(trajectory: Trajectory, program: Program) -> MotorsData | None:
    """The driven joints of a run by its step's program; None where there are none."""
    drives, inputs = program.given.drives, trajectory.inputs
    if not drives or inputs is None or not inputs.start:
        return None
    # The numbers of each driven joint by their names.
    values = iter(program.given_numbers)
    numbers = [
        {name: float(np.ravel(next(values))[0]) for name in drive.parameters}
        for drive in program.given.drives
    ]
    kinds = []
    for drive, own in zip(drives, numbers, strict=True):
        kinds.append("force" if not drive.servo else "position" if own["kp"] > 0.0 else "velocity")
    # Without a constant law what is given stands for a target at rest.
    own_gains = np.array(
        [
            1.0 if kind == "force" else own["kp"] if kind == "position" else own["b"] + own["lag"]
            for kind, own in zip(kinds, numbers, strict=True)
        ]
    )
    none = np.zeros(len(drives))
    ahead, gain, limit, rest = inputs.law or (none, own_gains, none + np.inf, none)
    gain = np.where(gain > 0.0, gain, own_gains)
    start, given = np.array(inputs.start), np.array([each[0] for each in inputs.given])
    some = np.unique(np.linspace(0, len(start) - 1, min(len(start), MOST_CHANGES)).round().astype(int))
    targets = (given[some] - ahead - rest) / np.where(gain > 0.0, gain, 1.0)
    joints = {joint.body: joint for joint in program.robot.joints}
    motors = []
    for k, (drive, kind) in enumerate(zip(drives, kinds, strict=True)):
        joint = joints[drive.body]
        low, high = _range(program, joint, drive, kind, numbers[k], targets[:, k])
        most = float(limit[k]) if math.isfinite(limit[k]) else None
        unit = UNITS[kind][joint.kind == "prismatic"]
        bias = float(ahead[k] + rest[k])
        motors.append(MotorData(joint.name, kind, unit, low, high, float(gain[k]), bias, most))
    # The gains stand among the parameters of the step behind dt, drive by drive.
    names = [name for drive in program.given.drives for name in drive.parameters]
    first = 1 + (len(program.joints.gains) if program.open else 0)
    return MotorsData(
        list=motors,
        t=packed(trajectory.summary["dt"] * start[some]),
        targets=packed(targets),
        commands=base64_text(given[0].astype("<f8")),
        gains=[first + k for k, name in enumerate(names) if name in ("kp", "b", "lag")],
    )


def _range(
    program: Program, joint: Joint, drive: Drive, kind: str, own: dict[str, float], targets: np.ndarray
) -> tuple[float, float]:
    """Range in which a target may be moved: the joint's limits, or else a usual range of the robot."""
    robot, slides = program.robot, joint.kind == "prismatic"
    size, weight = size_of(robot) or 1.0, robot.total_mass * abs(GRAVITY[2])
    if kind == "position":
        reach = size if slides else math.pi
        low, high = joint.lower, joint.upper
    else:
        if kind == "velocity":
            known, usual = own.get("speed", joint.velocity), size if slides else 2.0 * math.pi
        else:
            known, usual = own.get("effort", joint.effort), weight if slides else weight * size
        reach = known if 0.0 < known < 1e29 else usual
        low, high = -reach, reach
    low = low if math.isfinite(low) else -reach
    high = high if math.isfinite(high) else reach
    return float(min(low, targets.min())), float(max(high, targets.max()))
