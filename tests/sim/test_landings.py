"""Impacts without restitution act whole in the step in which something lands, whenever in it that is."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Robot, Shape


def a_box() -> Robot:
    edges = np.array([0.1, 0.14, 0.2])
    inertia = np.diag(edges @ edges - edges**2) / 12.0
    return (
        ModelBuilder("box")
        .link("b", 1.0, inertia=inertia, collisions=[Shape(Box(tuple(edges)))])
        .build("floating")
    )


def lowest(box: Robot, q: np.ndarray) -> float:
    R = rk.forward_kinematics(box, q)["b"][0]
    return float(q[6] - np.abs(R[2]) @ [0.05, 0.07, 0.1])


@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_what_an_impact_leaves_hardly_depends_on_when_in_the_step_it_lands(seed: int, dt: float) -> None:
    """A box comes onto a corner without turning, at 1 m/s, sliding: spins afterwards differed by 0.2 to 0.7
    rad/s when an impact was spread over two steps, with any dt.
    """
    rng, box, ground = np.random.default_rng(seed), a_box(), rk.Ground(friction=0.5)
    q, v, turn = box.neutral(), np.zeros(6), rng.standard_normal(4)
    q[:4] = turn / np.linalg.norm(turn)
    v[3:] = rk.forward_kinematics(box, q)["b"][0].T @ [*rng.uniform(-1.0, 1.0, 2), -1.0]
    spins = []
    for share in np.linspace(0.0, 1.0, 9)[:-1]:
        q[6] += 20.0 * dt + share * dt - lowest(box, q)
        run = rk.simulate(box.with_gravity([0.0, 0.0, 0.0]), q, v, 26.0 * dt, dt, ground=ground)
        spins.append(run.v[-1, :3])
    assert np.abs(spins).max() > 1.0
    assert np.ptp(spins, axis=0).max() < 0.02


def test_what_lands_somewhere_leaves_other_contacts_as_they_are() -> None:
    """One box slides while another one, far away, lands or stays in the air."""
    box = a_box()
    world = rk.together({"slides": box, "falls": box})
    near, far = box.neutral(), box.neutral()
    near[6], far[4] = 0.1, 40.0
    v = np.zeros(12)
    v[3:5] = 2.0, 1.0
    ends = []
    for height in (0.11, 1.0):
        far[6] = height
        run = rk.simulate(world, np.r_[near, far], v, 0.1, 1e-3, ground=True, self_collision=True)
        ends.append(run)
    lands, stays = (run.contacts.links for run in ends)
    assert "falls/b" in lands and "falls/b" not in stays
    for part in (run.q[:, :7] for run in ends), (run.v[:, :6] for run in ends):
        a, b = part
        assert np.abs(a - b).max() < 1e-6


def test_angular_momentum_balances_where_several_bodies_land_at_once() -> None:
    """About the centre of mass of all, while each goes on at a velocity of its own: it was 7e-3 N m s off."""
    rng, box = np.random.default_rng(0), a_box()
    world = rk.together({f"{k}": box for k in range(4)})
    q = np.tile(box.neutral(), (4, 1))
    q[:, :4] = rng.normal(size=(4, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 6] = 0.3, 0.6, 0.9, 1.2
    v = 2.0 * rng.normal(size=24)
    how = {"ground": True, "self_collision": True, "record_every": 1}
    run = rk.simulate(world, q.ravel(), v, 0.6, 1e-3, **how)
    assert np.linalg.norm(run.contacts.moments, axis=-1).max() > 1.0
    assert run.summary["momentum_balance_angular"] < 1e-11


def test_a_joint_that_is_prescribed_goes_on_while_something_lands_far_away() -> None:
    """As alone: the impact of another group was not a number where it has no part in it."""
    arm = ModelBuilder("arm").link("base")
    for k, parent in enumerate(("base", "0")):
        arm.link(f"{k}", 1.0, (0.15, 0.0, 0.0), 0.01 * np.eye(3))
        place = rk.Placement(position=np.array([0.3 * k, 0.0, 0.0]))
        arm.joint(f"{k}", "revolute", parent, f"{k}", place, axis=(0, 1, 0))
    alone, q = arm.build(), a_box().neutral()
    q[4], q[6] = 40.0, -1.7

    def run(robots: dict[str, Robot], q: np.ndarray) -> rk.Trajectory:
        motion = rk.PrescribedMotion(next(iter(robots)) + "/0", lambda t: 0.3 * np.sin(5.0 * t))
        ground = rk.Ground(height=-2.0)
        return rk.simulate(rk.together(robots), q, duration=0.4, dt=1e-3, ground=ground, motions=motion)

    one, both = run({"arm": alone}, np.zeros(2)), run({"arm": alone, "box": a_box()}, np.r_[0.0, 0.0, q])
    assert both.contact_force[-1, 2] > 0.0
    np.testing.assert_allclose(both.q[:, :2], one.q, rtol=0.0, atol=1e-9)


def test_a_loop_stays_closed_while_something_lands_far_away() -> None:
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    q = a_box().neutral()
    q[4], q[6] = 40.0, -1.7

    def run(robots: dict[str, Robot], q: np.ndarray) -> rk.Trajectory:
        ground = rk.Ground(height=-2.0)
        return rk.simulate(rk.together(robots), q, duration=0.4, dt=1e-3, ground=ground)

    start = rk.close_loops(robot, [0.3, 0.0, 0.0])
    one, both = run({"bar": robot}, start), run({"bar": robot, "box": a_box()}, np.r_[start, q])
    assert both.contact_force[-1, 2] > 0.0 and np.ptp(one.q[:, 0]) > 0.1
    assert both.summary["loop_gap"] < 1e-8
    np.testing.assert_allclose(both.q[:, : robot.nq], one.q, rtol=0.0, atol=1e-4)


def nodding(damping: float = 1.0) -> Robot:
    """A box with a head that is a point, so that turning about the line to it takes next to no inertia."""
    inertia, neck = np.diag([0.02, 0.03, 0.04]), ("pitch", "roll", "yaw")
    builder = ModelBuilder("nods").link("b", 4.0, inertia=inertia, collisions=[Shape(Box((0.2, 0.3, 0.4)))])
    builder = builder.link("pitch", 0.1).link("roll", 0.1).link("yaw", 1.3, com=(0.02, 0.0, 0.11))
    places = (0.0, 0.0, 0.2), (0.01, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k, (link, place) in enumerate(zip(neck, places, strict=True)):
        where = Placement(position=np.array(place))
        parent, axis = ("b", *neck)[k], np.eye(3)[(1, 0, 2)[k]]
        builder = builder.joint(f"to {link}", "revolute", parent, link, where, axis=axis, damping=damping)
    return builder.build("floating")


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_dampers_alone_hold_what_hardly_has_an_inertia(restitution: float) -> None:
    """Without them in impacts, the head turned at up to 340 rad/s, and 9 of 16 falls did not stay finite."""
    robot, rows = nodding(), 16
    q = [rk.standing_configuration(robot, height=0.05, tilt=0.4, seed=k) for k in range(rows)]
    v = 0.5 * np.random.default_rng(0).normal(size=(rows, robot.nv))
    how = {"duration": 0.6, "dt": 1e-3, "ground": rk.Ground(restitution=restitution), "record_every": 1}
    single, double = (rk.rollout(robot, q, v, dtype=dtype, **how) for dtype in ("float32", "float64"))
    for run in (single, double):
        assert not len(run.failed) and np.abs(run.v[..., 6:]).max() < 40.0  # 35.4 with short steps
    assert np.median(np.abs(single.v - double.v).max(axis=(0, 2))) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weak_dampers_hold_what_has_no_inertia_at_all(dtype: str) -> None:
    """Its mobility is infinite, not that of one axis: else 11 and 13 of 16 falls did not stay finite."""
    robot, rows = nodding(1e-3), 16
    q = [rk.standing_configuration(robot, height=0.05, tilt=0.4, seed=k) for k in range(rows)]
    v = 0.5 * np.random.default_rng(0).normal(size=(rows, robot.nv))
    run = rk.rollout(robot, q, v, duration=0.3, dt=1e-3, ground=True, dtype=dtype)
    assert not len(run.failed) and run.summary["steps_not_settled"] == 0


def test_motors_far_from_their_limits_are_at_none_in_a_landing() -> None:
    """What they give is of both solutions."""
    robot = nodding()
    q, servo = rk.standing_configuration(robot, height=0.05, tilt=0.4), rk.PD(kp=60.0, kd=2.0, effort=1e6)
    run = rk.simulate(robot, q, duration=0.2, dt=1e-3, ground=True, actuators=servo)
    assert run.contact_force.any() and run.summary["saturated"] == {}


def test_motors_at_their_limits_that_move_what_hardly_has_an_inertia() -> None:
    """Each attempt of the solver went past the solution, and in free flight energy grew by 852 J."""
    robot = nodding(1e-2)
    q = rk.standing_configuration(robot, height=0.1, tilt=0.4, seed=1)
    v = 0.3 * np.random.default_rng(1).normal(size=robot.nv)
    ground, servo = rk.Ground(restitution=1.0), rk.PD(kp=60.0, kd=2.0, effort=5.0)
    run = rk.simulate(robot, q, v, duration=0.3, dt=1e-3, ground=ground, actuators=servo)
    assert run.summary["steps_not_settled"] == 0


def test_after_an_impact_friction_is_against_the_slip() -> None:
    """Friction takes less than µ N times the speed of a tossed cube that slides: by 2e-4 weights m/s when
    an impact bent the bristle, which friction followed in the next steps.
    """
    ground, rng = rk.Ground(friction=0.5), np.random.default_rng(2)
    cube = (
        ModelBuilder("cube")
        .link("b", 1.0, inertia=np.eye(3) / 600.0, collisions=[Shape(Box((0.1, 0.1, 0.1)))])
        .build("floating")
    )
    weight, worst = 9.81e-3, 0.0
    for _ in range(9):
        turn = rng.standard_normal(4)
        v = np.concatenate([rng.uniform(-5.0, 5.0, 3), rng.uniform(-1.0, 1.0, 3)])
        q = np.array([*turn / np.linalg.norm(turn), 0.0, 0.0, 0.2])
        simulation = rk.Simulation(cube, q, v, dt=1e-3, ground=ground)
        for _ in range(600):
            simulation.step()
            x = simulation._run.stepper.work
            n = int(x["n_of"][0])
            g, slip = x["c_g"][:n], x["c_u"][:n, :2] - x["contact_back"][:n, :2]
            bound = 0.5 * g[:, 2]
            slides = np.linalg.norm(g[:, :2], axis=1) > bound * (1.0 - 1e-9)
            lost = bound * np.linalg.norm(slip, axis=1) + np.einsum("ni,ni->n", g[:, :2], slip)
            worst = max(worst, (lost * slides).max(initial=0.0) / weight)
    assert worst < 2e-6
