"""Mistakes over the tree: what a joint hangs on, what a link is fixed to, the root, and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mutations.mutation import Mutant, Mutation, angles, movable, shuffled, with_joint
from robokit.model.geometry import Placement
from robokit.urdf.description import JointDescription, LoopDescription, Origin, RobotDescription


def _placed(place: Placement, line: int = 0) -> Origin:
    return Origin(tuple(map(float, place.position)), angles(place.rotation), None, line)


def _poses(robot: RobotDescription) -> dict[str, Placement]:
    """Poses of all links in the root's frame, with all joints at zero."""
    carried = {joint.child for joint in robot.joints}
    found = {link.name: Placement() for link in robot.links if link.name not in carried}
    left = list(robot.joints)
    while left:
        joint = left.pop(0)
        if joint.parent in found:
            found[joint.child] = found[joint.parent] @ joint.origin.placement()
        else:
            left.append(joint)
    return found


def _bodies(robot: RobotDescription) -> dict[str, str]:
    """Link -> the first link of the rigid body that it is part of."""
    into = {joint.child: joint for joint in robot.joints}

    def first(link: str) -> str:
        joint = into.get(link)
        return link if joint is None or joint.moves else first(joint.parent)

    return {link.name: first(link.name) for link in robot.links}


def _behind(robot: RobotDescription, link: str) -> set[str]:
    found, todo = set(), [link]
    while todo:
        found.add(todo.pop())
        todo += [joint.child for joint in robot.joints if joint.parent in found and joint.child not in found]
    return found


def _elsewhere(
    robot: RobotDescription, joint: JointDescription, rng: np.random.Generator
) -> RobotDescription | None:
    """The robot with a joint hung on a link of another body, everything where it was at zero."""
    poses, body, behind = _poses(robot), _bodies(robot), _behind(robot, joint.child)
    others = [k.name for k in robot.links if k.name not in behind and k.name != "world"]
    others = [name for name in others if body[name] not in (body[joint.parent], "world")]
    if not others:
        return None
    parent = others[rng.integers(len(others))]
    there = poses[parent].inverse() @ poses[joint.child]
    return with_joint(robot, joint.name, parent=parent, origin=_placed(there, joint.origin.line))


def _hung_elsewhere(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    for joint in shuffled(movable(robot), rng):
        b = _elsewhere(robot, joint, rng)
        if b is not None:
            yield Mutant(joint.name, b)


def _fixed_elsewhere(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    for joint in shuffled([j for j in robot.joints if j.type == "fixed" and j.parent != "world"], rng):
        if not any(j.moves and j.parent in _behind(robot, joint.child) for j in robot.joints):
            b = _elsewhere(robot, joint, rng)
            if b is not None:
                yield Mutant(joint.child, b)


def _other_root(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    """The robot written from the child of one of its root's joints outwards."""
    carried = {joint.child for joint in robot.joints}
    (root,) = [link for link in robot.links if link.name not in carried]
    if root.name == "world":
        return
    for joint in shuffled([j for j in movable(robot) if j.parent == root.name and j.mimic is None], rng):
        back = joint.origin.placement().inverse()

        def moved(origin: Origin, back: Placement = back) -> Origin:
            return _placed(back @ origin.placement(), origin.line)

        own = root.inertial
        turned = root._replace(
            inertial=None if own is None else own._replace(origin=moved(own.origin)),
            collisions=tuple(s._replace(origin=moved(s.origin)) for s in root.collisions),
            visuals=(),
        )
        joints = [
            j._replace(origin=moved(j.origin)) if j.parent == root.name and j != joint else j
            for j in robot.joints
        ]
        flipped = joint._replace(
            parent=joint.child,
            child=root.name,
            origin=Origin((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), None, joint.origin.line),
            axis=tuple(0.0 - x for x in joint.axis),
        )
        links = tuple(turned if link == root else link for link in robot.links)
        yield Mutant("", robot._replace(
            links=links, joints=tuple(flipped if j == joint else j for j in joints), loops=()
        ))  # fmt: skip


def _looped(robot: RobotDescription, rng: np.random.Generator) -> Iterator[RobotDescription]:
    """The robot with a hinge between two of its bodies, closed at zero."""
    poses, body = _poses(robot), _bodies(robot)
    heads = [name for name in dict.fromkeys(body.values()) if name != "world"]
    for first in shuffled(heads, rng):
        for second in shuffled(heads, rng):
            if first != second and body.get("world") not in (first, second):
                off = Placement(position=np.array([0.03, 0.02, 0.01]))
                there = poses[second].inverse() @ poses[first] @ off
                kind = ("revolute", "spherical", "fixed")[rng.integers(3)]
                loop = LoopDescription(
                    "closing", kind, first, second, _placed(off), _placed(there), (0.0, 0.6, 0.8)
                )
                yield robot._replace(loops=(loop,))
                break


def _loop(wrong: Callable, only_b: bool = False) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        if robot.loops:
            return
        for looped in _looped(robot, rng):
            if only_b:
                yield Mutant("closing", looped, a=robot)
                continue
            changed = wrong(looped.loops[0], looped)
            if changed is not None:
                yield Mutant("closing", looped._replace(loops=changed), a=looped)

    return make


def _loop_moved(loop, robot):
    x, y, z = loop.successor_origin.xyz
    return (loop._replace(successor_origin=loop.successor_origin._replace(xyz=(x, y + 0.01, z - 0.02))),)


def _loop_kind(loop, robot):
    return (loop._replace(type="spherical" if loop.type != "spherical" else "fixed"),)


def _loop_ends(loop, robot):
    poses, body = _poses(robot), _bodies(robot)
    others = [n for n in body.values() if n not in (loop.predecessor, loop.successor, body.get("world"))]
    if not others:
        return None
    there = poses[others[-1]].inverse() @ poses[loop.successor] @ loop.successor_origin.placement()
    return (loop._replace(successor=others[-1], successor_origin=_placed(there)),)


TREES = [
    Mutation("joint-parent", _hung_elsewhere),
    Mutation("link-on-another-body", _fixed_elsewhere),
    Mutation("root-differs", _other_root),
    Mutation("loop-missing", _loop(lambda loop, robot: ())),
    Mutation("loop-added", _loop(lambda loop, robot: None, only_b=True)),
    Mutation("loop-differs", _loop(_loop_moved)),
    Mutation("loop-differs", _loop(_loop_kind)),
    Mutation("loop-differs", _loop(_loop_ends)),
]
