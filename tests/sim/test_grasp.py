"""A gripper whose one finger mimics the other closes on a box, holds it by friction and lifts it."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Mimic, ModelBuilder, Placement, Shape, couple

SIZE, MASS = (0.08, 0.04, 0.06), 0.5  # of the box


def grasp(together: bool) -> rk.Robot:
    """The gripper over the box; its second finger follows the first, or has a motor of its own."""
    builder = ModelBuilder("gripper").link("rail", 1.0).link("hand", 1.0, inertia=np.eye(3) * 0.01)
    builder.joint(
        "lift", "prismatic", "rail", "hand", axis=(0, 0, 1), lower=-1, upper=1, effort=1e4, velocity=10
    )
    limits = {"lower": 0.0, "upper": 0.08, "effort": 100.0, "velocity": 1.0}
    for name, side in (("left", 1.0), ("right", -1.0)):
        shape = Shape(Box((0.02, 0.04, 0.08)))
        builder.link(name, 0.1, inertia=np.eye(3) * 1e-4, collisions=(shape,))
        place = Placement(position=np.array([0.08 * side, 0.0, 0.0]))
        mimic = Mimic("left_slide", 1.0, 0.0) if together and side < 0.0 else None
        builder.joint(f"{name}_slide", "prismatic", "hand", name, place, (-side, 0, 0), mimic=mimic, **limits)
    gripper = builder.build("fixed")
    square = np.array(SIZE) ** 2
    builder = ModelBuilder("box")
    builder.link(
        "box", MASS, inertia=np.diag(square.sum() - square) * MASS / 12.0, collisions=(Shape(Box(SIZE)),)
    )
    above, on_ground = (Placement(position=np.array([0.0, 0.0, z])) for z in (0.05, 0.5 * SIZE[2]))
    gripper = couple(gripper) if together else gripper
    return rk.together({"gripper": (gripper, above), "box": (builder.build("floating"), on_ground)})


def run(world, friction, force, duration, dt=1e-3):
    slides = [name for name in ("gripper/left_slide", "gripper/right_slide") if name in world.joint_names]
    slides = [name for name in slides if world.joint(name).v_slice.stop > world.joint(name).v_slice.start]
    up = rk.Keyframes(np.array([0.0, 0.5, 2.5]), ("gripper/lift",), np.array([[0.0], [0.0], [0.1]]))
    actuators = [
        rk.Torque(joints=slides, target=force),
        rk.PD(kp={"gripper/lift": 2e4}, kd={"gripper/lift": 2e3}, target=up),
    ]
    pairs = rk.collision_pairs(world).with_law(friction=friction)
    options = {"joint_damping": 0.0, "ground": rk.Ground(), "self_collision": pairs, "actuators": actuators}
    return rk.simulate(world, duration=duration, dt=dt, **options)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("dt", [1e-3, 2e-3, 4e-3])
@pytest.mark.parametrize("force", [5.0, pytest.param(20.0, marks=pytest.mark.slow)])
def test_fingers_at_their_largest_speed_are_stopped_by_the_box(together, dt, force):
    """They are not thrown back by ten times their effort, where the line of their largest speed ends."""
    closed = run(grasp(together), 0.8, force, 0.3, dt)
    assert closed.v[:, 1].max() == pytest.approx(1.0, abs=0.01) and closed.v[:, 1].min() > -0.1
    assert closed.q[-1, 1] == pytest.approx(0.03, abs=1e-3)
    assert np.abs(closed.v[-1]).max() < 0.1


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_box_is_lifted_if_friction_of_both_fingers_carries_it(share):
    """The force of the one motor is shared by the fingers: friction gives mu times it, all in all."""
    friction = 0.5
    lifted = run(grasp(True), friction, share * MASS * m.G / friction, 3.2)
    height = lifted.q[:, -1]
    if share > 1.0:
        late = lifted.t > 2.9
        assert np.ptp(height[late]) < 1e-6 and height[-1] == pytest.approx(0.1, abs=0.01)
    else:
        assert height[-1] == pytest.approx(0.0, abs=1e-3)


def test_what_joints_follow_others_do_not_hide_who_can_meet():
    """The box comes after a joint without coordinates of its own: its place is found all the same."""
    pairs = rk.collision_pairs(grasp(True)).pairs
    assert ("gripper/left", "box/box") in pairs and ("gripper/right", "box/box") in pairs
