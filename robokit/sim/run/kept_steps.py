"""Steps that are differentiated, kept by their robot: a call with one state takes no time to set them up."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.caching import Recent
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.driving.actuators import PD, Actuator, actuators_of
from robokit.sim.driving.joint_values import with_rotors
from robokit.sim.driving.springs import springs_of
from robokit.sim.run.driven_joints import DrivenJoints
from robokit.sim.run.run_arguments import Setup, set_up
from robokit.sim.run.run_inputs import RunInputs
from robokit.sim.stepping.linear_steps import LinearSteps

KEPT = 4
"""Sets of arguments whose steps a robot keeps."""


class KeptSteps:
    """The step of a set of arguments.

    Attributes:
        setup: what the arguments make.
        robot: the robot with the rotors of its actuators.
        contact: whether the step has derivatives by the implicit function theorem.
        rows: whether inertias, or the ground, differ from row to row.
        springs: as they were given.
        inputs: of the actuators, at the neutral configuration; None without any.
    """

    def __init__(
        self, robot: Robot, arguments: dict[str, Any], engine: str | None, actuators: Sequence[Actuator]
    ) -> None:
        """Set them up.

        Args:
            robot: the robot.
            arguments: dt, ground, integrator, joint_damping, self_collision, springs as of ``simulate``.
            engine: "python" for no machine code.
            actuators: checked.

        Raises:
            as :func:`set_up`; ShapeError: actuators, and a step without contact.
        """
        self.robot, self._actuators, self._engine = with_rotors(robot, actuators), actuators, engine
        self.springs = arguments.get("springs")
        self._given = given = dict(arguments)  # alive, as their ids may be what tells them
        self.setup: Setup = set_up(
            self.robot, 0.0, given["dt"], given["ground"], given["integrator"], None, given["joint_damping"],
            many=True, self_collision=given["self_collision"],
            springs=springs_of(given.get("springs"), self.robot),
        )  # fmt: skip
        program = self.setup.program
        self.contact, ground = program.contact, program.ground
        self.rows = robot.samples is not None or (ground is not None and ground.rows is not None)
        self.inputs: RunInputs | None = None
        if actuators:
            if not self.contact or self.rows:
                raise ShapeError(
                    "actuators: expected a step with contact, of one robot and one ground; give a ground, or "
                    "integrator='contact'"
                )
            self.inputs = self._inputs(robot.neutral())
            program = replace(program, given=self.inputs.layout, given_numbers=self.inputs.numbers)
        self.program = program
        self._held = any(isinstance(a, PD) and a.target is None for a in actuators)
        self._free: deque[LinearSteps] = deque()

    def _inputs(self, q: np.ndarray) -> RunInputs:
        return RunInputs(self.robot, self._actuators, (), self.setup.dt, 1, q[None], 1, False)

    @contextlib.contextmanager
    def steps(self) -> Iterator[LinearSteps]:
        """Steps that nobody else works with meanwhile."""
        try:
            own = self._free.pop()
        except IndexError:
            own = LinearSteps(self.program, self.setup.dt, self._engine)
        yield own
        self._free.append(own)

    def wanted(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """What the actuators want of a step from a state, (n,) [N m | N]; None without any."""
        return None if self.inputs is None else self.driven(q).at(0, q, v)[0]

    def driven(self, q: np.ndarray) -> DrivenJoints:
        """The driven joints, whose targets may be the configuration at the start."""
        assert self.inputs is not None
        return (self._inputs(q) if self._held else self.inputs).driven


def kept_steps(robot: Robot, engine: str | None, actuators: Any = None, **arguments: Any) -> KeptSteps:
    """Those of a set of arguments, made where they are not kept by the robot.

    Args:
        robot: the robot.
        engine: "python" for no machine code.
        actuators: as of ``simulate``.
        arguments: dt, ground, integrator, joint_damping, self_collision, springs, likewise.
    """
    drives = actuators_of(actuators)
    about = (engine, *map(_known, arguments.values()), *map(_known, drives))
    kept: Recent[KeptSteps] = robot.derived.get("steps to differentiate", lambda: Recent(KEPT))
    return kept.get(about, lambda: KeptSteps(robot, arguments, engine, drives))


def _known(given: Any) -> Hashable:
    """What tells an argument from others: its value, or which object it is."""
    if isinstance(given, float) and math.isnan(given):
        return "nan"
    try:
        hash(given)
    except TypeError:
        return type(given).__name__, id(given)
    return type(given).__name__, given
