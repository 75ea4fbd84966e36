"""Coupling: joints that follow others lose their coordinates, q_full = G q + offset, v_full = G v.

A row of G has one entry: the joint's own coordinate (1), the one it follows at the end of its chain of
mimics (the product of the multipliers), or none (it follows a fixed joint and stands still).

Source: mimic element of URDF; equations of motion under v_full = G v, RBDA section 3.3 (H_r = G^T H G).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.derived import cached_attribute
from robokit.errors import ModelError, UnknownName
from robokit.model.sparsity import inertia_pattern

if TYPE_CHECKING:
    from robokit.model.parts import Joint
    from robokit.model.robot import Robot

NONE = -1
"""The coordinate of what stands still."""


@dataclass(frozen=True)
class Coupling:
    """G and offset, sparse: one entry a row.

    Attributes:
        nq, nv: lengths of the reduced q and v.
        q_from: (coordinate of the reduced q or -1, multiplier, offset) of each full coordinate.
        v_from: (coordinate of the reduced v or -1, multiplier) of each full velocity.
        dof_parent: parent of each reduced dof in a tree whose branches cover H_r and its factor L.
        own_q, own_v: place of each reduced coordinate and velocity in the full q and v.
    """

    nq: int
    nv: int
    q_from: tuple[tuple[int, float, float], ...]
    v_from: tuple[tuple[int, float], ...]
    dof_parent: tuple[int, ...]
    own_q: tuple[int, ...]
    own_v: tuple[int, ...]

    def full_q(self, q: Sequence[Any]) -> list[Any]:
        """G q + offset, as a list of scalars."""
        return [offset if k == NONE else _scaled(q[k], m) + offset for k, m, offset in self.q_from]

    def full_v(self, v: Sequence[Any]) -> list[Any]:
        """G v, as a list of scalars."""
        return [0.0 if k == NONE else _scaled(v[k], m) for k, m in self.v_from]

    def force_at_own(self, tau: Sequence[Any]) -> list[Any]:
        """Full forces with G^T of them equal to tau: all of it at the joints that keep their coordinates."""
        full = [0.0] * len(self.v_from)
        for k, at in enumerate(self.own_v):
            full[at] = tau[k]
        return full

    @cached_attribute
    def G(self) -> np.ndarray:
        """The coupling matrix, (full nv, nv)."""
        G = np.zeros((len(self.v_from), self.nv))
        for row, (k, m) in enumerate(self.v_from):
            if k != NONE:
                G[row, k] = m
        return G


def _scaled(x: Any, m: float) -> Any:
    return x if m == 1.0 else x * m


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
    """
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


def reduced_parents(dof_parent: Sequence[int], dof_of: Sequence[int], nv: int) -> tuple[int, ...]:
    """Elimination tree of H_r = G^T H G, taken from the last dof to the first as L^T D L does.

    Joints of different branches that share a coordinate couple their branches. The factor's entries lie on
    the paths of this tree, so that the sparse factorisation serves H_r as it does H; without mimics it is
    ``dof_parent`` itself.

    Source: elimination trees, J. W. H. Liu (1990); RBDA section 6.4.

    Args:
        dof_parent: of the full tree.
        dof_of: reduced dof of each full one, -1 for none.
        nv: number of reduced dofs.
    """
    above: list[set[int]] = [set() for _ in range(nv)]
    for i, j in np.argwhere(np.tril(inertia_pattern(dof_parent))).tolist():
        a, b = sorted((dof_of[i], dof_of[j]))
        if a != NONE and a != b:
            above[b].add(a)
    parents = [NONE] * nv
    for k in reversed(range(nv)):
        if above[k]:
            parents[k] = max(above[k])
            above[parents[k]] |= above[k] - {parents[k]}
    return tuple(parents)


def _leader(robot: Robot, joint: Joint) -> tuple[Joint, float, float]:
    """The joint at the end of a chain of mimics, multiplier and offset of the whole chain."""
    multiplier, offset, leader = 1.0, 0.0, joint
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
        multiplier, offset = multiplier * law.multiplier, offset + multiplier * law.offset
        leader = followed
    return leader, multiplier, offset
