"""The time step of a robot as a kernel, and what goes into it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.engine import Kernel
from robokit.model.robot import Robot
from robokit.sim import ledger
from robokit.sim.contact import BodyPoint, GroundLaw
from robokit.sim.ground import Ground
from robokit.sim.integrators import Method, Problem
from robokit.sim.passive import JointLaw
from robokit.sim.points import ContactPoints, contact_points


@dataclass
class Program:
    """A robot's step with everything but the state.

    Attributes:
        robot: the robot.
        name: of the method.
        method: row of the table of methods.
        joints: damping, friction and limits.
        ground: the ground, or None.
        iterations: solves a step.
        points: contact points, or None without a ground.
        by_body: the same by body.
    """

    robot: Robot
    name: str
    method: Method
    joints: JointLaw
    ground: Ground | None
    iterations: int

    def __post_init__(self) -> None:
        n = self.robot.nbodies
        self.points: ContactPoints | None = None
        self.by_body: list[list[BodyPoint]] = [[] for _ in range(n + 1)]
        if self.ground is not None:
            self.points = contact_points(self.robot, self.ground.max_points)
            self.by_body = self.points.by_body(n)
        self.touching = [i for i in range(1, n + 1) if self.by_body[i]]

    def parameters(self, dt: float) -> np.ndarray:
        """Numbers that may change without another kernel: dt, height, k, d, slip, friction by body."""
        if self.ground is None or self.points is None:
            return np.array([dt])
        k, d = self.ground.gains(self.robot)
        first = {int(i): link for i, link in zip(self.points.body[::-1], self.points.link[::-1], strict=True)}
        mu = [self.ground.coefficient(first[i]) for i in self.touching]
        return np.array([dt, self.ground.height, k, d, self.ground.slip, *mu])

    def problem(self, parameters: Sequence[Any]) -> Problem:
        """The step's problem for these parameters, plain numbers or scalars of a kernel."""
        law = None
        if self.ground is not None:
            height, k, d, slip, *mu = parameters[1:]
            law = GroundLaw(height, k, d, slip, mu)
        return Problem(self.robot.tree, self.joints, self.by_body, law, self.iterations)

    def text(self, q: Any, v: Any, tau: Any, entries: Any, parameters: Any) -> list[list[Any]]:
        """One step: the next q, v and ledger."""
        robot = self.robot
        books = ledger.Ledger(entries)
        q1, v1 = self.method.step(
            self.problem(parameters),
            robot.split_q(q),
            robot.split_v(v),
            robot.split_tau(tau),
            parameters[0],
            books,
        )
        return [robot.join_q(q1), robot.join_v(v1), books.entries]

    def kernel(self) -> Kernel:
        """The step as a kernel, built once for a robot."""
        robot = self.robot
        described = repr((self.name, self.iterations, self.joints, self.by_body, self.ground is None))
        name = "step_" + hashlib.sha256(described.encode()).hexdigest()[:16]
        if name not in robot.kernels:
            robot.kernels[name] = Kernel.build(
                "step",
                inputs=[
                    ("q", robot.nq),
                    ("v", robot.nv),
                    ("tau", robot.nv),
                    ("ledger", ledger.SIZE),
                    ("parameters", len(self.parameters(1.0))),
                ],
                outputs=[("q_next", (robot.nq,)), ("v_next", (robot.nv,)), ("ledger_next", (ledger.SIZE,))],
                text=self.text,
                key=robot.fingerprint + described.encode(),
                feedback={"q_next": "q", "v_next": "v", "ledger_next": "ledger"},
            )
        return robot.kernels[name]
