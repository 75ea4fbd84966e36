"""Limbs that are alike: the left and the right leg of a robot, two fingers of a hand.

Two subtrees are alike if their joints are of the same kinds, in the same arrangement. Lengths, inertias and
the senses of axes may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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


def twin_inputs(tree: Tree, kinds: Sequence[bool | None]) -> list[tuple[int, int, int]]:
    """Places of the coordinates and velocities of twin joints: (input, offset, other offset).

    Args:
        tree: the robot's.
        kinds: for each input whether it is a configuration (nq,); False for velocities (nv,), None for others.
    """
    pairs = twin_joints(tree)
    found = []
    for k, kind in enumerate(kinds):
        if kind is not None:
            slices = tree.q_slice if kind else tree.v_slice
            for i, j in pairs:
                found += [(k, slices[i].start + n, slices[j].start + n) for n in range(len_of(slices[i]))]
    return found


def len_of(part: slice) -> int:
    """Scalars in a slice."""
    return part.stop - part.start
