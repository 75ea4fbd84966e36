"""Boxes of robots that touch: where they meet, how they bounce, and that things rest on them."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape

SIZE = 0.2
MASSES = (1.0, 2.0)


def _sliders(turn: float = 0.0) -> rk.Robot:
    """Two cubes on one rail, their centres 0.5 m apart; the second turned about the vertical axis."""
    turned = Placement(rk.rotations.rotation_vector_to_matrix([0.0, 0.0, turn]))
    return m.sliders((Shape(Box((SIZE,) * 3)), Shape(Box((SIZE,) * 3), turned)), MASSES)


@pytest.mark.parametrize(
    ("restitution", "turn"), [(0.0, 0.0), (0.0, np.pi / 4), (0.5, 0.0), (0.5, np.pi / 4)]
)
def test_cubes_driven_at_each_other_meet_where_they_are_and_bounce(restitution, turn):
    robot, dt = _sliders(turn), 1e-3
    pairs = rk.collision_pairs(robot).with_law(restitution=restitution)
    v0 = np.array([1.0, -0.5])
    options = {"self_collision": pairs, "gravity": (0, 0, 0), "record_every": 1}
    run = rk.simulate(robot, v0=v0, duration=0.4, dt=dt, **options)
    gap = 0.5 - 0.5 * SIZE - 0.5 * SIZE * (np.cos(turn) + np.sin(turn)) + run.q[:, 1] - run.q[:, 0]
    # What bounces does so in the step in which it would meet.
    assert -1e-5 < gap.min() < (2.0 * dt if restitution else 1e-6)
    assert run.v[-1] @ MASSES == pytest.approx(v0 @ MASSES, abs=1e-13)
    assert (run.v[-1, 1] - run.v[-1, 0]) / 1.5 == pytest.approx(restitution, abs=0.005)


def _on_top(robot: rk.Robot, x: float, z: float, duration: float) -> rk.Trajectory:
    """Something falls 5 mm onto a cube that stands on the ground."""
    low = (m.box(SIZE, mass=2.0), Placement(position=np.array([0.0, 0.0, 0.5 * SIZE])))
    top = (robot, Placement(position=np.array([x, 0.0, SIZE + z + 0.005])))
    world = rk.together({"low": low, "top": top})
    return rk.simulate(world, duration=duration, dt=1e-3, ground=rk.Ground(), self_collision=True)


def test_a_ball_rests_on_the_box_of_another_robot():
    run = _on_top(m.ball(), 0.0, 0.1, 1.5)
    assert run.q[-1, 11:14] == pytest.approx([0.0, 0.0, -0.005], abs=2e-3)
    assert np.abs(run.v[-1]).max() < 1e-6


@pytest.mark.slow
def test_a_box_rests_on_a_box_unless_its_middle_is_over_the_edge():
    run = _on_top(m.box(0.1), 0.09, 0.05, 1.5)
    assert run.q[-1, 11:14] == pytest.approx([0.0, 0.0, -0.005], abs=2e-3)
    assert np.abs(run.v[-1]).max() < 1e-5
    run = _on_top(m.box(0.1), 0.12, 0.05, 1.5)
    assert run.q[-1, 13] < -SIZE + 0.01


@pytest.mark.slow
def test_a_tower_of_three_boxes_stands():
    places = ((0.0, 0.0, 0.1), (0.02, 0.01, 0.302), (-0.01, 0.0, 0.504))
    world = rk.together({f"b{k}": (m.box(), Placement(position=np.array(at))) for k, at in enumerate(places)})
    run = rk.simulate(world, duration=2.0, dt=1e-3, ground=rk.Ground(), self_collision=True)
    late = run.q[run.t > 1.5]
    assert np.abs(late - run.q[-1]).max() < 1e-6
    for k in range(3):
        assert run.q[-1, 7 * k + 4 : 7 * k + 7] == pytest.approx([0.0, 0.0, -0.0025 * k], abs=1.5e-3)


@pytest.mark.slow
def test_a_tower_of_six_boxes_has_points_enough_to_stand():
    """Five times four, more than the deepest twelve."""
    places = [(0.003 * (k % 2), 0.002 * (k % 3), 0.05 + 0.1 * k) for k in range(6)]
    tower = {f"b{k}": (m.box(0.1), Placement(position=np.array(at))) for k, at in enumerate(places)}
    run = rk.simulate(rk.together(tower), duration=2.0, dt=1e-3, ground=rk.Ground(), self_collision=True)
    assert np.abs(run.q[run.t > 1.5] - run.q[-1]).max() < 5e-6
    assert np.abs(run.q[-1].reshape(6, 7)[:, 4:]).max() < 1.5e-3


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [10.0, 50.0, 100.0])
def test_a_heavy_box_rests_on_a_light_one_that_it_overhangs(ratio):
    """5 kg, 3 cm off the middle; it wandered by centimetres at 50:1."""
    low = (m.box(SIZE, mass=5.0 / ratio), Placement(position=np.array([0.0, 0.0, 0.5 * SIZE])))
    top = (m.box(SIZE, mass=5.0), Placement(position=np.array([0.03, 0.0, 1.5 * SIZE + 1e-3])))
    world = rk.together({"low": low, "top": top})
    run = rk.simulate(world, duration=2.0, dt=1e-3, ground=rk.Ground(), self_collision=True, record_every=1)
    assert np.abs(run.q[run.t > 1.2] - run.q[-1]).max() < 5e-5
    assert np.abs(run.q[-1]).reshape(2, 7)[:, 4:].max() < 1.5e-3


def test_the_point_where_a_box_leans_on_another_does_not_go_from_face_to_face():
    """Its middle is 1 cm from the edge: it leans, and both faces are nearly equally far."""
    run = _on_top(m.box(0.1), 0.09, 0.05, 1.0)
    late = run.t > 0.6
    assert np.abs(run.v[late]).max() < 1e-5
    assert np.abs(run.q[late] - run.q[-1]).max() < 1e-7


def test_boxes_that_tumble_into_each_other_keep_their_momentum_and_gain_no_energy():
    places = {"a": (0.0, 0.0, 0.0), "b": (0.5, 0.05, 0.02)}
    world = rk.together({k: (m.box(), Placement(position=np.array(at))) for k, at in places.items()})
    v0 = 2.0 * np.random.default_rng(0).normal(size=12)
    v0[3:6], v0[9:12] = (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)
    pairs = rk.collision_pairs(world).with_law(restitution=0.3)
    run = rk.simulate(world, v0=v0, duration=0.8, dt=1e-3, gravity=(0, 0, 0), self_collision=pairs)
    assert run.summary["dissipated_by_collision"] > 0.05 * run.energy.kinetic[0]
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-9
    assert np.diff(run.energy.kinetic).max() < 1e-3 * run.energy.kinetic[0]


@pytest.mark.parametrize(("dt", "height", "gives"), [(1e-3, 0.1, 0.3e-3), (2e-3, 0.2, 4e-3)])
@pytest.mark.parametrize("share", [0.9, 1.12])
def test_a_box_on_a_cart_that_pulls_away_stays_or_slides_as_coulomb_says(share, dt, height, gives):
    """A cart of 20 kg gets a share of the acceleration at which a box of 2 kg on it slides."""
    mu, g, end, masses = 0.5, 9.81, 0.3, (20.0, 2.0)
    builder = ModelBuilder("cart")
    builder.link("rail").link(
        "cart", mass=masses[0], inertia=np.eye(3), collisions=(Shape(Box((2, 1, 0.2))),)
    )
    builder.joint("slide", "prismatic", "rail", "cart", Placement(position=np.array([0, 0, -0.1])), (1, 0, 0))
    size = np.array([0.2, 0.2, height])
    inertia = np.diag((size @ size - size**2) * masses[1] / 12.0)
    load = ModelBuilder("box").link("box", masses[1], inertia=inertia, collisions=(Shape(Box(tuple(size))),))
    place = Placement(position=np.array([0.0, 0.0, 0.5 * height]))
    world = rk.together({"cart": builder.build("fixed"), "box": (load.build("floating"), place)})
    pairs = rk.collision_pairs(world).with_law(friction=mu)
    pull = share * mu * g * masses[0] + min(share, 1.0) * mu * g * masses[1]
    push = rk.Push("cart/cart", (pull, 0.0, 0.0), start=0.5, duration=1.0)
    options = {"ground": rk.Ground(height=-5.0), "pushes": push, "joint_damping": 0.0, "record_every": 1}
    run = rk.simulate(world, duration=0.5 + end, dt=dt, self_collision=pairs, **options)
    before = round(0.5 / dt)
    slipped = np.subtract(*(run.q[[-1, before], 0] - run.q[[-1, before], 5]))
    wanted = 0.5 * max(share - 1.0, 0.0) * mu * g * end**2
    # While it begins to, springs and bristles give way: in long steps a tall box rocks, and creeps by 1 mm.
    assert slipped == pytest.approx(wanted, abs=gives + 0.1 * wanted)
