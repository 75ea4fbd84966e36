"""What a step needs besides the state: the robot, its joint forces, its contact points and the ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from robokit.model.tree import Tree
from robokit.sim.joints.given import Given
from robokit.sim.joints.joint_law import JointLaw
from robokit.sim.joints.loop_impulses import LoopLaw
from robokit.sim.meeting.pair_contact import PairLaw
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.shapes.contact_shapes import ContactShape
from robokit.sim.touching.ground_law import GroundLaw
from robokit.spatial.scalars import Scalar


@dataclass(frozen=True)
class Problem:
    """A robot and all that acts on it.

    Attributes:
        tree: the tree.
        joints: damping, friction and limits.
        points: contact points of each body 0..N.
        ground: the contact law, or None.
        sweeps: of the contact step.
        loops: the loop joints, or None.
        given: actuators and forces from outside.
        pairs: bodies that may touch each other, or None.
    """

    tree: Tree
    joints: JointLaw
    points: Sequence[Sequence[ContactShape]] = ()
    ground: GroundLaw | None = None
    sweeps: int = 2
    loops: LoopLaw | None = None
    given: Given = field(default_factory=Given)
    pairs: PairLaw | None = None


Step = Callable[[Problem, Rows, Rows, Rows, Scalar, Ledger, Carried], tuple[Rows, Rows]]
"""(problem, q, v, tau, dt, ledger, carried) -> (q, v), all by joint."""
