"""Which bodies can touch: found, printed, edited."""

import numpy as np
import pytest
import sim_models as m
from loop_robots import gripper

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Placement, Shape, Sphere


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


@pytest.mark.parametrize("reach", [0.4, 0.8])
def test_bodies_are_a_pair_whether_they_can_reach_each_other_or_not(reach):
    pairs = rk.collision_pairs(_rods(reach))
    assert pairs.pairs == (("rod0", "rod1"),) and not any(pairs.left_out.values())


def test_the_pairs_of_the_humanoid_are_all_but_neighbours():
    robot = m.humanoid()
    pairs = rk.collision_pairs(robot)
    for pair in (("left_hand", "left_thigh_upper"), ("right_hand", "pelvis"), ("head", "left_foot")):
        assert pair in pairs
        assert pair[::-1] in pairs
    for pair in (("left_forearm_upper", "left_arm_lower"), ("left_shank", "left_foot")):
        assert pair not in pairs
    out = sum(len(found) for found in pairs.left_out.values())
    count = len(pairs.shaped)
    assert len(pairs) + out == count * (count - 1) // 2 and count == 24
    assert rk.collision_pairs(robot) is pairs


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
def test_bodies_that_overlap_in_the_neutral_configuration_are_left_out(shape):
    touching = rk.collision_pairs(_turntables(0.199, shape))
    assert touching.left_out["touching in the neutral pose"] == ((1, 2),)
    assert rk.collision_pairs(_turntables(0.201, shape)).bodies == ((1, 2),)


def test_balls_of_a_cradle_that_meet_in_the_neutral_configuration_can_collide():
    """Rounding made nine of the ten pairs overlap, and the last ball stayed."""
    builder = ModelBuilder("cradle").link("frame")
    for k in range(5):
        hung = Shape(Sphere(0.1), Placement(position=np.array([0.0, 0.0, -1.0])))
        builder.link(f"ball{k}", 1.0, (0.0, 0.0, -1.0), np.eye(3) * 4e-3, collisions=(hung,))
        place = Placement(position=np.array([0.2 * k, 0.0, 0.0]))
        builder.joint(f"j{k}", "continuous", "frame", f"ball{k}", place, axis=(0, 1, 0))
    robot = builder.build("fixed")
    pairs = rk.collision_pairs(robot).with_law(restitution=1.0, friction=0.0)
    assert len(pairs) == 10
    trajectory = rk.simulate(robot, [0.5, 0, 0, 0, 0], duration=0.9, dt=1e-3, self_collision=pairs)
    assert abs(trajectory.v[-1, :4]).max() < 0.02 and trajectory.q[-1, 4] < -0.2  # the last one swings out


def test_an_old_argument_is_said_to_do_nothing():
    with pytest.warns(rk.SimulationWarning, match="samples does nothing"):
        assert rk.collision_pairs(_rods(0.4), samples=64).bodies == ((1, 2),)


def test_the_list_is_printed_and_edited():
    pairs = rk.collision_pairs(m.humanoid())
    assert "left_hand: " in str(pairs)
    assert f"{len(pairs)} pairs of 24 bodies" in repr(pairs)
    more = pairs.add("left_foot", "left_shank")
    assert len(more) == len(pairs) + 1
    assert ("left_shank", "left_foot") in more
    assert more.remove("left_shank", "left_foot") == pairs
    assert not any("head" in pair for pair in more.remove("head"))
    with pytest.raises(rk.UnknownName, match="left_hand"):
        pairs.add("left_hnad", "head")
    with pytest.raises(rk.ModelError, match="no pair"):
        pairs.remove("left_foot", "left_shank")
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
    pairs = rk.collision_pairs(robot)
    for side in ("left", "right"):
        pinned = sorted(robot.frame(f"{side}_{part}")[0] for part in ("finger", "inner"))
        assert tuple(pinned) in pairs.left_out["neighbours"]
