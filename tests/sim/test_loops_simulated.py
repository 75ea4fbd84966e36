"""Closed loops in simulations: they stay closed, keep energy and momentum, and move as other methods say."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from loop_robots import (
    KINDS,
    bennett,
    closed_four_bar,
    delta,
    free_four_bar,
    gripper,
    moving_arms,
    nearly_stretched,
    parallelogram,
    peaucellier,
    spatial_loop,
)
from scipy.integrate import solve_ivp
from sim_models import ROBOTS, G

import robokit as rk
from robokit.model import ModelBuilder, Placement
from robokit.sim.starts import distances, gaps, tangent


class OneCoordinate:
    """The four-bar by its crank angle alone, planar: x to the right, z up, angles clockwise from z."""

    CRANK, COUPLER, ROCKER, GROUND = 0.15, 0.39, 0.325, 0.485

    def __init__(self, robot: rk.Robot) -> None:
        links = [robot.link(name) for name in ("crank", "coupler", "rocker")]
        self.bodies = [(x.mass, x.com[[0, 2]], x.inertia[1, 1]) for x in links]

    def angles(self, crank):
        """Of the three bodies' frames, against the pose of the file."""
        tip = self.CRANK * np.array([np.sin(crank), np.cos(crank)])
        d = np.array([self.GROUND, 0.0]) - tip
        reach = np.sqrt(d @ d)
        far = (self.COUPLER**2 + reach**2 - self.ROCKER**2) / (2.0 * self.COUPLER * reach)
        to_ground = np.arctan(d[0] / d[1]) if d[1].real > 0 else np.arctan(d[0] / d[1]) + np.pi
        coupler = to_ground - np.arccos(far)  # clockwise from z to the far pin
        end = tip + self.COUPLER * np.array([np.sin(coupler), np.cos(coupler)])
        e = end - np.array([self.GROUND, 0.0])
        rocker = np.arctan(e[0] / e[1])
        return crank, coupler - np.arctan2(0.36, 0.15), rocker - np.arctan2(-0.125, 0.3)

    def places(self, crank):
        """Centres of mass, and the angles."""
        a = self.angles(crank)
        turn = [np.array([[np.cos(x), np.sin(x)], [-np.sin(x), np.cos(x)]]) for x in a]
        tip = self.CRANK * np.array([np.sin(crank), np.cos(crank)])
        feet = [np.zeros(2), tip, np.array([self.GROUND, 0.0])]
        return [p + R @ c for p, R, (_, c, _) in zip(feet, turn, self.bodies, strict=True)], a

    def inertia(self, crank: float) -> float:
        p, a = self.places(crank + 1e-30j)
        return sum(
            m * np.sum((x.imag / 1e-30) ** 2) + I * (w.imag / 1e-30) ** 2
            for (m, _, I), x, w in zip(self.bodies, p, a, strict=True)
        )

    def rate(self, _t, state):
        crank, speed = state
        h = 1e-4
        slope = (self.inertia(crank + h) - self.inertia(crank - h)) / (2.0 * h)
        p, _ = self.places(crank + 1e-30j)
        lift = sum(m * G * x[1].imag / 1e-30 for (m, _, _), x in zip(self.bodies, p, strict=True))
        return [speed, -(0.5 * slope * speed**2 + lift) / self.inertia(crank)]


@cache
def one_coordinate() -> OneCoordinate:
    return OneCoordinate(free_four_bar())


SWUNG = [0.5, 1.0, 1.5]  # times to compare at [s]


@cache
def cranks_by_one_coordinate(start: float) -> np.ndarray:
    rate = one_coordinate().rate
    return solve_ivp(rate, (0.0, SWUNG[-1]), [start, 0.0], "DOP853", SWUNG, rtol=1e-10, atol=1e-10).y[0]


@pytest.mark.parametrize(
    ("integrator", "most", "energy"),
    [("rkmk4", 2e-6, 2e-8), ("contact", 2e-3, 1e-4), ("energy_momentum", 2e-6, 1e-13)],
)
def test_the_four_bar_swings_as_its_one_coordinate_says(integrator, most, energy):
    robot, model = free_four_bar(), one_coordinate()
    q = closed_four_bar(robot)
    np.testing.assert_allclose(model.angles(q[0]), [q[0], q[0] + q[1], q[2]], atol=1e-12)
    run = rk.simulate(robot, q, duration=5.0, dt=1e-3, integrator=integrator)
    assert run.summary["loop_gap"] < 1e-12 and run.summary["loop_error"] < 1e-12
    assert run.summary["energy_balance"] < energy
    assert run.energy.kinetic.max() > 2.4
    found, expected = np.interp(SWUNG, run.t, run.q[:, 0]), cranks_by_one_coordinate(q[0])
    np.testing.assert_allclose(found, expected, atol=most)
    assert np.abs(expected - q[0]).max() > 1.0


def test_the_shipped_four_bar_comes_to_its_ledger_with_damping_and_friction():
    robot = rk.load_urdf(ROBOTS / "four_bar.urdf")
    run = rk.simulate(robot, closed_four_bar(robot), duration=3.0, dt=1e-3, record_every=10)
    assert run.summary["loop_gap"] < 1e-12
    assert run.energy.dissipated[-1] > 0.5
    assert run.summary["energy_balance"] < 1e-6


@pytest.mark.parametrize("integrator", ["rkmk4", "contact"])
def test_loop_forces_are_those_of_statics(integrator):
    # A beam on two cranks, its weight above the second, held by a torque on the first.
    robot, angle = parallelogram(2), 0.4
    torque = (2 * 1.0 * 0.25 + 2.0 * 0.5) * G * np.sin(angle)
    run = rk.simulate(
        robot,
        [angle, -angle, angle],
        duration=0.05,
        dt=1e-3,
        integrator=integrator,
        controller=lambda t, q, v: [-torque, 0, 0],
    )
    assert np.abs(run.v).max() < 1e-12
    down = 2.0 * G
    along = -(0.25 * G * np.sin(angle) / 0.5 + down * np.sin(angle)) / np.cos(angle)
    for wrench in run.loop_forces["loop1"]:
        np.testing.assert_allclose(wrench, [0, 0, 0, along, 0, -down], atol=1e-9)


def test_redundant_cranks_swing_as_one_pendulum():
    robot, angle = parallelogram(4), 1.0
    q = np.array([angle, -angle, *[angle] * 3])
    run = rk.simulate(robot, q, duration=3.0, dt=1e-3, record_every=500)
    inertia = 4 * (0.02 + 0.25**2) + 2.0 * 0.25
    moment = (4 * 0.25 + 2.0 * 0.5) * G
    expected = solve_ivp(
        lambda t, x: [x[1], moment / inertia * np.sin(x[0])],
        (0, 3),
        [angle, 0],
        "DOP853",
        run.t,
        rtol=1e-11,
        atol=1e-11,
    )
    np.testing.assert_allclose(run.q[:, 0], expected.y[0], atol=1e-6)
    np.testing.assert_allclose(run.q, np.outer(run.q[:, 0], [1, -1, 1, 1, 1]), atol=1e-12)
    assert run.summary["loop_gap"] < 1e-12
    assert max(np.abs(f).max() for f in run.loop_forces.values()) < 500.0


def test_cranks_remain_parallel_where_their_loop_loses_rank():
    """With all links level two branches meet; what turns fast stays on its own, ten times in a second."""
    robot = parallelogram(2)
    turning = np.array([1.0 if name.startswith("hinge") else -1.0 for name in robot.joint_names])
    run = rk.simulate(robot, 0.0 * turning, 30.0 * turning, duration=1.0, dt=1e-3, joint_damping=0.0)
    cranks = turning > 0.0
    assert run.q[-1, cranks].min() > 8.0 * np.pi
    assert np.ptp(run.v[:, cranks], axis=1).max() < 1e-5 and np.ptp(run.q[:, cranks], axis=1).max() < 1e-7
    assert np.ptp(run.energy.mechanical) < 1e-6 * run.energy.kinetic[0]


def bars_of_peaucellier(a):
    """Angles of pb, oa, ab, ad, oc, cb, cd against the world; a: half the angle between the long bars."""
    b = np.arcsin(0.5 * np.sin(a) / 0.2)
    phi = -np.arccos((0.5 * np.cos(a) - 0.2 * np.cos(b)) / 0.44)
    return np.array([2 * phi, phi + a, phi + np.pi + b, phi - b, phi - a, phi - np.pi - b, phi + b])


def swing_of_peaucellier(start: float, t: np.ndarray) -> np.ndarray:
    """a(t) from rest, by the equation of motion of one coordinate."""
    lengths, below = np.array([0.22, 0.5, 0.2, 0.2, 0.5, 0.2, 0.2]), [None, None, 1, 1, None, 4, 4]

    def both(a):  # inertia, and its slope and that of the potential
        w = bars_of_peaucellier(a + 1e-30j)
        w, rate = w.real, w.imag * 1e30
        turned = 1j * lengths * np.exp(1j * w) * rate  # velocities of the bars' ends against their feet
        u = np.array([0.0 if k is None else turned[k] for k in below]) + turned / 2
        m = lengths / 2
        return (m * abs(u) ** 2 + m * lengths**2 / 12 * rate**2).sum(), (m * 9.81 * u.imag).sum()

    def equation(_, y):
        inertia, slope = both(y[0])
        change = (both(y[0] + 1e-5)[0] - both(y[0] - 1e-5)[0]) / 2e-5
        return y[1], -(slope + 0.5 * change * y[1] ** 2) / inertia

    return solve_ivp(equation, (0, t[-1]), [start, 0.0], "DOP853", t, rtol=1e-9, atol=1e-11).y[0]


@pytest.mark.parametrize("integrator", ["rkmk4", "energy_momentum"])
def test_a_linkage_swings_through_the_pose_in_which_all_bars_lie_in_a_line(integrator):
    # There its loops lose two ranks, and it could also go on as a crank with two bars.
    robot, t = peaucellier(), 0.012 * np.arange(167)
    expected = swing_of_peaucellier(0.3, t)
    assert (np.diff(np.sign(expected)) != 0).sum() == 5
    w = bars_of_peaucellier(0.3)
    q = w - np.array([0, 0, w[1], w[1], 0, w[4], w[4]])
    for dt in (4e-3, 1.5e-3, 0.5e-3):
        run = rk.simulate(
            robot, q, duration=2.0, dt=dt, gravity=(0, -9.81, 0), integrator=integrator,
            record_every=round(0.012 / dt),
        )  # fmt: skip
        n = min(len(run), len(t))
        names = [robot.joint_names.index(name) for name in ("oa", "oc")]
        found = 0.5 * (run.q[:n, names[0]] - run.q[:n, names[1]])
        np.testing.assert_allclose(found, expected[:n], atol=1e-6)


@pytest.mark.parametrize("slack", [1e-5, 1e-6])
def test_a_linkage_that_is_nearly_stretched_settles_in_some_iterations(slack):
    """The farther its loop is stretched, the less its joints give way to the force that holds it."""
    robot = nearly_stretched(slack)
    start = rk.close_loops(robot, [0.2, -0.3, 0.2])
    options = {"joint_damping": 0.0, "integrator": "contact", "dt": 1e-3}
    run = rk.simulate(robot, start, duration=1.0, **options)
    assert run.summary["steps_not_settled"] == 0 and run.summary["contact_iterations_most"] <= 15
    assert run.summary["loop_gap"] < 1e-12
    assert np.ptp(run.energy.mechanical) < 1e-3 * run.energy.kinetic.max()


def test_a_spatial_loop_keeps_its_energy():
    robot = spatial_loop()
    run = rk.simulate(robot, v0=[2.0, 0, 0, 0, 1.0], duration=5.0, dt=1e-3)
    assert run.summary["loop_gap"] < 1e-12
    assert run.summary["energy_balance"] < 1e-7
    assert np.ptp(run.energy.kinetic) > 1.0
    assert run.summary["loop_start_velocity_change"] > 0.01


@pytest.mark.parametrize("integrator", ["energy_momentum", "contact"])
def test_a_floating_linkage_keeps_its_momentum(integrator):
    robot = spatial_loop(base="floating")
    rng = np.random.default_rng(2)
    v = rng.standard_normal(robot.nv)
    run = rk.simulate(robot, v0=v, duration=2.0, dt=1e-3, gravity=(0, 0, 0), integrator=integrator)
    np.testing.assert_allclose(run.momentum - run.momentum[0], 0.0, atol=1e-12)
    assert run.summary["loop_gap"] < 1e-12
    # The projection of momenta has little to do: the loops themselves make none.
    assert run.summary["momentum_corrected_angular"] < 1e-3
    assert run.summary["energy_balance"] < (1e-12 if integrator == "energy_momentum" else 2e-4)


@pytest.mark.parametrize(("way", "most"), [({"ground": rk.Ground(height=-9.0)}, 1e-12), ({}, 1e-4)])
def test_a_linkage_that_moves_only_while_it_is_closed_is_not_stopped_by_long_steps(way, most):
    robot = bennett()
    q = rk.close_loops(robot, [0.8, -2.0, -0.8], keep=["hinge1"])
    v = tangent(robot, q[None], np.array([[60.0, 0, 0]]))[0]
    options = {"duration": 0.5, "gravity": (0, 0, 0), "joint_damping": 0.0, "self_collision": False, **way}
    long, short = (rk.simulate(robot, q, v, dt=dt, **options) for dt in (4e-3, 5e-4))
    assert np.ptp(long.q[:, 0]) > 8.0
    for run in (long, short):
        assert np.abs(run.energy.total / run.energy.total[0] - 1.0).max() < most
    np.testing.assert_allclose(long.q[-1], short.q[-1], atol=1e-3)


def test_a_swing_with_loops_is_second_order_and_exact():
    """At its kick a step has drifted off the loops by dt^2."""
    robot, v = spatial_loop(), [6.0, 0, 0, 0, 4.0]
    options = {"duration": 1.0, "joint_damping": 0.0}
    exact = rk.simulate(robot, v0=v, dt=2e-4, **options).q[-1]
    away = rk.Ground(height=-9.0)
    errors = [
        np.abs(rk.simulate(robot, v0=v, dt=dt, ground=away, **options).q[-1] - exact).max()
        for dt in (4e-3, 2e-3)
    ]
    assert errors[0] < 1e-3 and errors[1] < 2e-4
    assert np.log2(errors[0] / errors[1]) > 1.8


@pytest.mark.slow
def test_light_rods_carry_a_platform():
    robot = delta(1e-6)
    q = rk.close_loops(robot, robot.neutral())
    run = rk.simulate(robot, q, duration=0.4, dt=5e-4)
    assert run.summary["loop_gap"] < 1e-12
    assert run.energy.kinetic.max() > 0.5
    assert np.abs(run.energy.total - run.energy.total[0]).max() < 1e-6 * np.ptp(run.energy.potential)


def test_loops_between_far_links_of_a_long_chain_are_closed():
    """Their couplings need more room than a step begins with."""
    chain = rk.load(rk.find_robot("chain"), base="floating")
    q = rk.standing_configuration(chain, height=0.1, tilt=0.1, seed=1)
    places, b = rk.forward_kinematics(chain, q), ModelBuilder.from_robot(chain)
    for first, second in (("link_010", "link_090"), ("link_030", "link_060")):
        (R, p), (S, s) = places[first], places[second]
        middle = 0.5 * (np.array(p) + np.array(s))
        ends = (Placement(position=np.array(A).T @ (middle - a)) for A, a in ((R, p), (S, s)))
        b.loop_joint(first, "spherical", first, second, *ends)
    run = rk.simulate(b.build("floating"), q, duration=0.01, dt=1e-3, ground=True)
    assert np.isfinite(run.q).all() and run.summary["loop_gap"] < 1e-9


def test_loops_of_a_long_chain_are_closed_by_the_least_change_in_the_inertia_of_each_pose():
    """Beside projections by a dense H; with the H of the pose before the tear it is off by 1e-5."""
    chain, rng = rk.load(rk.find_robot("chain")), np.random.default_rng(0)
    q = chain.neutral() + 0.1 + 0.1 * rng.normal(size=chain.nq)
    places, b = rk.forward_kinematics(chain, q), ModelBuilder.from_robot(chain)
    names = "link_020", "link_060"
    middle = 0.5 * sum(np.array(places[name][1]) for name in names)
    ends = [np.array(R).T @ (middle - np.array(p)) for R, p in (places[name] for name in names)]
    b.loop_joint("loop", "spherical", *names, *(Placement(position=r) for r in ends))
    robot = b.build("fixed", gravity=(0.0, 0.0, 0.0))
    sim = rk.Simulation(robot, q, dt=1e-3, ground=rk.Ground(height=-100.0), self_collision=True)
    torn = q + 2e-3 * rng.normal(size=robot.nv)
    sim.restore(dataclasses.replace(sim.state(), q=torn))
    sim.step()

    def gap(x):
        at = rk.forward_kinematics(robot, x)
        a, c = (np.array(p) + np.array(R) @ r for (R, p), r in zip((at[n] for n in names), ends, strict=True))
        return np.array(at[names[0]][0]).T @ (c - a)

    x, h = torn, 1e-6
    for _ in range(2):
        J = np.transpose([(gap(x + h * e) - gap(x - h * e)) / (2.0 * h) for e in np.eye(robot.nv)])
        T = np.linalg.solve(rk.crba(robot, x), J.T)
        x = x - T @ np.linalg.solve(J @ T, gap(x))
    assert np.abs(gap(torn)).max() > 1e-3 and np.abs(gap(sim.q)).max() < 1e-8
    assert sim.q == pytest.approx(x, abs=1e-6)


def test_starts_that_do_not_close_are_closed_and_it_is_said():
    robot = free_four_bar()
    run = rk.simulate(robot, [0.5, 0.0, 0.0], [1.0, 0.0, 0.0], duration=0.01, dt=1e-3)
    assert run.summary["loop_start_change"] == pytest.approx(np.abs(run.q[0] - [0.5, 0, 0]).max())
    assert run.summary["loop_start_change"] > 0.05
    assert run.summary["loop_start_velocity_change"] > 0.05
    assert distances(robot, run.q[:1]).max() < 1e-12
    assert any("loops" in line for line in run.report())
    b = ModelBuilder.from_robot(robot)
    far = Placement(position=np.array([3.0, 0.0, 0.0]))
    b._loops["closing_joint"] = dataclasses.replace(b._loops["closing_joint"], successor_placement=far)
    with pytest.raises(rk.ShapeError, match=r"q0: loop joint 'closing_joint' cannot be closed"):
        rk.simulate(b.build(), duration=0.01)
    with pytest.raises(rk.ShapeError, match=r"q0\[0\]: loop joint 'closing_joint' cannot be closed"):
        rk.rollout(b.build(), np.zeros((2, 3)), duration=0.01)


@pytest.mark.parametrize(("dtype", "most", "gap"), [("float64", 1e-12, 1e-13), ("float32", 2e-3, 1e-6)])
def test_rollouts_move_as_single_runs(dtype, most, gap):
    robot = free_four_bar()
    q = np.stack([closed_four_bar(robot, angle) for angle in (0.3, 1.0, -0.7, 2.0)])
    rows = rk.rollout(robot, q, duration=0.5, dt=1e-3, dtype=dtype)
    for k in range(4):
        alone = rk.simulate(robot, q[k], duration=0.5, dt=1e-3)
        np.testing.assert_allclose(rows.q[:, k], alone.q, atol=most)
        row = rows.trajectory(k)
        assert np.isfinite(row.loop_forces["closing_joint"]).all() and row.summary["loop_gap"] < gap
    assert distances(robot, rows.q.reshape(-1, 3).astype(float)).max() < gap
    assert rows.summary["loop_gap"] < gap


def test_start_velocities_of_rows_are_those_of_single_runs():
    """Also with a prescribed joint, whose velocity stays: sums of rows have the order of a single run's."""
    robot = gripper()
    q = rk.close_loops(robot)
    for seed in range(6):
        v = np.random.default_rng(seed).normal(size=robot.nv)
        (one,), rows = (tangent(robot, np.tile(q, (n, 1)), np.tile(v, (n, 1)), [0]) for n in (1, 3))
        assert one[0] == v[0] and np.array_equal(rows, np.tile(one, (3, 1)))


def test_a_saved_trajectory_has_its_loop_forces(tmp_path):
    run = rk.simulate(free_four_bar(), [0.1, 0, 0], duration=0.02, dt=1e-3)
    again = rk.Trajectory.load(run.save(tmp_path / "swing.npz"))
    assert list(again.loop_forces) == ["closing_joint"]
    np.testing.assert_array_equal(again.loop_forces["closing_joint"], run.loop_forces["closing_joint"])
    assert again.summary["loop_gap"] == run.summary["loop_gap"]
    assert again.robot.loop_joints[0].name == "closing_joint"


def test_a_torque_moves_the_fingers_of_a_gripper_as_their_loops_demand():
    robot = gripper()
    names = robot.joint_names
    assert gaps(robot, robot.neutral()[None]).max() < 1e-12
    drive = {name: k for k, name in enumerate(names)}

    def close(t, q, v):
        tau = np.zeros(6)
        for side in ("left", "right"):
            tau[drive[f"{side}_drive"]] = 0.02 - 0.01 * v[drive[f"{side}_drive"]]
        return tau

    run = rk.simulate(robot, duration=0.3, dt=1e-3, controller=close, gravity=(0, 0, 0))
    assert run.summary["loop_gap"] < 1e-9
    left, right = (run.q[:, drive[f"{side}_drive"]] for side in ("left", "right"))
    np.testing.assert_allclose(left, right, atol=1e-9)
    assert left[-1] > 0.3
    # Where the knuckle is, everything else is: that of closing the loops with the knuckles held.
    for q in run.q[::20]:
        guess = rk.close_loops(robot, q, keep=["left_drive", "right_drive"])
        np.testing.assert_allclose(guess, q, atol=1e-9)
    swing = run.q[:, drive["left_swing"]]
    assert swing[-1] > 0.3


@pytest.mark.slow
def test_a_gripper_falls_on_the_ground_and_its_loops_hold():
    robot = gripper("floating")
    q = rk.standing_configuration(robot, height=0.1, tilt=1.0)
    run = rk.simulate(robot, q, duration=1.0, ground=True)
    assert run.summary["loop_gap"] < 1e-6
    weight = robot.total_mass * G
    assert run.contact_force[-20:, 2].mean() == pytest.approx(weight, rel=0.05)
    assert run.energy.kinetic[-1] < 1e-3
    assert run.summary["energy_balance"] < 0.1 * run.summary["energy_exchanged"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_loops_of_every_kind_stay_closed_and_keep_energy_and_momentum(kind):
    run = rk.simulate(*moving_arms(kind), duration=1.0, dt=1e-3, gravity=(0, 0, 0))
    assert run.summary["loop_gap"] < 1e-12 and run.summary["loop_error"] < 1e-12
    assert run.summary["energy_balance"] < 1e-8 and run.energy.kinetic.max() > 50.0
    assert run.summary["momentum_balance_angular"] < 1e-11


SLOPE = 0.5


@pytest.mark.parametrize("integrator", ["rkmk4", "contact", "energy_momentum"])
@pytest.mark.parametrize(
    ("kind", "axis", "part", "wanted"),
    [
        ("revolute", (0, 1, 0), 1, G * 2.0 * 0.2 / 0.13),
        ("spherical", (1, 0, 0), 1, G * 2.0 * 0.2 / 0.13),
        ("prismatic", (np.cos(SLOPE), 0, -np.sin(SLOPE)), 3, G * np.sin(SLOPE) * np.cos(SLOPE)),
        ("planar", (np.sin(SLOPE), 0, np.cos(SLOPE)), 3, G * np.sin(SLOPE) * np.cos(SLOPE)),
        ("cylindrical", (0, 0, 1), 5, -G),
        ("helical", (0, 0, 1), 5, -G * 2.0 / (2.0 + 0.13 / 0.1**2)),
    ],
)
def test_a_loop_joint_ties_a_floating_body_to_the_world(kind, axis, part, wanted, integrator, monkeypatch):
    """The world holds it: its momentum is not that of a body in free fall."""
    if integrator == "energy_momentum":  # twenty steps take less time than to compile them
        monkeypatch.setenv("ROBOKIT_ENGINE", "python")
    b = ModelBuilder("tied").link("world").link("body", 2.0, (0.2, 0, 0), np.diag([0.03, 0.05, 0.05]))
    b.joint("free", "floating", "world", "body")
    b.loop_joint("tie", kind, "world", "body", axis=axis, pitch=0.1 if kind == "helical" else 0.0)
    robot = b.build()
    run = rk.simulate(robot, duration=0.02, integrator=integrator)
    assert run.v[-1, part] / 0.02 == pytest.approx(wanted, rel=1e-3)
    most = 1e-7 if integrator == "rkmk4" else 1e-13
    assert np.abs(run.energy.total - run.energy.total[0]).max() < most
    assert run.summary["loop_gap"] < 1e-12
    assert "momentum_balance_linear" not in run.summary


def test_a_force_on_a_floating_body_that_is_tied_turns_it_about_its_tie():
    b = ModelBuilder("tied").link("world").link("body", 2.0, (0.2, 0, 0), np.diag([0.03, 0.05, 0.05]))
    b.joint("free", "floating", "world", "body")
    b.loop_joint("tie", "revolute", "world", "body", axis=(0, 0, 1))
    robot = b.build(gravity=(0, 0, 0))
    force = np.array([0, 0, 0.26, 7.0, 0, 0])  # what is along the tie's arm does nothing
    driven = rk.simulate(robot, duration=0.1, controller=lambda t, q, v: force)
    pushed = rk.simulate(robot, duration=0.1, pushes=[("body", (0, 0, 0.26, 0, 0, 0), (0, 0, 0), 0.0, 0.1)])
    for run in (driven, pushed):
        assert run.v[-1, 2] == pytest.approx(0.2, rel=1e-9)
        assert run.energy.work[-1] == pytest.approx(run.energy.kinetic[-1], rel=1e-9)
