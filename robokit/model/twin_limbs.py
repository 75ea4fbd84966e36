"""Limbs that are alike: the left and the right leg of a robot, two fingers of a hand.

Two subtrees are alike if their joints are of the same kinds, in the same arrangement. Lengths, inertias and
the senses of axes may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from robokit.model.robot import Robot
from robokit.model.tree import Tree


def twin_joints(tree: Tree) -> list[tuple[int, int]]:
    """Joints of limbs that hang on one body and are alike: (joint, that in its place in the other limb)."""
    children: list[list[int]] = [[] for _ in range(tree.n + 1)]
    for i in range(1, tree.n + 1):
        children[tree.parent[i]].append(i)
    names: dict[Any, int] = {}
    shape = [0] * (tree.n + 1)
    for i in range(tree.n, 0, -1):
        joint = tree.joint[i]
        below = tuple(sorted(shape[k] for k in children[i]))
        shape[i] = names.setdefault((joint.kind.name, joint.S.axes, below), len(names))

    def alike(rows: list[int], others: list[int]) -> Iterator[tuple[int, int]]:
        """Twins among subtrees that hang on two bodies."""
        left = list(others)
        for i in rows:
            k = next((k for k in left if shape[k] == shape[i]), None)
            if k is not None:
                left.remove(k)
                yield i, k
                yield from alike(children[i], children[k])

    def within(i: int) -> Iterator[tuple[int, int]]:
        """Twins among subtrees that hang on one body, and further out."""
        left = list(children[i])
        while left:
            first = left.pop(0)
            k = next((k for k in left if shape[k] == shape[first]), None)
            if k is None:
                yield from within(first)
            else:
                left.remove(k)
                yield from alike([first], [k])

    return list(within(0))


def twin_inputs(robot: Robot, kinds: Sequence[bool | None]) -> list[tuple[int, int, int]]:
    """Places of the coordinates and velocities of twin joints: (input, offset, other offset).

    Args:
        robot: the robot; none are found where its joints are coupled.
        kinds: for each input of a kernel True where it is a configuration (nq,), False where it is a velocity
            or joint forces (nv,), None elsewhere.
    """
    if robot.coupling is not None:
        return []
    pairs, found = twin_joints(robot.tree), []
    for k, kind in enumerate(kinds):
        slices = robot.tree.q_slice if kind else robot.tree.v_slice
        for i, j in pairs if kind is not None else ():
            offset = slices[j].start - slices[i].start
            found += [(k, n, n + offset) for n in range(slices[i].start, slices[i].stop)]
    return found
