"""What is asked of a robot, its errors and their derivatives, for the numbers of one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.center_of_mass_motion import center_of_mass_jacobian
from robokit.algorithms.coupling import reduced_force
from robokit.algorithms.pose_error import Frame, Target, pose_error, pose_error_columns
from robokit.model.robot import Robot
from robokit.spatial import Matrix3, Transform, Vector3
from robokit.spatial.scalars import Scalar

Scalars = Sequence[Scalar]

STATE = 4
"""Numbers of the state before the errors: alpha, the factor of its next increase, status, steps taken."""


@dataclass(frozen=True)
class Problem:
    """What is asked of a robot, without the numbers.

    Attributes:
        robot: the robot.
        frames: of links with targets.
        com: whether the centre of mass has a target.
        rest: whether there is a rest configuration.
    """

    robot: Robot
    frames: tuple[Frame, ...]
    com: bool
    rest: bool

    def __post_init__(self) -> None:
        tree, coupling = self.robot.tree, self.robot.coupling
        bodies = set(tree.outward()) if self.com else {j for f in self.frames for j in tree.support[f.body]}
        full = [k for j in sorted(bodies) for k in range(tree.v_slice[j].start, tree.v_slice[j].stop)]
        dofs = {k if coupling is None else coupling.v_from[k][0] for k in full}
        object.__setattr__(self, "bodies", tuple(sorted(bodies)))
        object.__setattr__(self, "dofs", tuple(sorted(dofs - {-1})))

    bodies: tuple[int, ...] = ()
    """Bodies that support the links, in ascending order."""
    dofs: tuple[int, ...] = ()
    """Degrees of freedom that move them: the others keep their values."""

    @property
    def rows(self) -> list[int]:
        """Numbers of error of each target, the centre of mass last."""
        return [6 if f.turned else 3 for f in self.frames] + [3] * self.com

    @property
    def parts(self) -> list[int]:
        """Parts of it with a unit of their own: 2 of a pose (angle, position), 1 of a point."""
        return [2 if f.turned else 1 for f in self.frames] + [1] * self.com

    @property
    def goal_size(self) -> int:
        """Numbers that say where the targets are: R by rows and p, or p."""
        return sum(12 if f.turned else 3 for f in self.frames) + 3 * self.com

    @property
    def coordinates(self) -> dict[int, int]:
        """Place in q of each of the dofs whose joint has one plain coordinate: those with limits and rest."""
        return {
            joint.v_slice.start: joint.q_slice.start
            for joint in self.robot.joints
            if joint.v_slice.start in self.dofs
            and joint.q_slice.stop == joint.q_slice.start + 1
            and joint.v_slice.stop == joint.v_slice.start + 1
        }

    def sizes(self) -> list[tuple[str, int]]:
        """(name, length) of each input of :func:`step`."""
        n, m = len(self.dofs), sum(self.rows)
        return [
            ("q", self.robot.nq),
            ("state", STATE + sum(self.parts)),
            ("goals", self.goal_size),
            ("limits", 2 * n),
            ("settings", 2 + 2 * m + 3 * len(self.frames)),
            *([("rest", 2 * n)] if self.rest else []),
        ]


class Numbers:
    """Hands out a flat input piece by piece."""

    def __init__(self, flat: Scalars) -> None:
        self.flat, self.at = flat, 0

    def take(self, n: int) -> Scalars:
        """The next n numbers."""
        self.at += n
        return self.flat[self.at - n : self.at]


class Targets:
    """Errors and their derivatives for the numbers of one call."""

    def __init__(self, problem: Problem, goals: Scalars, settings: Numbers) -> None:
        self.problem = problem
        given = Numbers(goals)
        self.targets = []
        for frame in problem.frames:
            R = None
            if frame.turned:
                nine = given.take(9)
                R = Matrix3((nine[0:3], nine[3:6], nine[6:9]))
            p = Vector3(*given.take(3))
            self.targets.append(Target(Vector3(*settings.take(3)), p, R))
        self.com = Vector3(*given.take(3)) if problem.com else None

    def at(self, q: Scalars) -> tuple[list[Sequence[Scalar]], dict[int, Transform]]:
        """q by body, and ^iX_0 of the bodies that matter."""
        tree = self.problem.robot.tree
        by_body = self.problem.robot.split_q(q)
        X0 = {0: Transform.identity()}
        for j in self.problem.bodies:
            X0[j] = tree.X(j, by_body[j]) @ X0[tree.parent[j]]
        return by_body, X0

    def errors(self, q: Scalars) -> list[Scalar]:
        """e of all targets."""
        by_body, X0 = self.at(q)
        e: list[Scalar] = []
        for frame, target in zip(self.problem.frames, self.targets, strict=True):
            e += pose_error(frame, target, X0)
        if self.com is not None:
            e += list(center_of_mass(self.problem.robot.tree, by_body) - self.com)
        return e

    def jacobian(self, q: Scalars) -> list[list[Scalar]]:
        """J by rows, a column for each of the problem's dofs."""
        tree = self.problem.robot.tree
        by_body, X0 = self.at(q)
        rows: list[list[Scalar]] = []
        for frame, target in zip(self.problem.frames, self.targets, strict=True):
            block = [[0.0] * tree.nv for _ in range(6 if frame.turned else 3)]
            for k, column in pose_error_columns(tree, frame, target, X0).items():
                for row, x in zip(block, column, strict=True):
                    row[k] = x
            rows += block
        if self.com is not None:
            rows += center_of_mass_jacobian(tree, by_body)
        rows = [reduced_force(tree, row) for row in rows]
        return [[row[k] for k in self.problem.dofs] for row in rows]
