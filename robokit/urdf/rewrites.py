"""Loops that a file describes without <loop_joint>: pairs of frames, and links that two joints carry.

Two forms are common. Exporters of CAD models (onshape-to-robot) mark the place where a loop was cut by two
links without mass, ``closing_NAME_1`` and ``closing_NAME_2``, fixed to the two bodies; the loop is closed
where their origins coincide. And some files give a link two parents, which is no tree. Neither says all that
a loop joint needs, so they are closed on request only (``loops="close"``):

* a pair of frames becomes a spherical loop joint: the file does not say what the frames may do but coincide;
* of the joints that carry one link, the first that hangs on the root stays in the tree, and the others become
  loop joints of their own type at the same place. Their limits, damping and friction do not act.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from robokit.urdf.description import JointDescription, LoopDescription, RobotDescription

_FRAME = re.compile(r"closing_(.+)_([12])")


class FramePair(NamedTuple):
    """Two links that mark where a loop was cut.

    Attributes:
        name: of the loop, what stands between "closing_" and the number.
        first, second: names of the links.
        line: of the first.
    """

    name: str
    first: str
    second: str
    line: int


def frame_pairs(robot: RobotDescription) -> list[FramePair]:
    """The pairs of frames of a description that no loop joint closes yet."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for link in robot.links:
        if link.name.startswith("closing_") and (match := _FRAME.fullmatch(link.name)):
            found.setdefault(match[1], {})[match[2]] = link.name, link.line
    if not found:
        return []
    bodies = _bodies(robot)
    closed = {frozenset((loop.predecessor, loop.successor)) for loop in robot.loops}
    pairs = []
    for name, ends in found.items():
        if len(ends) < 2:
            continue
        (first, line), (second, _) = ends["1"], ends["2"]
        if bodies[first] != bodies[second] and frozenset((first, second)) not in closed:
            pairs.append(FramePair(name, first, second, line))
    return pairs


def _bodies(robot: RobotDescription) -> dict[str, str]:
    """Link -> the link at the upper end of the fixed joints above it."""
    above = {joint.child: joint.parent for joint in robot.joints if not joint.moves}
    bodies: dict[str, str] = {}
    for link in robot.links:
        path: dict[str, None] = {}
        name = link.name
        while name in above and name not in path and name not in bodies and above[name] is not None:
            path[name] = None
            name = above[name]  # type: ignore[assignment]
        bodies.update(dict.fromkeys([*path, name], bodies.get(name, name)))
    return bodies


def second_parents(robot: RobotDescription) -> list[JointDescription]:
    """The joints to take out of the tree so that every link has one parent at most.

    Of several joints that carry a link, the first whose parent a root reaches stays.
    """
    incoming: dict[str | None, list[JointDescription]] = {}
    for joint in robot.joints:
        incoming.setdefault(joint.child, []).append(joint)
    if all(len(joints) == 1 for joints in incoming.values()):
        return []
    below: dict[str | None, list[JointDescription]] = {}
    for joints in incoming.values():
        below.setdefault(joints[0].parent, []).append(joints[0])
    chosen = {child: joints[0] for child, joints in incoming.items()}
    todo = [link.name for link in robot.links if link.name not in incoming]
    reached: set[str | None] = set()
    while todo:
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                todo += [joint.child for joint in below.get(name, ()) if joint.child is not None]
        for child, joints in incoming.items():
            other = next((joint for joint in joints if joint.parent in reached), None)
            if child not in reached and other is not None and child is not None:
                chosen[child] = other
                todo.append(child)
                break
    kept = {id(joint) for joint in chosen.values()}
    return [joint for joint in robot.joints if id(joint) not in kept and joint.child is not None]


def with_loops(robot: RobotDescription) -> RobotDescription:
    """The same robot with its pairs of frames and second parents as loop joints."""
    second = second_parents(robot)
    out = {id(joint) for joint in second}
    joints = tuple(joint for joint in robot.joints if id(joint) not in out)
    robot = robot._replace(joints=joints, loops=(*robot.loops, *map(_from_joint, second)))
    return robot._replace(loops=(*robot.loops, *_from_pairs(robot)))


def _from_joint(joint: JointDescription) -> LoopDescription:
    """A joint of the tree as one that closes a loop: its frame is the child's."""
    return LoopDescription(
        joint.name,
        joint.type,
        joint.parent,
        joint.child,
        predecessor_origin=joint.origin,
        axis=joint.axis,
        line=joint.line,
    )


def _from_pairs(robot: RobotDescription) -> Iterator[LoopDescription]:
    taken = {joint.name for joint in robot.joints} | {loop.name for loop in robot.loops}
    for pair in frame_pairs(robot):
        name = f"closing_{pair.name}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield LoopDescription(name, "spherical", pair.first, pair.second, line=pair.line)
