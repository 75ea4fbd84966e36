"""The driven joints of a run, for the sliders of its live page: what they want, how that reaches the step."""

from __future__ import annotations

import math

import numpy as np

from robokit.conventions import GRAVITY
from robokit.model.parts import Joint
from robokit.sim.joints.drives import Drive
from robokit.sim.record import Trajectory
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.step_numbers import size_of
from robokit.viewer.data.packing import base64_text, packed
from robokit.viewer.payload_keys import MotorData, MotorsData

MOST_CHANGES = 400
"""Times at which targets are kept, where they change more often: a screen shows no more."""

UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "force": ("N m", "N")}
"""Of targets, of joints that turn and that slide."""


def motors_of(trajectory: Trajectory, program: Program) -> MotorsData | None:
    """The driven joints of a run; None where there are none.

    Args:
        trajectory: the run.
        program: its step.
    """
    drives, inputs = program.given.drives, trajectory.inputs
    if not drives or inputs is None or not inputs.start:
        return None
    kinds, numbers = [], _numbers(program)
    for drive, own in zip(drives, numbers, strict=True):
        kinds.append("force" if not drive.servo else "position" if own["kp"] > 0.0 else "velocity")
    # Without a constant law what is given stands for a target at rest.
    own_gains = np.array([_gain(kind, own) for kind, own in zip(kinds, numbers, strict=True)])
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
    return MotorsData(
        list=motors,
        t=packed(trajectory.summary["dt"] * start[some]),
        targets=packed(targets),
        commands=base64_text(given[0].astype("<f8")),
        gains=_places_of_gains(program),
    )


def _numbers(program: Program) -> list[dict[str, float]]:
    """The numbers of each driven joint by their names."""
    rest = iter(program.given_numbers)
    return [
        {name: float(np.ravel(next(rest))[0]) for name in drive.parameters} for drive in program.given.drives
    ]


def _places_of_gains(program: Program) -> list[int]:
    """Where the gains are among the parameters of the step: behind dt, drive by drive."""
    names = [name for drive in program.given.drives for name in drive.parameters]
    first = 1 + (len(program.joints.gains) if program.open else 0)
    return [first + k for k, name in enumerate(names) if name in ("kp", "b", "lag")]


def _gain(kind: str, own: dict[str, float]) -> float:
    """What a target of 1 gives."""
    if kind == "force":
        return 1.0
    return own["kp"] if kind == "position" else own["b"] + own["lag"]


def _range(
    program: Program, joint: Joint, drive: Drive, kind: str, own: dict[str, float], targets: np.ndarray
) -> tuple[float, float]:
    """From where to where a target may be moved: the joint's limits, or else what suits the robot."""
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
