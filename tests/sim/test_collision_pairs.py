"""Which bodies can meet: found, printed, edited."""

import numpy as np
import pytest
import sim_models as m
from loop_robots import gripper

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Placement, Shape
from robokit.sim.collide import body_shapes


def _rods(reach: float) -> rk.Robot:
    """Two rods on two pivots 1 m apart, each reaching so far."""
    builder = ModelBuilder("rods")
    builder.link("frame")
    rod = (Shape(Capsule(0.02, reach), Placement(position=np.array([0, 0, 0.5 * reach]))),)
    for k in range(2):
        builder.link(f"rod{k}", mass=1.0, inertia=np.eye(3) * 0.01, collisions=rod)
        place = Placement(position=np.array([float(k), 0.0, 0.0]))
        builder.joint(f"pivot{k}", "continuous", "frame", f"rod{k}", place, axis=(0, 1, 0))
    return builder.build("fixed")


def test_rods_that_reach_each_other_are_a_pair_and_short_ones_are_none():
    assert rk.collision_pairs(_rods(0.8)).pairs == (("rod0", "rod1"),)
    short = rk.collision_pairs(_rods(0.4))
    assert len(short) == 0
    assert short.left_out["never met"] == ((1, 2),)


def test_the_pairs_of_the_humanoid_are_those_one_would_name():
    pairs = rk.collision_pairs(m.humanoid())
    for pair in (("left_hand", "left_thigh_upper"), ("right_hand", "pelvis"), ("left_shank", "right_shank")):
        assert pair in pairs
        assert pair[::-1] in pairs
    # These met in no sample: their distance was descended.
    assert ("left_forearm_lower", "right_foot") in pairs and ("head", "left_shank") in pairs
    for pair in (
        ("left_forearm_upper", "left_arm_lower"),
        ("left_shank", "left_foot"),
        ("head", "left_foot"),
    ):
        assert pair not in pairs
    assert rk.collision_pairs(m.humanoid()) is pairs


def test_no_pair_touches_in_the_neutral_configuration_nor_where_it_has_slack():
    robot = m.humanoid()
    pairs = rk.collision_pairs(robot)
    names = {name for pair in pairs for name in pair}
    assert len(names) > 15
    gaps = _gaps(robot, robot.neutral())
    for i, j in pairs.bodies:
        assert gaps(i, j) > 0.0 or (i, j) in _slack(pairs)
    assert not pairs.slack


def _slack(pairs):
    """The largest slack of shapes, by bodies."""
    found = {}
    for (first, second), overlap in pairs.slack.items():
        bodies = (pairs.shapes[first].body, pairs.shapes[second].body)
        found[bodies] = max(found.get(bodies, 0.0), overlap)
    return found


def _gaps(robot, q):
    from robokit.sim.collide.gaps import Gaps

    gaps = Gaps(robot, body_shapes(robot), q[None])
    return lambda i, j: gaps.nearest(i, j, 0)


def _turntables(apart: float, shape: Box | Cylinder) -> rk.Robot:
    """Two bodies, long along x, that turn about vertical axes so far from each other."""
    builder = ModelBuilder("arms")
    builder.link("frame")
    lying = Placement(rotation=np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
    for k, x in enumerate((0.0, apart)):
        builder.link(f"body{k}", mass=1.0, inertia=np.eye(3), collisions=(Shape(shape, lying),))
        place = Placement(position=np.array([x, 0.0, 0.0]))
        builder.joint(f"j{k}", "continuous", "frame", f"body{k}", place, axis=(0, 0, 1))
    return builder.build("fixed")


@pytest.mark.parametrize("shape", [Box((0.1, 0.1, 0.2)), Cylinder(0.06, 0.2)])
def test_bodies_that_overlap_in_the_neutral_configuration_are_left_out_or_given_slack(shape):
    touching = rk.collision_pairs(_turntables(0.15, shape))
    assert touching.left_out["touching in the neutral pose"] == ((1, 2),)
    near = rk.collision_pairs(_turntables(0.201, shape))
    assert near.bodies == ((1, 2),)
    # A box is itself; the capsule that stands for a cylinder is longer than it.
    assert (_slack(near).get((1, 2), 0.0) > 0.0) == isinstance(shape, Cylinder)


def test_the_list_is_printed_and_edited():
    pairs = rk.collision_pairs(m.humanoid())
    assert "left_hand: " in str(pairs)
    assert f"{len(pairs)} pairs of 24 bodies" in repr(pairs)
    more = pairs.add("left_foot", "head")
    assert len(more) == len(pairs) + 1
    assert ("head", "left_foot") in more
    assert more.remove("head", "left_foot") == pairs
    assert not any("head" in pair for pair in more.remove("head"))
    with pytest.raises(rk.UnknownName, match="left_hand"):
        pairs.add("left_hnad", "head")
    with pytest.raises(rk.ModelError, match="no pair"):
        pairs.remove("left_foot", "head")
    with pytest.raises(rk.ModelError, match="one body"):
        pairs.add("head", "head")
    with pytest.raises(rk.ModelError, match="no shape"):
        pairs.add("lumbar", "head")


@pytest.mark.parametrize("what", [None, "humanoid", 3])
def test_only_a_robot_has_pairs(what):
    with pytest.raises(rk.WrongType, match="robot"):
        rk.collision_pairs(what)


def test_bodies_that_a_loop_joint_connects_are_neighbours():
    # The tips of a gripper's fingers meet; a finger never meets its own inner knuckle, to which it is pinned.
    robot = gripper()
    pairs = rk.collision_pairs(robot, samples=64)
    for side in ("left", "right"):
        pinned = sorted(robot.frame(f"{side}_{part}")[0] for part in ("finger", "inner"))
        assert tuple(pinned) in pairs.left_out["neighbours"]
