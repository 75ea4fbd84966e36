"""Loop joints as an algorithm sees them: bodies, frames and kind, without names of links.

Source: RBDA section 8.2: loop joint k connects body p(k) to body s(k), its frame placed on either.
"""

from __future__ import annotations

from dataclasses import dataclass

from robokit.conventions import SNAP
from robokit.model.drafts import snapped
from robokit.model.geometry import Placement
from robokit.model.joints import JOINT_TABLE, JointModel
from robokit.model.robot import Robot
from robokit.spatial import Matrix3, Transform, Vector3


@dataclass(frozen=True)
class LoopModel:
    """A loop joint between two bodies.

    Attributes:
        name: of the loop joint.
        p, s: numbers of the predecessor and successor body.
        Xp, Xs: transforms from these bodies to the joint's frame on them.
        joint: kind, axis and pitch.
    """

    name: str
    p: int
    s: int
    Xp: Transform
    Xs: Transform
    joint: JointModel

    @property
    def rows(self) -> int:
        """Number of constraints: 6 less the joint's degrees of freedom."""
        return 6 - self.joint.kind.nv

    @property
    def key(self) -> str:
        """Everything a kernel depends on, as text."""
        frames = [(X.E.rows, tuple(X.r)) for X in (self.Xp, self.Xs)]
        return repr((self.p, self.s, frames, self.joint.kind.name, tuple(self.joint.axis), self.joint.pitch))


def loop_models(robot: Robot) -> tuple[LoopModel, ...]:
    """The robot's loop joints that constrain anything, in their order (a floating one does not)."""
    return robot.derived.get("loop models", lambda: _loop_models(robot))


def _loop_models(robot: Robot) -> tuple[LoopModel, ...]:
    found = []
    for loop in robot.loop_joints:
        (p, at_p), (s, at_s) = robot.frame(loop.predecessor), robot.frame(loop.successor)
        Xp = _to_frame(at_p @ loop.predecessor_placement)
        Xs = _to_frame(at_s @ loop.successor_placement)
        joint = JointModel(JOINT_TABLE[loop.kind], Vector3(*loop.axis.tolist()), loop.pitch)
        model = LoopModel(loop.name, p, s, Xp, Xs, joint)
        if model.rows:
            found.append(model)
    return tuple(found)


def _to_frame(at: Placement) -> Transform:
    """The transform to a frame placed in a body."""
    columns = [snapped(column) for column in at.rotation.T.tolist()]
    return Transform(Matrix3(columns), Vector3(*(0.0 if abs(x) < SNAP else x for x in at.position.tolist())))
