"""Mimic joints lose their coordinates: ``couple(robot)``."""

from __future__ import annotations

import math
from dataclasses import replace

from robokit.errors import ModelError, UnknownName
from robokit.model.mimic_coupling import NONE, Coupling, reduced_parents
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot


def couple(robot: Robot) -> Robot:
    """The robot without the coordinates of its mimic joints.

    ``nq``, ``nv``, ``joints`` and ``joint_names`` of the result are those of the joints that keep their
    coordinates. ``robot.joint(name)`` of a mimic joint still answers with its body, axis and limits; its
    slices are empty. A robot without mimic joints comes back as it is.

    Args:
        robot: a robot whose mimic joints have coordinates of their own.

    Raises:
        ModelError: a mimic with or of a joint that has several coordinates, or mimics in a circle.
        UnknownName: a mimic of a joint that is not there.

    Example:
        >>> from robokit.model import couple
        >>> builder = rk.ModelBuilder("gripper").link("palm").link("left", 0.1).link("right", 0.1)
        >>> builder = builder.joint("close", "prismatic", "palm", "left", axis=(0, 1, 0))
        >>> follow = rk.Mimic("close", multiplier=-1.0)
        >>> builder = builder.joint("follow", "prismatic", "palm", "right", axis=(0, 1, 0), mimic=follow)
        >>> gripper = builder.build()
        >>> gripper.nv, couple(gripper).nv
        (2, 1)
    """
    check_robot(robot)
    mimics = tuple(joint for joint in robot.joints if joint.mimic is not None)
    if not mimics:
        return robot
    tree = robot.tree
    q_from: list[tuple[int, float, float]] = [(NONE, 0.0, 0.0)] * tree.nq
    v_from: list[tuple[int, float]] = [(NONE, 0.0)] * tree.nv
    kept: list[Joint] = []
    own_q: list[int] = []
    own_v: list[int] = []
    for joint in robot.joints:
        if joint.mimic is not None:
            continue
        nq, nv = len(own_q), len(own_v)
        own_q += range(joint.q_slice.start, joint.q_slice.stop)
        own_v += range(joint.v_slice.start, joint.v_slice.stop)
        kept.append(replace(joint, q_slice=slice(nq, len(own_q)), v_slice=slice(nv, len(own_v))))
    for k, at in enumerate(own_q):
        q_from[at] = (k, 1.0, 0.0)
    for k, at in enumerate(own_v):
        v_from[at] = (k, 1.0)
    for joint in mimics:
        leader, multiplier, offset = _leader(robot, joint)
        at_q, at_v = joint.q_slice.start, joint.v_slice.start
        if leader.q_slice == slice(0, 0):
            q_from[at_q], v_from[at_v] = (NONE, 0.0, offset), (NONE, 0.0)
        else:
            q_from[at_q] = (q_from[leader.q_slice.start][0], multiplier, offset)
            v_from[at_v] = (v_from[leader.v_slice.start][0], multiplier)
    nv = len(own_v)
    coupling = Coupling(
        len(own_q),
        nv,
        tuple(q_from),
        tuple(v_from),
        reduced_parents(tree.dof_parent, [k for k, _ in v_from], nv),
        tuple(own_q),
        tuple(own_v),
    )
    followers = tuple(replace(joint, q_slice=slice(0, 0), v_slice=slice(0, 0)) for joint in mimics)
    return replace(robot, tree=replace(tree, coupling=coupling), joints=tuple(kept), mimic_joints=followers)


def _leader(robot: Robot, joint: Joint) -> tuple[Joint, float, float]:
    """The joint at the end of a chain of mimics, multiplier and offset of the whole chain."""
    leader, laws = joint, []
    seen = set()
    while leader.mimic is not None and leader.kind != "fixed":
        if leader.name in seen:
            raise ModelError(
                f"joint {joint.name!r} mimics in a circle; let one of the joints move on its own"
            )
        seen.add(leader.name)
        law = leader.mimic
        try:
            followed = robot.joint(law.joint)
        except UnknownName as error:
            raise UnknownName(
                "joint", law.joint, robot.all_joint_names, f"(mimicked by {leader.name!r})"
            ) from error
        for end in (leader, followed):
            if end.q_slice.stop - end.q_slice.start > 1 or end.v_slice.stop - end.v_slice.start > 1:
                raise ModelError(
                    f"joint {leader.name!r} mimics {followed.name!r}: {end.name!r} is {end.kind} and has "
                    "several coordinates; only joints with one can be coupled"
                )
        laws.append(law)
        leader = followed
    multiplier, offset = 1.0, 0.0
    for law in reversed(laws):  # from the leader on, so that each product is the law of a joint of the chain
        multiplier, offset = law.multiplier * multiplier, law.multiplier * offset + law.offset
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        raise ModelError(
            f"joint {joint.name!r} follows {leader.name!r} by {multiplier:g} q + {offset:g}, which is not "
            "finite; give the mimics between them smaller multipliers"
        )
    return leader, multiplier, offset
