"""The step of inverse kinematics as a kernel of a robot and of what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.pose_error import Frame
from robokit.dynamics.build import angle_bounds, quaternion_offsets, without_inertias
from robokit.dynamics.layout import link_frame
from robokit.dynamics.singular import check_mass
from robokit.engine import Kernel
from robokit.ik.lm_step import Problem, step
from robokit.model.robot import Robot


class Solver:
    """A kernel, and the problem whose step it computes.

    Attributes:
        problem: what is asked of the robot.
        kernel: of its step.
    """

    def __init__(self, robot: Robot, links: Sequence[tuple[str, bool]], com: bool, rest: bool) -> None:
        if com:
            check_mass(robot)
        else:
            robot = without_inertias(robot)
        frames = [Frame(*link_frame(robot, link), turned) for link, turned in links]
        self.problem = Problem(robot, tuple(frames), com, rest)
        fingerprint = robot.fingerprint if com else robot.fingerprint_without_inertias
        sizes = self.problem.sizes()
        self.kernel = Kernel.build(
            "inverse_kinematics",
            inputs=sizes,
            outputs=[("q", (robot.nq,)), ("state", (dict(sizes)["state"],))],
            text=lambda *flat: step(self.problem, *flat),
            key=fingerprint + repr((tuple(links), com, rest)).encode(),
            quaternions=[(0, k) for k in quaternion_offsets(robot)],
            bounds=[(0, k, most) for k, most in angle_bounds(robot)],
        )


def solver(robot: Robot, links: Sequence[tuple[str, bool]], com: bool, rest: bool) -> Solver:
    """The robot's solver for targets of these links, made at the first call.

    Args:
        robot: the robot.
        links: (name, whether its orientation has a target too) of each.
        com: whether the centre of mass has a target.
        rest: whether there is a rest configuration.
    """
    place: Any = ("inverse_kinematics", tuple(links), com, rest)
    found = robot.kernels.get(place)
    if found is None:
        found = robot.kernels.setdefault(place, Solver(robot, links, com, rest))
    return found
