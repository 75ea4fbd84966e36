"""The floating base that a file describes itself: a root without mass, and a floating joint.

Files for other programs often begin with a link "world" and a joint of type floating. What they describe is a
robot whose base floats, and ``base="floating"`` must not put a second joint under it.
"""

from __future__ import annotations

from typing import NamedTuple

from robokit.urdf.description import InertialDescription, JointDescription, RobotDescription


class OwnBase(NamedTuple):
    """The floating base of a file.

    Attributes:
        joint: the floating joint.
        links: names of the root and the links that are fixed to it.
    """

    joint: JointDescription
    links: frozenset[str]


def own_base(robot: RobotDescription) -> OwnBase | None:
    """The floating base that the file describes, None where it describes none.

    The root and the links fixed to it have neither mass nor inertia, no loop ends at them, and all that they
    carry hangs on one floating joint.
    """
    floating = [joint for joint in robot.joints if joint.type == "floating"]
    if not floating:
        return None
    carried = {joint.child for joint in robot.joints}
    roots = [link.name for link in robot.links if link.name not in carried]
    if len(roots) != 1 or len(carried) != len(robot.joints):
        return None
    below: dict[str | None, list[JointDescription]] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint)
    body, moving, todo = set(), [], roots
    while todo:
        name = todo.pop()
        body.add(name)
        for joint in below.get(name, ()):
            if joint.moves:
                moving.append(joint)
            elif joint.child is not None and joint.child not in body:
                todo.append(joint.child)
    tied = any({loop.predecessor, loop.successor} & body for loop in robot.loops)
    if len(moving) != 1 or moving[0].type != "floating" or tied or moving[0].child is None:
        return None
    if any(_weighs(link.inertial) for link in robot.links if link.name in body):
        return None
    return OwnBase(moving[0], frozenset(body))


def without_own_base(robot: RobotDescription, own: OwnBase) -> RobotDescription:
    """The same robot without its root and floating joint: its root is what the joint carries."""
    return robot._replace(
        links=tuple(link for link in robot.links if link.name not in own.links),
        joints=tuple(j for j in robot.joints if j is not own.joint and j.parent not in own.links),
    )


def _weighs(inertial: InertialDescription | None) -> bool:
    return inertial is not None and bool(inertial.mass or any(inertial.inertia))
