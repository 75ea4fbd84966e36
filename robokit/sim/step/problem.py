"""What a step of passive motion needs besides the state: the robot and the forces on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from robokit.model.tree import Tree
from robokit.sim.joints.given import Given
from robokit.sim.joints.joint_law import JointLaw
from robokit.sim.joints.loop_impulses import LoopLaw
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.moving_axes import Rows
from robokit.spatial.scalars import Scalar


@dataclass(frozen=True)
class Problem:
    """A robot and all that acts on it.

    Attributes:
        tree: the tree.
        joints: damping, friction and limits.
        loops: the loop joints, or None.
        given: actuators and forces from outside.
    """

    tree: Tree
    joints: JointLaw
    loops: LoopLaw | None = None
    given: Given = field(default_factory=Given)


Step = Callable[[Problem, Rows, Rows, Rows, Scalar, Ledger, Carried], tuple[Rows, Rows]]
"""(problem, q, v, tau, dt, ledger, carried) -> (q, v), all by joint."""
