"""Descriptions rewritten before a robot is built from them.

* ``own_base``, ``without_own_base``: a floating base that the file describes itself is left out, where
  ``base="floating"`` adds one;
* ``with_loops``: pairs of frames and second parents become loop joints (``loops="close"``);
* ``with_z_up``: shapes are turned by the up axis of their meshes (``mesh_up_axis="apply"``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robokit.model.geometry import Mesh
from robokit.model.parts import free_name
from robokit.spatial.rotation import rotation_to_quat_wxyz
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LoopDescription,
    RobotDescription,
    ShapeDescription,
)
from robokit.urdf.mesh_files import Resolver

# ---- the file's own floating base ----------------------------------------------------------------
# Files for other programs often begin with a massless link "world" and a joint of type floating. What they
# describe is a robot with a floating base, and ``base="floating"`` must not add a second joint below it.


class OwnBase(NamedTuple):
    """The floating base of a file."""

    joint: JointDescription  # the floating joint
    links: frozenset[str]  # names of the root and the links that are fixed to it


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


# ---- loops without <loop_joint> ------------------------------------------------------------------
# Two forms are common. CAD exporters (onshape-to-robot) mark the place where a loop was cut by two massless
# links, closing_NAME_1 and closing_NAME_2, fixed to the two bodies; the loop is closed where their origins
# coincide. And some files give a link two parents, which makes no tree. Neither says all that a loop joint
# needs, so that they are closed on request only (``loops="close"``):
#
# * a pair of frames becomes a spherical loop joint: the file says only that their origins coincide;
# * of the joints with the same child, the first whose parent a root reaches stays in the tree. The others
#   become loop joints of their own type at the same place; their limits, damping and friction do not act.

_FRAME = re.compile(r"closing_(.+)_([12])")


class FramePair(NamedTuple):
    """Two links that mark where a loop was cut."""

    name: str  # of the loop, what stands between "closing_" and the number
    # first, second: names of the links
    first: str
    second: str
    line: int  # of the first


def frame_pairs(robot: RobotDescription) -> list[FramePair]:
    """The pairs of frames of a description that no loop joint closes yet."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for link in robot.links:
        if link.name.startswith("closing_") and (match := _FRAME.fullmatch(link.name)):
            found.setdefault(match[1], {})[match[2]] = link.name, link.line
    if not found:
        return []
    bodies = body_of_links(robot)
    closed = {frozenset((loop.predecessor, loop.successor)) for loop in robot.loops}
    pairs = []
    for name, ends in found.items():
        if len(ends) < 2:
            continue
        (first, line), (second, _) = ends["1"], ends["2"]
        if bodies[first] != bodies[second] and frozenset((first, second)) not in closed:
            pairs.append(FramePair(name, first, second, line))
    return pairs


def body_of_links(robot: RobotDescription) -> dict[str, str]:
    """Link -> the link at the upper end of the fixed joints above it: the same for all links of a body."""
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
        name = free_name(f"closing_{pair.name}", taken)
        yield LoopDescription(name, "spherical", pair.first, pair.second, line=pair.line)


# ---- shapes turned to z up -----------------------------------------------------------------------
# A mesh whose file says that y is up is turned by 90 degrees about x, as by a reader that honours the axis:
# the shape's origin is turned and the scale's factors change places, so that the mesh file is read as it is.


def with_z_up(robot: RobotDescription, resolver: Resolver) -> RobotDescription:
    """The same robot with its shapes of meshes turned where the file says that x or y is up."""
    from robokit.meshes.collada import TO_Z_UP, up_axis

    axes: dict[str, str] = {}

    def turned(shape: ShapeDescription) -> ShapeDescription:
        mesh = shape.geometry
        if not isinstance(mesh, Mesh):
            return shape
        if mesh.filename not in axes:
            axes[mesh.filename] = up_axis(resolver(mesh.filename).path)
        if axes[mesh.filename] == "Z":
            return shape
        R = np.array(TO_Z_UP[axes[mesh.filename]])
        # The scale acts along z-up axes: S R = R (R^T S R).
        x, y, z = (np.abs(R).T @ mesh.scale).tolist()
        w, *xyz = rotation_to_quat_wxyz((shape.origin.rotation() @ R).tolist())
        origin = shape.origin._replace(rpy=(0.0, 0.0, 0.0), quat_xyzw=(*xyz, w))
        return shape._replace(geometry=Mesh(mesh.filename, (x, y, z), mesh.path), origin=origin)

    links = (
        link._replace(
            visuals=tuple(map(turned, link.visuals)), collisions=tuple(map(turned, link.collisions))
        )
        for link in robot.links
    )
    return robot._replace(links=tuple(links))
