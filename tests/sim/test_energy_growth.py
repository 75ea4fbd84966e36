"""A run whose energy grows beyond all that it could draw on is stopped, and no other."""

import math
import re
from functools import cache

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import ModelBuilder, Placement, Shape, Sphere
from robokit.sim import steppers
from robokit.sim.run_loop import first_excess
from robokit.sim.steppers import LONGEST, SPIN, default_step, turning_rate


def _chain():
    chain = rk.load_urdf(m.ROBOTS / "chain.urdf", base="floating")
    return chain, rk.standing_configuration(chain, height=0.1, tilt=0.2, seed=1)


@cache
def _links(count=20):
    """A floating chain of so many links of 50 mm."""
    builder = ModelBuilder("links")
    inertia = np.diag([1.2e-5, 1.2e-5, 5e-6])
    for k in range(count):
        ball = Shape(Sphere(0.014), Placement(position=np.array([0.0, 0.0, -0.038])))
        builder.link(f"l{k}", mass=0.06, com=(0, 0, -0.025), inertia=inertia, collisions=(ball,))
    for k in range(1, count):
        place, axis = Placement(position=np.array([0.0, 0.0, -0.05])), ((1, 0, 0), (0, 1, 0))[k % 2]
        builder.joint(
            f"j{k}", "revolute", f"l{k - 1}", f"l{k}", place, axis=axis, lower=-1.2, upper=1.2, damping=5e-4
        )
    return builder.build("floating")


EXPLODED = re.compile("he energy has grown by|he state is no longer finite")
"""Velocity products that the step is too long for may pass all bounds within one."""


def _flung(speed):
    """A chain whose links are flung about: 14 rad/s are too wild for 4 ms from some starts, 30 from all."""
    chain = _links()
    v = np.zeros((5, chain.nv))
    v[:, 6:] = speed * np.random.default_rng(0).normal(size=(5, chain.nv - 6))
    return chain, rk.standing_configuration(chain, height=0.1, tilt=0.2, seed=1), v


@pytest.mark.slow
def test_a_chain_that_explodes_is_stopped_early():
    dt, (chain, q, v) = 4e-3, _flung(30.0)
    with pytest.raises(rk.SimulationError) as caught:
        rk.simulate(chain, q, v[0], duration=1.0, dt=dt, ground=rk.Ground())
    words, kept = str(caught.value), caught.value.trajectory
    assert EXPLODED.search(words) and "link 'l" in words and "try dt = 0.001" in words
    energy = kept.energy
    assert np.ptp(energy.mechanical) < 3 * (np.ptp(energy.potential) + energy.kinetic[0])
    stopped = kept.summary["stopped"]
    assert f"stopped at t = {stopped['time']:.6g} s" in words and 0.0 < stopped["time"] < 0.5
    assert stopped["time"] >= kept.t[-1] == pytest.approx(kept.summary["steps"] * dt)
    assert EXPLODED.search(stopped["reason"]) and stopped["remedy"] == "Try dt = 0.001."


@pytest.mark.slow
def test_rows_that_explode_are_marked_from_where_simulate_stops():
    chain, q, v = _flung(10.0)
    run = {"duration": 1.0, "dt": 4e-3, "ground": rk.Ground()}
    with pytest.raises(rk.SimulationError, match=EXPLODED) as caught:
        rk.simulate(chain, q, v[2], **run)
    with pytest.warns(UserWarning, match="no longer finite"):
        found = rk.rollout(chain, q, v, **run)
    assert {2} <= set(found.failed) < set(range(5))
    assert found.summary["rows_of_excess_energy"] <= len(found.failed)
    stopped = caught.value.trajectory.summary["stopped"]["time"]
    assert found.failed_time[list(found.failed).index(2)] == pytest.approx(stopped, abs=0.01)
    assert np.isfinite(np.delete(found.q, found.failed, axis=1)).all()
    for k, time in zip(found.failed, found.failed_time, strict=True):
        row = found.trajectory(k)
        assert np.isfinite(row.energy.total).all() and row.t[-1] < time
        assert np.isnan(found.q[len(row) :, k]).all() and np.isnan(found.v[len(row) :, k]).all()


def test_a_step_of_a_second_is_stopped_at_once():
    chain = _links()
    q = rk.standing_configuration(chain, height=0.1, tilt=0.2, seed=1)
    with pytest.warns(UserWarning, match="long for contact"), pytest.raises(rk.SimulationError) as caught:
        rk.simulate(chain, q, duration=20.0, dt=1.0, ground=rk.Ground(), self_collision=False)
    assert caught.value.trajectory.summary["stopped"]["time"] <= 3.0


@pytest.mark.parametrize("integrator, dt", [("rkmk4", 20.0), ("midpoint", 200.0)])
def test_a_last_angle_without_digits_for_its_sine_stops_a_run(integrator, dt):
    with pytest.raises(rk.SimulationError, match="no longer finite") as caught:
        rk.simulate(m.double_pendulum(), [2.0, 1.0], duration=dt, dt=dt, integrator=integrator)
    assert caught.value.trajectory.q.tolist() == [[2.0, 1.0]]


LONG_CODE = pytest.mark.slow  # with self-collision


@pytest.mark.parametrize(
    "dt, touching",
    [
        (4e-3, False),
        pytest.param(4e-3, None, marks=LONG_CODE),
        pytest.param(2.5e-4, None, marks=LONG_CODE),
    ],
)
def test_falls_and_spun_drops_are_not_stopped(dt, touching):
    rng = np.random.default_rng(2)
    robot = m.quadruped()
    v = np.zeros(robot.nv)
    v[:3] = rng.normal(0.0, 10.0, 3)
    q = rk.standing_configuration(robot, height=0.3, tilt=0.4, seed=3)
    run = {"duration": 1.0, "dt": dt, "ground": rk.Ground(), "self_collision": touching}
    assert not len(rk.rollout(robot, q, [v, 0.0 * v], **run).failed)
    assert "stopped" not in rk.simulate(robot, q, v, **run).summary


@pytest.mark.parametrize("integrator", ["contact", "midpoint", "rkmk4"])
def test_free_motions_are_not_stopped(integrator):
    for robot in (m.double_pendulum(), m.free_chain()):
        run = rk.simulate(robot, None, np.full(robot.nv, 3.0), 1.0, 4e-3, integrator=integrator)
        assert "stopped" not in run.summary


def test_work_of_a_controller_is_a_cause():
    run = rk.simulate(m.pendulum(kind="continuous"), controller=lambda t, q, v: [5.0], duration=1.0)
    assert run.energy.kinetic[-1] > 50.0 * run.summary["energy_exchanged"] * 0.01
    free = rk.rollout(m.pendulum(kind="continuous"), tau=[5.0], duration=1.0)
    assert not len(free.failed) and free.q[-1, 0] == pytest.approx(run.q[-1], abs=1e-9)


def test_springs_that_are_tense_at_the_start_are_a_cause():
    ball = m.ball()
    q = ball.neutral()
    q[6] = 0.1 - 0.09  # 9 cm deep: the ground's spring throws it up
    with pytest.warns(rk.SimulationWarning, match="starts 90 mm inside"):
        thrown = rk.simulate(ball, q, duration=0.5, ground=rk.Ground(time=1e-4))
    with pytest.warns(rk.SimulationWarning, match="starts 90 mm inside"):
        assert not len(rk.rollout(ball, q, duration=0.5, ground=rk.Ground(time=1e-4)).failed)
    assert thrown.q[-1, 6] > 1.0 and "stopped" not in thrown.summary
    joint = m.pendulum(lower=-0.1, upper=0.1)
    rk.simulate(joint, [1.0], duration=0.5)


def test_a_place_far_from_the_origin_is_no_cause_for_alarm():
    q = m.box().neutral()
    q[4:] = 1e7
    assert "stopped" not in rk.simulate(m.box(), q, duration=0.5).summary


def test_the_first_excess_is_found_in_each_run():
    kinetic = np.array([[1.0, 1.0, 0.0], [2.5, 1.0, 0.0], [5.0, 1.0, np.inf], [1.0, 9.0, 0.0]])
    zero = np.zeros_like(kinetic)
    assert first_excess(kinetic, zero, zero, 1e-3).tolist() == [1, 3, 2]
    assert first_excess(kinetic, zero, kinetic, 10.0).tolist()[:2] == [4, 4]
    assert first_excess(kinetic[:, 0], -kinetic[:, 0], zero[:, 0], 0.0) == 4
    assert first_excess(np.array([1.0, np.nan]), np.zeros(2), np.zeros(2), 0.0) == 2


def test_contacts_that_give_more_than_there_was_are_found():
    still = np.zeros(4)
    given = np.array([0.0, -0.5, -1.5, -0.5])
    assert first_excess(still, still, still, 1.0, given) == 2
    assert first_excess(still, still, still, 2.0, given) == 4
    assert first_excess(still, still, still, 1.0, -given) == 4


def test_a_four_bar_thrown_with_a_step_that_is_far_too_long_is_stopped():
    robot = rk.load_urdf(m.ROBOTS / "four_bar.urdf", base="floating")
    q = rk.standing_configuration(robot, tilt=0.2, seed=0)
    v = np.zeros(robot.nv)
    v[:3] = 40.0
    with pytest.warns(UserWarning), pytest.raises(rk.SimulationError, match=r"energy has grown|finite"):
        rk.simulate(robot, q, v, 3.0, 0.1, rk.Ground())


# ---- the default step ------------------------------------------------------------------------------------


def test_the_default_step_is_a_millisecond_for_all_robots_and_shorter_for_small_chains():
    for name in ("humanoid", "quadruped", "arm", "double_pendulum", "four_bar"):
        for base in ("fixed", "floating"):
            robot = rk.load_urdf(rk.find_robot(name), base=base)
            assert 5.0 < turning_rate(robot) < 0.2 * SPIN / LONGEST
            assert default_step(robot, True) == default_step(robot, False) == LONGEST
    chain, _ = _chain()
    rate = turning_rate(chain)
    assert default_step(chain, True) == LONGEST and 0.5 * SPIN / LONGEST < rate < SPIN / LONGEST
    # The chain is flung about on a heavier planet; in the same shape it turns by as much a step.
    for times, halvings in ((1.5, 1), (3.0, 2)):
        heavier = chain.with_gravity((0.0, 0.0, -m.G * (times * SPIN / LONGEST / rate) ** 2))
        assert default_step(heavier, True) == LONGEST / 2**halvings
        assert default_step(heavier, False) == LONGEST


def test_the_default_step_knows_the_spin_of_the_start():
    """An upright top that spins keeps its energy; a step is 0.3 rad of its spin at most."""
    builder = ModelBuilder("top").link("top", 1.0, com=(0, 0, 0.1), inertia=np.diag([2e-3, 2e-3, 1e-3]))
    robot = builder.build("floating")
    for spin, halvings in ((290.0, 0), (310.0, 1), (590.0, 1), (5000.0, 5)):
        v = np.array([0.0, 0.1, spin, 0, 0, 0])
        many = rk.rollout(robot, None, [v, 0.1 * v], steps=2)
        with pytest.warns(UserWarning):  # no default step is short enough for the last ones
            lost = rk.rollout(robot, None, [v, 1e30 * v, np.nan * v], steps=2)
        assert lost.summary["dt"] == many.summary["dt"]
        run = rk.simulate(robot, None, v, 0.02)
        assert run.summary["dt"] == many.summary["dt"] == LONGEST / 2**halvings
        assert run.summary["dt_chosen"]
    with pytest.warns(UserWarning, match="spins at 5e.03 rad/s"):
        rk.simulate(robot, None, v, 0.002, dt=1e-3)


def test_a_small_cross_link_of_a_hip_asks_for_no_shorter_step():
    builder = ModelBuilder("hip")
    for name, com, size in (("pelvis", 0.0, 0.1), ("cross", 1e-3, 1e-3), ("leg", -0.2, 0.15)):
        builder.link(name, mass=2.0, com=(0, 0, com), inertia=np.eye(3) * 2.0 * size**2)
    builder.joint("roll", "revolute", "pelvis", "cross", axis=(1, 0, 0), lower=-1.0, upper=1.0)
    builder.joint("pitch", "revolute", "cross", "leg", axis=(0, 1, 0), lower=-1.0, upper=1.0)
    assert default_step(builder.build("floating"), True) == LONGEST


def test_the_default_step_of_a_robot_is_found_once(monkeypatch):
    """Each gravity has its own; falls and free motion of a robot do not mix."""
    robot, asked = m.pendulum(), []
    monkeypatch.setattr(
        steppers, "turning_rate", lambda each: asked.append(each) or -each.tree.gravity[2] * SPIN / LONGEST
    )
    steps = [default_step(robot, True) for _ in range(3)]
    assert len(asked) == 1 and steps == steps[:1] * 3 and steps[0] < LONGEST
    assert default_step(robot, False) == LONGEST
    other = robot.with_gravity((0.0, 0.0, -0.5))
    assert default_step(other, True) == LONGEST and asked == [robot, other]


def test_the_turning_rate_scales_like_a_fall():
    """w = v / l with v^2 = 2 g h: mass does not matter, gravity does."""
    robot = m.double_pendulum()
    rate = turning_rate(robot)
    heavy = robot.with_inertias(7.0 * robot.inertial_parameters)
    assert turning_rate(heavy) == pytest.approx(rate)
    assert turning_rate(robot.with_gravity((0.0, 0.0, -4 * m.G))) == pytest.approx(2.0 * rate, rel=1e-3)
    samples = np.stack([robot.inertial_parameters, heavy.inertial_parameters])
    assert turning_rate(robot.with_inertias(samples)) == pytest.approx(rate)
    # A point mass at the end of a massless rod: 1/l^2 = 1/0.5^2 but for the little inertia, h = 0.5.
    inertia = 0.5**2 + 0.01
    expected = math.sqrt(2 * 9.80665 * 0.5) * 0.5 / inertia
    assert turning_rate(m.pendulum()) == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_the_chain_falls_well_by_default():
    chain, q = _chain()
    run = rk.simulate(chain, q, duration=1.2, ground=rk.Ground(), self_collision=False)
    assert run.summary["dt"] == LONGEST and run.summary["dt_chosen"] is True
    finer = rk.simulate(chain, q, duration=1.2, dt=LONGEST / 4, ground=rk.Ground(), self_collision=False)
    # The fall is chaotic: the loss scatters threefold with starts that differ by 1e-9, the median hardly.
    rng = np.random.default_rng(0)
    starts = [chain.integrate(q, 1e-9 * rng.normal(size=chain.nv)) for _ in range(4)]
    others = [rk.simulate(chain, p, duration=1.2, ground=rk.Ground(), self_collision=False) for p in starts]
    less, *lost = (x.summary["energy_balance"] / x.summary["energy_exchanged"] for x in (finer, run, *others))
    assert less < 0.05 and np.median(lost) < 0.1 and max(lost) < 0.2
    assert "  time step     1 ms, chosen for the robot" in run.report()
    assert len(run) == 241, "records stay about 5 ms apart"


def test_a_step_that_is_given_is_taken():
    run = rk.simulate(m.double_pendulum(), duration=0.1, dt=1e-3)
    assert run.summary["dt"] == 1e-3 and run.summary["dt_chosen"] is False
    default = rk.simulate(m.double_pendulum(), duration=0.1)
    assert default.summary["dt"] == 1e-3 and np.array_equal(default.q, run.q)
    chosen = rk.rollout(m.double_pendulum(), duration=0.1)
    assert chosen.summary["dt"] == 1e-3 and np.array_equal(chosen.t, run.t)


def test_times_say_what_they_hold():
    run = rk.simulate(m.double_pendulum(), duration=0.05)
    rows = rk.rollout(m.double_pendulum(), steps=50)
    for s in (run.summary, rows.summary):
        assert s["compile_seconds"] > 0.0 and s["step_seconds"] > 0.0
        assert s["steps_per_second"] == pytest.approx(50 / s["step_seconds"])
