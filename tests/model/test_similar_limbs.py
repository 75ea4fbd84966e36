"""Limbs that are alike: found from the tree alone."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from for_each import for_each

import robokit as rk
from robokit.model.edit import couple
from robokit.model.parts import Mimic
from robokit.model.regrouping import similar_inputs, similar_joints


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_left_limbs_have_right_ones(name):
    tree = rk.load_urdf(rk.find_robot(name), base="floating").tree
    pairs = similar_joints(tree)
    assert len({i for pair in pairs for i in pair}) == 2 * len(pairs)
    for i, k in pairs:
        assert tree.name[i].replace("left", "right") == tree.name[k]
        parents = tree.parent[i], tree.parent[k]
        assert parents in pairs or parents[0] == parents[1]
    sided = [i for i, link in enumerate(tree.name) if "left" in link or "right" in link]
    assert len(sided) == 2 * len(pairs)


@pytest.mark.parametrize("name", ["chain", "arm", "double_pendulum"])
def test_a_chain_has_none(name):
    assert not similar_joints(rk.load_urdf(rk.find_robot(name)).tree)


def limbs(*lengths, base="floating"):
    """A base with straight limbs of so many hinges."""
    builder = rk.ModelBuilder("limbs").link("base", mass=1.0, inertia=np.eye(3))
    for k, length in enumerate(lengths):
        names = ["base", *(f"{k} {n}" for n in range(length))]
        for parent, name in pairwise(names):
            builder.link(name, mass=1.0, inertia=np.eye(3))
            builder.joint(name, "continuous", parent, name, axis=(0, 0, 1))
    return builder.build(base)


@for_each("lengths, found", [((), 0), ((3,), 0), ((2, 2), 2), ((2, 1, 2), 2), ((1, 1, 1), 1), ((1,) * 4, 2)])
@for_each("base", ["fixed", "floating"])
def test_limbs_of_one_body_are_paired_two_and_two(lengths, found, base):
    pairs = similar_joints(limbs(*lengths, base=base).tree)
    joints = [i for pair in pairs for i in pair]
    assert len(pairs) == found and len(set(joints)) == len(joints)


def test_limbs_may_have_more_joints_than_pythons_stack_has_room():
    n = sys.getrecursionlimit() + 100
    assert not similar_joints(limbs(n).tree)
    assert len(similar_joints(limbs(n, n).tree)) == n


def test_places_are_those_of_the_joints():
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    found = similar_inputs(robot, [True, None, False])
    tree = robot.tree
    pairs = similar_joints(tree)
    assert {k for k, *_ in found} == {0, 2}
    assert [(a, b) for k, a, b in found if k == 2] == [
        (tree.v_slice[i].start, tree.v_slice[k].start) for i, k in pairs
    ]
    assert [(a, b) for k, a, b in found if k == 0] == [
        (tree.q_slice[i].start, tree.q_slice[k].start) for i, k in pairs
    ]


def two(kind, axis, **more):
    """A base with two arms, of which the second has a joint of that kind and axis, or follows the first."""
    builder = rk.ModelBuilder("two").link("base", mass=1.0, inertia=np.eye(3))
    arms = ("left", "revolute", (0, 0, 1), {}), ("right", kind, axis, more)
    for name, how, along, rest in arms:
        builder.link(name, mass=1.0, inertia=np.eye(3))
        builder.joint(name, how, "base", name, axis=along, lower=-1.0, upper=1.0, **rest)
    return builder.build(base="floating")


def test_joints_of_another_kind_or_axis_are_not_alike():
    assert similar_joints(two("revolute", (0, 0, 1)).tree) == [(2, 3)]
    assert similar_joints(two("revolute", (0, 0, -1)).tree) == [(2, 3)]
    assert not similar_joints(two("revolute", (0, 1, 0)).tree)
    assert not similar_joints(two("prismatic", (0, 0, 1)).tree)


def test_coupled_joints_are_left_alone():
    robot = couple(two("revolute", (0, 0, 1), mimic=Mimic("left", -1.0)))
    assert robot.coupling is not None
    assert not similar_inputs(robot, [True, False])
