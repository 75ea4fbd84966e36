"""ModelBuilder: links and joints by name, in any order, become a Robot with a numbered tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.errors import Diagnostic, ModelError
from robokit.model.arguments import (
    checked_name,
    checked_placement,
    finite,
    finite_number,
    limit,
    limits,
    not_negative,
)
from robokit.model.assemble import assemble
from robokit.model.drafts import JointDraft, LinkDraft, LoopDraft, unit_axis
from robokit.model.geometry import Placement, Shape
from robokit.model.joints import JOINT_TABLE
from robokit.model.parts import Calibration, Mimic, Safety
from robokit.model.robot import Robot
from robokit.model.walks import joints_in_order


class ModelBuilder:
    """Collects links and joints; :meth:`build` numbers them.

    Example:
        >>> builder = rk.ModelBuilder("pendulum").link("base")
        >>> builder = builder.link("rod", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]))
        >>> robot = builder.joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0)).build()
        >>> robot.joint_names
        ('hinge',)

    Links and joints have namespaces of their own. Joints may come before the links they name.
    """

    def __init__(self, name: str, source: str = "<code>") -> None:
        self.name, self.source = name, source
        self._links: dict[str, LinkDraft] = {}
        self._joints: dict[str, JointDraft] = {}
        self._loops: dict[str, LoopDraft] = {}

    def link(
        self,
        name: str,
        mass: float = 0.0,
        com: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        inertia: Any = None,
        visuals: Sequence[Shape] = (),
        collisions: Sequence[Shape] = (),
    ) -> ModelBuilder:
        """Add a link.

        Args:
            name: unique among links.
            mass: [kg], not negative.
            com: (3,) centre of mass in the link frame [m].
            inertia: (3, 3) about the centre of mass, in link axes [kg m^2]; zero if None.
            visuals, collisions: shapes in the link frame.

        Raises:
            ModelError: a name that is empty or taken, or an impossible mass, com or inertia.
        """
        name = checked_name("link", name)
        if name in self._links:
            raise ModelError(f"link {name!r} is there already; link names are unique")
        matrix = finite(f"inertia of link {name!r}", np.zeros((3, 3)) if inertia is None else inertia, (3, 3))
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = matrix.tolist()
        if not (_alike(xy, yx) and _alike(xz, zx) and _alike(yz, zy)):
            raise ModelError(f"inertia of link {name!r} is not symmetric")
        mass = not_negative(f"mass of link {name!r}", mass)
        self._links[name] = LinkDraft(
            name,
            mass,
            finite(f"com of link {name!r}", com, (3,)),
            matrix,
            tuple(visuals),
            tuple(collisions),
        )
        return self

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        placement: Placement | None = None,
        axis: Sequence[float] | np.ndarray = (1.0, 0.0, 0.0),
        pitch: float = 0.0,
        lower: float | None = None,
        upper: float | None = None,
        effort: float | None = None,
        velocity: float | None = None,
        damping: float = 0.0,
        friction: float = 0.0,
        mimic: Mimic | None = None,
        safety: Safety | None = None,
        calibration: Calibration | None = None,
        armature: float = 0.0,
    ) -> ModelBuilder:
        """Add a tree joint between two links.

        Args:
            name: unique among joints.
            kind: revolute, continuous, prismatic, helical, cylindrical, planar, spherical, floating or fixed.
            parent, child: link names.
            placement: the joint frame in the parent link; the child link's frame moves with it.
            axis: (3,) in joint coordinates, normalised here; the plane's normal for a planar joint.
            pitch: of a helical joint [m/rad].
            lower, upper: position limits [rad | m]; None for none.
            effort, velocity: limits [N m | N], [rad/s | m/s]; None for none.
            damping: [N m s/rad | N s/m]; friction: [N m | N].
            mimic: coupling to another joint.
            safety, calibration: stored with the joint; robokit does not use them.
            armature: inertia of the motors' rotors as the joint feels it, gear ratio squared included, for
                each of its velocities [kg m^2 | kg]; not negative.

        Raises:
            ModelError: a name that is taken or no name, limits out of order, a number that is not finite
                (limits may be infinite), or a placement whose rotation is none.
            UnknownName: no such kind.
        """
        name = checked_name("joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} is there already; joint names are unique")
        self._joints[name] = JointDraft(
            name,
            _kind(kind),
            parent,
            child,
            checked_placement(f"placement of joint {name!r}", placement),
            _axis(name, kind, axis),
            finite_number(f"pitch of joint {name!r}", pitch),
            *limits(name, lower, upper),
            limit(f"effort limit of joint {name!r}", effort, math.inf),
            limit(f"velocity limit of joint {name!r}", velocity, math.inf),
            finite_number(f"damping of joint {name!r}", damping),
            finite_number(f"friction of joint {name!r}", friction),
            mimic,
            safety,
            calibration,
            not_negative(f"armature of joint {name!r}", armature),
        )
        return self

    def loop_joint(
        self,
        name: str,
        kind: str,
        predecessor: str,
        successor: str,
        predecessor_placement: Placement | None = None,
        successor_placement: Placement | None = None,
        axis: Sequence[float] | np.ndarray = (1.0, 0.0, 0.0),
        pitch: float = 0.0,
    ) -> ModelBuilder:
        """Add a joint that closes a loop between two links of the tree; it gets a number above N.

        Raises:
            ModelError: a name that is empty or taken, or a placement with an improper rotation.
            UnknownName: no such kind.
        """
        name = checked_name("loop joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} is there already; joint names are unique")
        self._loops[name] = LoopDraft(
            name,
            _kind(kind),
            predecessor,
            successor,
            checked_placement(f"predecessor placement of loop joint {name!r}", predecessor_placement),
            checked_placement(f"successor placement of loop joint {name!r}", successor_placement),
            _axis(name, kind, axis),
            finite_number(f"pitch of loop joint {name!r}", pitch),
        )
        return self

    def add(self, draft: LinkDraft | JointDraft) -> None:
        """Add a link or joint without checking it again: the importer has."""
        if isinstance(draft, LinkDraft):
            self._links[draft.name] = draft
        else:
            self._joints[draft.name] = draft

    def build(
        self,
        base: str = "fixed",
        diagnostics: Sequence[Diagnostic] = (),
        gravity: Sequence[float] | None = None,
    ) -> Robot:
        """Number the bodies depth first and fold fixed joints.

        Args:
            base: "fixed" makes the root link body 0; "floating" puts a 6-dof joint under it.
            diagnostics: findings that the robot carries along.
            gravity: (3,) in world axes [m/s^2]; (0, 0, -9.81) if None.

        Raises:
            ModelError: gravity that is not three numbers, no link, not one root, two parents, or a cycle.
            UnknownName: a joint names a link that is not there, or the base is neither of the two.
        """
        return assemble(
            self.name, self.source, self._links, self._joints, self._loops, base, diagnostics, gravity
        )

    @classmethod
    def from_robot(cls, robot: Robot) -> ModelBuilder:
        """A builder with the links and joints of a robot; ``build(robot.base)`` gives the same robot again.

        The joint of a floating base is not in it; ``build`` adds it. Coupled mimic joints have coordinates
        of their own in it; ``couple`` takes those away again.
        """
        builder = cls(robot.name, robot.source)
        for link in robot.links:
            builder.link(link.name, link.mass, link.com, link.inertia, link.visuals, link.collisions)
        for joint in joints_in_order(robot):
            builder.joint(
                joint.name,
                joint.kind,
                joint.parent_link,
                joint.child_link,
                joint.origin,
                joint.axis,
                joint.pitch,
                joint.lower,
                joint.upper,
                joint.effort,
                joint.velocity,
                joint.damping,
                joint.friction,
                joint.mimic,
                joint.safety,
                joint.calibration,
                joint.armature,
            )
        for loop in robot.loop_joints:
            ends = loop.predecessor, loop.successor
            placements = loop.predecessor_placement, loop.successor_placement
            builder.loop_joint(loop.name, loop.kind, *ends, *placements, loop.axis, loop.pitch)
        return builder

    def _include(self, other: ModelBuilder, prefix: str) -> None:
        """Add all of another builder; the prefix goes before its names, which nobody has yet."""
        for link in other._links.values():
            self._links[prefix + link.name] = replace(link, name=prefix + link.name)
        for joint in other._joints.values():
            mimic = joint.mimic and replace(joint.mimic, joint=prefix + joint.mimic.joint)
            parent, child = prefix + joint.parent, prefix + joint.child
            self._joints[prefix + joint.name] = replace(
                joint, name=prefix + joint.name, parent=parent, child=child, mimic=mimic
            )
        for loop in other._loops.values():
            predecessor, successor = prefix + loop.predecessor, prefix + loop.successor
            self._loops[prefix + loop.name] = replace(
                loop, name=prefix + loop.name, predecessor=predecessor, successor=successor
            )


def _alike(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-9 * min(abs(a), abs(b))


def _kind(kind: str) -> str:
    return one_of("joint kind", kind, JOINT_TABLE)


def _axis(name: str, kind: str, axis: Any) -> np.ndarray:
    array = finite(f"axis of joint {name!r}", axis, (3,))
    if JOINT_TABLE[kind].has_axis and not array.any():
        raise ModelError(f"axis of joint {name!r} is zero; a {kind} joint needs a direction")
    return unit_axis(kind, array.tolist())
