"""Numbering, the sets lambda mu nu kappa p s, and the worked example of seeds 003."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robokit.errors import ModelError
from robokit.model import ModelBuilder, plain_tree
from robokit.model.tree import depth_first


def test_worked_example_of_source_003():
    # Printed in seeds 003: n_b = 7, n_q = 8; joint 8 closes the loop from 7 to 5.
    tree = plain_tree([0, 1, 2, 3, 4, 5, 3], loops=[(7, 5)])
    assert tree.n == 7 and tree.n_joints == 8
    assert tree.predecessor[1:] == (0, 1, 2, 3, 4, 5, 3, 7)
    assert tree.successor[1:] == (1, 2, 3, 4, 5, 6, 7, 5)
    assert tree.parent[1:] == (0, 1, 2, 3, 4, 5, 3)
    assert tree.parent[1:] == tuple(min(tree.predecessor[i], tree.successor[i]) for i in range(1, 8))
    assert tree.children == ((1,), (2,), (3,), (4, 7), (5,), (6,), (), ())


def test_subtrees_and_supports_of_the_worked_example():
    tree = plain_tree([0, 1, 2, 3, 4, 5, 3], loops=[(7, 5)])
    assert [list(nu) for nu in tree.subtree] == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 2, 3, 4, 5, 6, 7],
        [2, 3, 4, 5, 6, 7],
        [3, 4, 5, 6, 7],
        [4, 5, 6],
        [5, 6],
        [6],
        [7],
    ]
    assert tree.support == (
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        (1, 2, 3, 4, 5),
        (1, 2, 3, 4, 5, 6),
        (1, 2, 3, 7),
    )


def test_worked_example_through_the_builder():
    # The same mechanism by names, joints given in a jumbled order: numbering is the builder's work.
    b = ModelBuilder("source_003")
    for name in ("L6", "L7", "L0", "L5", "L1", "L4", "L2", "L3"):
        b.link(name, 1.0)
    for parent, child in (("L5", "L6"), ("L0", "L1"), ("L3", "L4"), ("L2", "L3"), ("L4", "L5"), ("L1", "L2")):
        b.joint(f"to_{child}", "revolute", parent, child)
    b.joint("to_L7", "revolute", "L3", "L7")
    b.loop_joint("loop", "revolute", "L7", "L5")
    robot = b.build()
    tree = robot.tree
    assert tree.predecessor[1:] == (0, 1, 2, 3, 4, 5, 3, 7)
    assert tree.successor[1:] == (1, 2, 3, 4, 5, 6, 7, 5)
    assert [robot.body_name(i) for i in range(8)] == [f"L{i}" for i in range(8)]
    assert robot.joint_names == tuple(f"to_L{i}" for i in range(1, 8))
    assert robot.loop_joints[0].number == 8


@st.composite
def parents(draw):
    n = draw(st.integers(1, 25))
    return [draw(st.integers(0, i - 1)) for i in range(1, n + 1)]


def renumbered(parent):
    """A depth-first tree of any parent array."""
    old = depth_first([-1, *parent])
    new = {o: k for k, o in enumerate(old)}
    return plain_tree([new[parent[o - 1]] for o in old[1:]])


@given(parents())
def test_numbering_is_regular_and_subtrees_are_contiguous(parent):
    tree = renumbered(parent)
    for i in range(1, tree.n + 1):
        assert tree.parent[i] < i
        below = {i}
        for j in range(i + 1, tree.n + 1):
            if tree.parent[j] in below:
                below.add(j)
        assert below == set(tree.subtree[i])
        assert list(tree.subtree[i]) == list(range(i, i + len(below)))


@given(parents())
def test_sets_agree_with_each_other(parent):
    tree = renumbered(parent)
    for i in range(1, tree.n + 1):
        assert i in tree.children[tree.parent[i]]
        assert tree.support[i][-1] == i and len(set(tree.support[i])) == len(tree.support[i])
        for j in range(1, tree.n + 1):
            assert (j in tree.support[i]) == (i in tree.subtree[j])
    assert sorted(c for mu in tree.children for c in mu) == list(range(1, tree.n + 1))
    assert list(tree.inward()) == list(tree.outward())[::-1]


@given(parents())
def test_children_keep_their_given_order(parent):
    order = depth_first([-1, *parent])
    position = {node: k for k, node in enumerate(order)}
    for node in range(len(parent) + 1):
        mine = [i for i, p in enumerate(parent, 1) if p == node]
        assert [position[i] for i in mine] == sorted(position[i] for i in mine)


@pytest.mark.parametrize(
    ("parent", "loops", "message"),
    [
        ([0, 3, 1], (), "regular numbering"),
        ([0, 1, 0, 1], (), "depth first"),
        ([0, 1], [(0, 3)], "two different bodies"),
        ([0, 1], [(2, 2)], "two different bodies"),
    ],
)
def test_a_tree_refuses_what_is_not_one(parent, loops, message):
    with pytest.raises(ModelError, match=message):
        plain_tree(parent, loops)


def test_dof_parents_of_joints_with_several_degrees_of_freedom():
    b = ModelBuilder("hand")
    for name in ("palm", "ball", "rod", "plate", "tip"):
        b.link(name, 1.0)
    b.joint("j1", "spherical", "palm", "ball").joint("j2", "revolute", "ball", "rod")
    b.joint("j3", "planar", "ball", "plate").joint("j4", "cylindrical", "rod", "tip")
    robot = b.build("floating")
    # base 0-5, ball 6-8, rod 9, tip 10-11 (depth first), plate 12-14
    assert robot.joint_names == ("floating_base", "j1", "j2", "j4", "j3")
    assert robot.tree.dof_parent == (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 12, 13)


def test_a_chain_of_two_thousand_bodies_needs_no_recursion():
    from ladder import Plain

    n = 2000
    b = ModelBuilder("rope")
    b.link("link0")
    for i in range(1, n + 1):
        b.link(f"link{i}", 0.01, (0, 0, -0.005), np.eye(3) * 1e-6)
        b.joint(f"joint{i}", "revolute", f"link{i - 1}", f"link{i}", axis=(0, 1, 0))
    robot = b.build()
    assert robot.nbodies == robot.nv == n
    assert robot.tree.parent[-1] == n - 1 and robot.tree.dof_parent[-1] == n - 2
    assert robot.tree.subtree[1] == range(1, n + 1)
    # Straight down it hangs still; no joint has to hold anything.
    assert np.abs(Plain(robot).gravity(robot.neutral())).max() == 0.0
    assert robot.integrate(robot.neutral(), np.ones(n)).shape == (n,)
