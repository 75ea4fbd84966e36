"""Limbs that are alike: the left and the right leg of a robot, two fingers of a hand.

Two subtrees are alike if their joints are of the same kinds, in the same arrangement. Lengths, inertias and
the senses of axes may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.model.robot import Robot
from robokit.model.tree import Tree


def similar_joints(tree: Tree) -> list[tuple[int, int]]:
    """Joints of limbs that hang on one body and are alike: (joint, that in its place in the other limb)."""
    names: dict[Any, int] = {}
    shape = [0] * (tree.n + 1)
    for i in range(tree.n, 0, -1):
        below = tuple(sorted(shape[k] for k in tree.children[i]))
        shape[i] = names.setdefault((tree.joint[i].kind.name, tree.joint[i].S.axes, below), len(names))

    def by_shape(body: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for k in tree.children[body]:
            found.setdefault(shape[k], []).append(k)
        return found

    found, bodies = [], [(0, 0)]  # a stack of its own: a limb may have more joints than Python's has room for
    while bodies:
        i, k = bodies.pop()
        others = by_shape(k)
        for name, joints in by_shape(i).items():
            if i == k:  # limbs of one body: two and two, and the last one may be left over
                pairs = zip(joints[::2], [*joints[1::2], joints[-1]], strict=False)
            else:
                pairs = zip(joints, others[name], strict=True)
            for pair in pairs:
                bodies.append(pair)
                if pair[0] != pair[1]:
                    found.append(pair)
    return found


def similar_inputs(robot: Robot, kinds: Sequence[bool | None]) -> list[tuple[int, int, int]]:
    """Places of the coordinates and velocities of joints that are alike: (input, offset, other offset).

    Args:
        robot: the robot; none are found where its joints are coupled.
        kinds: for each input of a kernel True where it is a configuration (nq,), False where it is a velocity
            or joint forces (nv,), None elsewhere.
    """
    if robot.coupling is not None:
        return []
    pairs, found = similar_joints(robot.tree), []
    for k, kind in enumerate(kinds):
        slices = robot.tree.q_slice if kind else robot.tree.v_slice
        for i, j in pairs if kind is not None else ():
            offset = slices[j].start - slices[i].start
            found += [(k, n, n + offset) for n in range(slices[i].start, slices[i].stop)]
    return found
