"""Starts of falls: a small random change brings no bodies of the robot into each other."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.collision.detect import Detector
from robokit.collision.scene import scene
from robokit.collision.shapes import runs_of
from robokit.model import Capsule, ModelBuilder, Placement, Shape
from robokit.sim.starts import body_poses, moved_apart

SEEDS = range(12)

EXAMPLES = ("g1", "talos_reduced", "icub_reduced", "human")


def overlaps(robot, pairs, q) -> bool:
    detector = Detector(scene(robot, None, runs_of(pairs.bodies)).arrays, robot.nbodies + 1)
    R, p = body_poses(robot, q[None])
    return bool((detector.at(R[0], p[0])["contact_gap"] < 0.0).any())


@pytest.fixture(scope="module")
def humanoid():
    return rk.load_urdf(rk.find_robot("humanoid"), base="floating")


def _legs(left: tuple[float, float] = (-1.0, 1.0), right: tuple[float, float] = (-1.0, 1.0)) -> rk.Robot:
    """Two legs that hang side by side, 4 mm apart, and swing sideways inside their limits."""
    builder = ModelBuilder("legs")
    leg = (Shape(Capsule(0.05, 0.6), Placement(position=np.array([0, 0, -0.4]))),)
    builder.link("hip", mass=1.0, inertia=np.eye(3) * 0.01)
    for name, y, (lower, upper) in (("left", 0.052, left), ("right", -0.052, right)):
        builder.link(name, mass=1.0, com=(0, 0, -0.4), inertia=np.eye(3) * 0.01, collisions=leg)
        place = Placement(position=np.array([0, y, 0]))
        builder.joint(f"{name}_hip", "revolute", "hip", name, place, axis=(1, 0, 0), lower=lower, upper=upper)
    return builder.build("floating")


def _stands_apart(robot, seeds=SEEDS):
    """Asserts that no start overlaps; returns in how many one did before it was moved, and by how much."""
    pairs = rk.collision_pairs(robot)
    lower, upper = (
        np.array([getattr(j, side) for j in robot.joints if j.kind == "revolute"])
        for side in ("lower", "upper")
    )
    places = np.array([j.q_slice.start for j in robot.joints if j.kind == "revolute"])
    met, moved = 0, 0.0
    for seed in seeds:
        plain = rk.standing_configuration(robot, tilt=0.1, seed=seed, self_collision=False)
        q = rk.standing_configuration(robot, tilt=0.1, seed=seed)
        assert not overlaps(robot, pairs, q), (robot.name, seed)
        assert np.all((q[places] >= lower) & (q[places] <= upper))
        np.testing.assert_array_equal(q[:6], plain[:6])
        met += bool(overlaps(robot, pairs, plain))
        moved = max(moved, np.abs(q - plain)[7:].max())
    return met, moved


def test_no_seed_starts_the_humanoid_in_itself(humanoid):
    met, moved = _stands_apart(humanoid)
    assert met and moved < 0.05  # of a change with a standard deviation of 0.02


@pytest.mark.slow  # a step of the humanoid that touches itself takes long to compile
def test_the_humanoid_touches_itself_when_it_has_hit_the_ground(humanoid):
    first = next(x.time for x in _fall(humanoid, 0).events if x.kind == "collision")
    assert first > 0.05


def _fall(robot, seed):
    q = rk.standing_configuration(robot, tilt=0.07, height=0.02, seed=seed)
    return rk.simulate(robot, q, duration=0.3, ground=rk.Ground())


def test_where_nothing_overlaps_nothing_is_moved(humanoid):
    seed = next(
        k
        for k in SEEDS
        if not overlaps(
            humanoid,
            rk.collision_pairs(humanoid),
            rk.standing_configuration(humanoid, seed=k, self_collision=False),
        )
    )
    plain, q = (rk.standing_configuration(humanoid, seed=seed, self_collision=on) for on in (False, None))
    np.testing.assert_array_equal(q, plain)


def test_a_configuration_that_is_given_is_kept():
    robot = _legs()
    crossed = robot.neutral()
    crossed[7:] = (-0.1, 0.1)
    assert overlaps(robot, rk.collision_pairs(robot), crossed)
    np.testing.assert_array_equal(rk.standing_configuration(robot, q=crossed)[7:], crossed[7:])
    # A seed changes all of it anyway.
    shaken = rk.standing_configuration(robot, q=crossed, seed=0)
    assert not overlaps(robot, rk.collision_pairs(robot), shaken)


def test_a_joint_at_its_limit_leaves_the_way_to_the_others():
    robot, held = _legs(), _legs(right=(0.02, 1.0))
    pairs = rk.collision_pairs(robot)
    q = robot.neutral()
    q[7:] = (-0.06, 0.02)
    assert overlaps(robot, pairs, q)
    runs = runs_of(pairs.bodies)
    both, one = moved_apart(robot, runs, q), moved_apart(held, runs, q)
    assert not overlaps(robot, pairs, both) and not overlaps(held, pairs, one)
    assert both[8] < 0.02 and both[7] > -0.06
    assert one[8] == 0.02 and one[7] > both[7]


def test_limits_that_leave_out_the_neutral_configuration_bring_nothing_together():
    robot = _legs(left=(-1.0, -0.01), right=(-1.0, 1.0))
    pairs = rk.collision_pairs(robot)
    clamped = rk.standing_configuration(robot, self_collision=False)
    assert clamped[7] == -0.01 and overlaps(robot, pairs, clamped)
    q = rk.standing_configuration(robot)
    assert not overlaps(robot, pairs, q) and q[7] <= -0.01 and q[8] < 0.0


def test_what_cannot_be_parted_keeps_its_overlap():
    robot, stuck = _legs(), _legs(left=(-0.1, -0.1), right=(0.1, 0.1))
    pairs = rk.collision_pairs(robot)
    q = robot.neutral()
    q[7:] = (-0.1, 0.1)
    np.testing.assert_array_equal(moved_apart(stuck, runs_of(pairs.bodies), q), q)


@pytest.mark.parity
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_seed_starts_an_example_robot_in_itself(name):
    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"), base="floating")
    met, moved = _stands_apart(robot, range(6))
    assert moved < 0.1 and (met or name == "g1")  # whose limbs hang apart
