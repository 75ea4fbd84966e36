"""Simulation: steps one by one are those of simulate and rollout to the last bit; there and back; errors."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sim_models as m
import waiting

import robokit as rk
from robokit.contact.step import _step_kernel
from robokit.model import Box

DT = 1e-3
GROUND = rk.Ground()


def humanoid():
    return rk.load_urdf(rk.find_robot("humanoid"), base="floating")


def leaning(t, q, v):
    tau = -0.2 * v
    tau[:6] = 0.0
    return tau


CASES = {
    "ground": (m.box_with_bar, {"ground": GROUND}, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    "motors": (
        humanoid,
        {
            "ground": True,
            "actuators": rk.PD(kp=80.0, kd=4.0, effort=30.0),
            "pushes": ("chest", [40.0, 0, 0], (0, 0, 0), 0.02, 0.03),
        },
        None,
    ),
    "controller": (humanoid, {"ground": True, "controller": leaning}, None),
    "accuracy": (m.box_with_bar, {"ground": GROUND, "accuracy": 1e-4}, None),
    "passive": (m.double_pendulum, {}, None),
    "loop": (lambda: rk.load_urdf(rk.find_robot("four_bar")), {"integrator": "contact"}, None),
    "world": (
        lambda: rk.together({"a": m.box(), "b": m.ball()}),
        {"ground": rk.Ground(shapes=[rk.Solid(Box((1.0, 1.0, 0.1)), (0.0, 0.0, -0.02))])},
        None,
    ),
}


def start(robot, v0):
    q = robot.neutral()
    if robot.base == "floating":
        q = rk.standing_configuration(robot, height=0.02)
    elif "floating_base" in robot.joint_names[0]:  # of two in a world
        q[6], q[13], q[11] = 0.14, 0.15, 0.3
    v = np.random.default_rng(3).normal(size=robot.nv) * 0.5 if v0 is None else np.array(v0)
    return q, v


@pytest.mark.parametrize("case", CASES)
def test_steps_one_by_one_are_those_of_simulate(case):
    """To the last bit, whatever is recorded, in one call or many, after going back, and after a reset."""
    make, options, v0 = CASES[case]
    robot = make()
    n, (q0, v0) = 80, start(robot, v0)
    run = rk.simulate(robot, q0, v0, n * DT, DT, **options)
    for every in (None, 0):
        sim = rk.Simulation(robot, q0, v0, dt=DT, record_every=every, **options)
        for k in range(n):
            sim.step()
            if k == n // 2:
                middle = sim.state()
        assert np.array_equal(sim.q, run.q[-1]) and np.array_equal(sim.v, run.v[-1])
        assert sim.time == run.t[-1]
        sim.restore(middle)
        sim.step(steps=n - sim.steps)
        assert np.array_equal(sim.q, run.q[-1]) and np.array_equal(sim.v, run.v[-1])
        if every is None:
            own = sim.trajectory()
            for name in ("t", "q", "v", "momentum", "contact_force"):
                assert np.array_equal(getattr(own, name), getattr(run, name)), name
            assert [str(x) for x in own.events] == [str(x) for x in run.events]
        sim.reset()
        sim.step(steps=n)
        assert np.array_equal(sim.q, run.q[-1])


def test_contacts_and_sensors_are_those_of_the_last_step():
    robot, link = humanoid(), "left_foot"
    link = next(x.name for x in robot.links if "foot" in x.name)
    q0, joint = rk.standing_configuration(robot), robot.joint_names[-1]
    run = rk.simulate(robot, q0, duration=0.02, dt=DT, ground=True, record_every=1)
    sim = rk.Simulation(robot, q0, dt=DT, ground=True)
    assert len(sim.trajectory()) == 1 and sim.contacts.links == ()
    sim = rk.Simulation(robot, q0, dt=DT, ground=True, record_every=0)
    assert sim.contacts.links == ()
    assert sim.contacts.moments is not None and sim.contacts.moments.shape == (0, 3)
    for k in range(1, 21):
        sim.step()
        assert np.array_equal(sim.contacts.forces.sum(axis=0), run.contacts.forces[k].sum(axis=0))
        assert np.array_equal(sim.sensors.contact_wrench(link), run.sensors.contact_wrench(link)[k])
    imu, force = sim.sensors.imu(link), sim.sensors.joint_force(joint)
    np.testing.assert_allclose(imu.specific_force, run.sensors.imu(link).specific_force[-1], atol=1e-9)
    assert np.array_equal(force.total, run.sensors.joint_force(joint).total[-1])
    weight = robot.total_mass * 9.81
    assert sim.contacts.forces[:, 2].sum() == pytest.approx(weight, rel=0.5)


def test_given_joint_forces_and_targets_are_those_of_simulate():
    """Joint forces of each step are a controller's; targets are those of actuators with a table of them."""
    robot = humanoid()
    q0, n, rng = rk.standing_configuration(robot), 40, np.random.default_rng(0)
    taus, targets = rng.normal(size=(n, robot.nv)), 0.1 * rng.normal(size=(n, robot.nv - 6))
    taus[:, :6] = 0.0
    run = rk.simulate(
        robot,
        q0,
        duration=n * DT,
        dt=DT,
        ground=True,
        controller=lambda t, q, v: taus[min(int(t / DT), n - 1)],
    )
    for values in (taus, taus.astype("float32"), taus.tolist()):
        sim = rk.Simulation(robot, q0, dt=DT, ground=True)
        for tau in values:
            sim.step(tau)
        if not isinstance(values, np.ndarray) or values.dtype == float:
            assert np.array_equal(sim.q, run.q[-1])
            assert np.array_equal(sim.trajectory().tau[:-1], run.tau[:-1])
    pd = {"kp": 60.0, "kd": 3.0}
    run = rk.simulate(robot, q0, duration=n * DT, dt=DT, ground=True, actuators=rk.PD(target=targets, **pd))
    sim = rk.Simulation(robot, q0, dt=DT, ground=True, actuators=rk.PD(**pd))
    for target in targets:
        sim.step(target)
    assert np.array_equal(sim.q, run.q[-1])
    sim.step(dict.fromkeys(sim.driven, 0.0))
    with_both = rk.Simulation(robot, q0, dt=DT, ground=True, actuators=rk.PD(target=targets[0], **pd))
    with_both.step(tau=taus[0])
    other = rk.Simulation(robot, q0, dt=DT, ground=True, actuators=rk.PD(**pd), record_every=0)
    other.step(targets[0], tau=list(taus[0]))
    assert np.array_equal(with_both.q, other.q) and np.array_equal(with_both.v, other.v)


def test_forces_hold_for_their_call_and_targets_until_others_come():
    robot = m.double_pendulum()
    sim, pushed = (rk.Simulation(robot, [0.3, 0.1], dt=DT) for _ in range(2))
    sim.step([1.0, 0.0])
    sim.step()
    pushed.step([1.0, 0.0])
    pushed.step([0.0, 0.0])
    assert np.array_equal(sim.v, pushed.v)
    held, again = (rk.Simulation(robot, dt=DT, actuators=rk.PD(kp=10.0, kd=1.0)) for _ in range(2))
    held.step([0.5, 0.2])
    held.step(steps=3)
    for _ in range(4):
        again.step([0.5, 0.2])
    assert np.array_equal(held.q, again.q)


def test_a_controller_has_a_rate_of_its_own():
    asked = []

    def controller(t, q, v):
        asked.append(t)
        return [-q[0], 0.0]

    sim = rk.Simulation(m.double_pendulum(), [1.0, 0.0], dt=DT, controller=controller, control_every=5)
    for _ in range(12):
        sim.step()
    assert asked == pytest.approx([0.0, 5 * DT, 10 * DT])
    assert sim.trajectory().tau[-1, 0] == pytest.approx(-sim.q[0], abs=0.05)


@pytest.mark.parametrize("robot", [m.box_with_bar, m.double_pendulum])
def test_rows_of_a_batch_are_single_simulations(robot):
    """To the last bit in reproducible mode: as rows of rollouts are; partial resets, and back."""
    robot, B = robot(), 5
    ground = GROUND if robot.base == "floating" else None
    q, v = start(robot, None)
    rng = np.random.default_rng(1)
    v = v + rng.normal(size=(B, robot.nv))
    options = {"dt": DT, "ground": ground, "reproducible": True}
    tau = 0.1 * rng.normal(size=(B, robot.nv))
    many = rk.Simulation(robot, q, v, batch=B, **options)
    held = many.q
    many.step(tau)
    many.step(steps=30)
    middle = many.state()
    singles = []
    for k in range(B):
        one = rk.Simulation(robot, q, v[k], **options)
        one.step(tau[k])
        one.step(steps=30)
        singles.append(one)
        assert np.array_equal(many.q[k], one.q) and np.array_equal(many.v[k], one.v)
    assert held is many.q and many.time == pytest.approx(31 * DT)
    mask = np.array([False, True, False, True, False])
    many.reset(rows=mask)
    assert np.array_equal(many.q[1], q) and np.array_equal(many.q[0], singles[0].q)
    many.step(steps=10)
    fresh = rk.Simulation(robot, q, v[3], **options)
    fresh.step(steps=10)
    singles[0].step(steps=10)
    assert np.array_equal(many.q[3], fresh.q) and np.array_equal(many.q[0], singles[0].q)
    after = many.q.copy()
    for rows in (mask, np.flatnonzero(mask), [1, 3]):
        many.restore(middle)
        many.reset(rows=[])
        many.reset(rows=rows)
        many.step(steps=10)
        assert np.array_equal(many.q, after)
    many.reset(v=v[:2], rows=[2, 4])
    assert np.array_equal(many.v[[2, 4]], v[:2])
    many.reset()
    assert many.time == 0.0 and np.array_equal(many.v, v)


def test_a_batch_on_several_threads_with_targets_of_rows():
    robot, B = humanoid(), 6
    q = rk.standing_configuration(robot)
    targets = 0.2 * np.random.default_rng(0).normal(size=(B, robot.nv - 6))
    pd = rk.PD(kp=60.0, kd=3.0)
    runs = [rk.Simulation(robot, q, batch=B, ground=True, actuators=pd, threads=k) for k in (1, 3)]
    for sim in runs:
        for _ in range(5):
            sim.step(targets)
    one = rk.Simulation(robot, q, ground=True, actuators=pd)
    for _ in range(5):
        one.step(targets[4])
    np.testing.assert_allclose(runs[0].q[4], one.q, atol=1e-12)
    assert np.array_equal(runs[0].q, runs[1].q)


@pytest.mark.parametrize("robot", [m.double_pendulum, m.box_with_bar])
def test_keyframes_and_pushes_act_in_a_batch_at_their_times(robot):
    robot = robot()
    joint = robot.joint_names[-1]
    curve = rk.Keyframes([0.0, 0.02], [joint], [[0.0], [0.1]])
    options = {
        "dt": DT,
        "actuators": rk.PD(kp=20.0, kd=2.0, target=curve, joints=[joint]),
        "pushes": (robot.links[-1].name, [5.0, 0, 0], (0, 0, 0), 0.005, 0.01),
        "reproducible": True,
    }
    q, v = start(robot, None)
    many, one = rk.Simulation(robot, q, v, batch=3, **options), rk.Simulation(robot, q, v, **options)
    for steps in (1, 6, 1, 20):
        many.step(steps=steps)
        one.step(steps=steps)
        assert np.array_equal(many.q[2], one.q) and np.array_equal(many.v[0], one.v)


def test_a_row_that_breaks_down_is_marked_and_others_go_on():
    robot = m.double_pendulum()
    sim = rk.Simulation(robot, dt=DT, batch=3)
    tau = np.zeros((3, 2))
    tau[1] = 1e300
    sim.step(tau)
    sim.step(steps=5)
    assert sim.failed.tolist() == [False, True, False] and np.isfinite(sim.q[[0, 2]]).all()
    sim.reset(sim.q, rows=~sim.failed)  # of the others nothing is asked
    assert sim.failed.tolist() == [False, True, False] and not sim.v[[0, 2]].any()
    sim.reset(rows=sim.failed)
    sim.step()
    assert not sim.failed.any() and np.isfinite(sim.q).all()


def test_a_state_that_is_not_finite_is_an_error_with_what_was_recorded():
    sim = rk.Simulation(m.double_pendulum(), [1.0, 0.0], dt=DT)
    sim.step(steps=20)
    with pytest.raises(rk.SimulationError, match=r"no longer finite") as caught:
        for _ in range(10):
            sim.step([1e300, 0.0])
    assert len(caught.value.trajectory) == 5
    sim.reset()
    sim.step(steps=3)
    assert np.isfinite(sim.q).all() and sim.steps == 3


def test_what_was_recorded_after_a_state_is_forgotten():
    robot = m.box()
    q0 = rk.standing_configuration(robot, height=0.05)
    sim = rk.Simulation(robot, q0, ground=GROUND, dt=DT, record_every=7)
    sim.step(steps=60)
    there = sim.state()
    sim.step(np.r_[0, 0, 0, 0, 0, 50.0], steps=60)
    sim.restore(there)
    sim.step(steps=60)
    run = rk.simulate(robot, q0, duration=0.12, dt=DT, ground=GROUND, record_every=7)
    own = sim.trajectory()
    assert np.array_equal(own.q, run.q) and own.events == run.events
    assert np.array_equal(own.contacts.forces, run.contacts.forces)


def test_a_run_that_is_too_long_to_be_noted_has_contacts_and_events_all_the_same(monkeypatch):
    robot = m.box_with_bar()
    q, v = start(robot, None)
    run = rk.simulate(robot, q, v, 0.2, DT, GROUND)
    monkeypatch.setattr("robokit.sim.run_loop.MOST_BYTES", 20_000)
    sim = rk.Simulation(robot, q, v, dt=DT, ground=GROUND)
    for _ in range(200):
        sim.step()
    own = sim.trajectory()
    assert own.notes is None and [str(x) for x in own.events] == [str(x) for x in run.events]
    assert np.array_equal(sim.contacts.forces.sum(axis=0), run.contacts.forces[-1].sum(axis=0))
    assert np.abs(run.contacts.forces[-1]).max() > 1.0


@pytest.mark.parametrize("every", [0, None])
def test_after_ctrl_c_steps_and_records_are_those_of_the_state(every):
    """Wherever it comes: between steps, inside of a call, or inside of the controller."""
    robot = humanoid()
    q0 = rk.standing_configuration(robot, height=3.0)
    was = signal.signal(signal.SIGPROF, signal.default_int_handler)  # of processor time
    options = {"ground": True, "dt": 1e-4}
    try:
        for control in (None, leaning):
            other = {"controller": control, "control_every": 20} if control else {}
            sim = rk.Simulation(robot, q0, record_every=every, **options, **other)
            for seconds, steps in ((0.04, 1_000_000), (0.01, 1)):
                signal.setitimer(signal.ITIMER_PROF, seconds)
                with pytest.raises(KeyboardInterrupt):
                    while True:
                        sim.step(steps=steps)
            sim.step(steps=30)
            same = rk.Simulation(robot, q0, record_every=every, **options, **other)
            same.step(steps=sim.steps)
            assert sim.steps > 30 and np.array_equal(sim.q, same.q) and np.array_equal(sim.v, same.v)
            if every is None:
                assert np.array_equal(sim.trajectory().t, same.trajectory().t)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, was)


@pytest.mark.parametrize("robot", [m.double_pendulum, m.box_with_bar])
def test_after_ctrl_c_a_batch_is_where_it_was(robot):
    robot = robot()
    q, v = start(robot, None)
    ground = GROUND if robot.base == "floating" else None
    sim, same = (rk.Simulation(robot, q, v, batch=64, dt=1e-4, ground=ground, threads=2) for _ in range(2))
    for each in (sim, same):
        each.step(steps=3)
    was = signal.signal(signal.SIGPROF, signal.default_int_handler)  # of processor time
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.1)
        with pytest.raises(KeyboardInterrupt):
            sim.step(steps=1_000_000)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, was)
    assert sim.steps == 3 and np.array_equal(sim.q, same.q)
    for each in (sim, same):
        each.step(steps=3)
    assert np.array_equal(sim.q, same.q) and np.array_equal(sim.v, same.v)


def test_a_state_of_another_run_begins_its_trajectory():
    """After a reset, on another branch, and in a second simulation; times are those of the first one."""
    robot = m.box_with_bar()
    q, v = start(robot, None)
    first = rk.Simulation(robot, q, v, dt=DT, ground=GROUND)
    first.step(steps=33)
    there = pickle.loads(pickle.dumps(first.state()))
    first.step(steps=200)
    whole = first.trajectory()
    after = [str(x) for x in whole.events if x.time > 33 * DT]

    def again(sim):
        sim.restore(there)
        sim.step(steps=200)
        own = sim.trajectory()
        assert own.t[0] == there.time and np.array_equal(own.q[1:], whole.q[whole.t > there.time])
        late = own.contacts.forces.sum(axis=1)[2:], whole.contacts.forces.sum(axis=1)[-len(own.t) + 2 :]
        assert np.array_equal(*late) and own.summary["momentum_balance_linear"] < 1e-6
        assert set(after) & {str(x) for x in own.events}
        link = robot.links[-1].name
        assert np.array_equal(
            own.sensors.contact_wrench(link)[2:], whole.sensors.contact_wrench(link)[-len(own.t) + 2 :]
        )

    again(rk.Simulation(robot, q, v, dt=DT, ground=GROUND))
    first.reset()
    first.step(np.ones(robot.nv), steps=50)
    again(first)
    first.restore(there)  # of what is now its own run
    first.step(steps=2)
    assert first.trajectory().t[0] == there.time
    for options in ({"dt": 2e-3}, {"ground": rk.Ground(friction=0.1)}, {"ground": None}):
        with pytest.raises(rk.ShapeError, match="state: expected one of a simulation with the same"):
            rk.Simulation(robot, q, v, **{"dt": DT, "ground": GROUND, **options}).restore(there)
    assert there != first.state()
    told = "of this version of robokit, .* reset"
    for about in (there.about[1:], (("layout", "older"), *there.about[1:])):  # those of 0.2.0 have none
        with pytest.raises(rk.ShapeError, match=told):
            first.restore(dataclasses.replace(there, about=about))


def test_a_state_of_a_batch_goes_on_whatever_threads_there_are():
    robot, B = m.box_with_bar(), 5
    q, v = start(robot, None)
    one, three = (rk.Simulation(robot, q, v, batch=B, dt=DT, ground=GROUND, threads=k) for k in (1, 3))
    one.step(np.random.default_rng(0).normal(size=(B, robot.nv)), steps=150)
    three.restore(one.state())
    for sim in (one, three):
        sim.step(steps=20)
    assert np.array_equal(one.q, three.q) and one.steps == three.steps == 170


def test_nothing_of_it_can_be_assigned_to_without_effect():
    """Steps with contact have states of their own, so that rows of q that are written would not count."""
    for ground in (None, GROUND):
        sim = rk.Simulation(m.box_with_bar(), *start(m.box_with_bar(), None), batch=2, dt=DT, ground=ground)
        for name in ("q", "v"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(sim, name)[0] = 0.0
        seen, before = sim.q, sim.q.copy()
        sim.step()
        assert seen is sim.q and not np.array_equal(seen, before)
    names = ("dt", "robot", "batch", "driven", "q", "time", "gravity", "ground", "controller", "targets")
    for each in (rk.Simulation(m.double_pendulum()), sim):
        for name in names:
            with pytest.raises(AttributeError, match=name):
                setattr(each, name, 1e-3)
        with pytest.raises(rk.ShapeError, match=r"tau: .*; robot.joint\(name\).v_slice is where"):
            each.step(tau={"joint": 3.0})


def test_energy_that_grows_stops_it_as_it_stops_simulate():
    options = {"integrator": "contact", "dt": 0.25}  # at 0.2, some starts 1e-9 rad apart do not grow
    with pytest.raises(rk.SimulationError, match="energy has grown") as run:
        rk.simulate(m.double_pendulum(), [1.0, 0.0], duration=20.0, **options)
    sim = rk.Simulation(m.double_pendulum(), [1.0, 0.0], **options)
    with pytest.raises(rk.SimulationError, match=r"energy has grown|no longer finite") as own:
        for _ in range(200):  # the energy is looked at now and then
            sim.step()
    both = [caught.value.trajectory.q for caught in (run, own)]
    shorter = min(map(len, both))
    assert shorter > 10 and np.array_equal(both[0][:shorter], both[1][:shorter])


def test_what_was_asked_for_stays_as_it_was():
    """Sensors of a step, and a trajectory, while steps go on; asking leaves no record."""
    robot = m.box_with_bar()
    q, v = start(robot, None)
    sim, same = (rk.Simulation(robot, q, v, dt=DT, ground=GROUND) for _ in range(2))
    sim.step(steps=152)
    same.step(steps=152)
    link = robot.links[-1].name
    kept, half = sim.sensors, sim.trajectory()
    sim.step(steps=40)
    assert np.array_equal(kept.contact_wrench(link), same.sensors.contact_wrench(link))
    assert np.array_equal(kept.imu(link).specific_force, same.sensors.imu(link).specific_force)
    assert len(half.contacts.forces) == len(half.t) and half.t[-1] == pytest.approx(0.152)
    assert 0.152 not in np.round(sim.trajectory().t, 9)


WRONG = {
    "tau: expected shape \\(2,\\), got \\(3,\\)": lambda s: s.step(np.zeros(3)),
    "tau: expected shape \\(2,\\), got \\(1, 2\\)": lambda s: s.step(tau=np.zeros((1, 2))),
    "tau: expected finite numbers, got nan at tau": lambda s: s.step([0.0, np.nan]),
    "tau: expected": lambda s: s.step("x"),
    "targets: there are no actuators": lambda s: s.step(targets=[0.0, 0.0]),
    "control: expected it or tau": lambda s: s.step([0.0, 0.0], tau=[0.0, 0.0]),
    "steps: expected": lambda s: s.step(steps=-1),
    "q: expected shape \\(2,\\), got \\(3,\\)": lambda s: s.reset(np.zeros(3)),
    "rows: expected none": lambda s: s.reset(rows=[True]),
    "state: expected": lambda s: s.restore(3),
    "steps: expected a whole number >= 0, got True": lambda s: s.step(steps=True),
    "threads: expected a whole": lambda s: rk.Simulation(s.robot, batch=2, threads=0),
    "threads: expected None, of one": lambda s: rk.Simulation(s.robot, threads=2),
    "control_every: expected 1 without": lambda s: rk.Simulation(s.robot, control_every=3),
    "record_every: expected a whole": lambda s: rk.Simulation(s.robot, record_every=False),
    "failed: only a batch has it": lambda s: s.failed,
    "sensors: of the last step": lambda s: s.sensors,
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_inputs_are_said_and_change_nothing(message):
    sim = rk.Simulation(m.double_pendulum(), [1.0, 0.0], dt=DT)
    with pytest.raises(rk.RobokitError, match=message):
        WRONG[message](sim)
    sim.step()
    assert np.array_equal(sim.q, rk.simulate(m.double_pendulum(), [1.0, 0.0], None, DT, DT).q[-1])


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": -1, "tau": [1.0, 1.0], "targets": [0.5, 0.5]},
        {"tau": [1.0, 1.0], "targets": [0.5, np.nan]},
        {"tau": np.array([np.nan, 1.0]), "targets": np.array([0.5, 0.5])},
        *(
            {"targets": {"upper_joint": x, "lower_joint": 0.1}}
            for x in (np.nan, np.inf, "a", [1.0, 2.0], None)
        ),
    ],
)
def test_wrong_inputs_of_driven_joints_change_nothing(wrong, batch):
    robot = m.double_pendulum()
    names = robot.joint_names
    if isinstance(wrong.get("targets"), dict):
        wrong = {"targets": dict(zip(names, wrong["targets"].values(), strict=True))}
    options = {"dt": DT, "batch": batch, "actuators": rk.PD(kp=20.0, kd=1.0)}
    sim, same = (rk.Simulation(robot, [1.0, 0.0], **options) for _ in range(2))
    with pytest.raises(rk.RobokitError, match=r"steps: |targets|tau: "):
        sim.step(**wrong)
    sim.step()
    same.step()
    assert np.array_equal(sim.q, same.q) and np.array_equal(sim.v, same.v)
    moved = rk.Simulation(
        robot, dt=DT, actuators=rk.PD(kp=20.0, kd=1.0, feedforward=lambda t, q, v: np.zeros(2))
    )
    with pytest.raises(rk.ShapeError, match="take none"):
        moved.step([0.1, 0.1])
    moved.step()


@pytest.mark.filterwarnings("error")
def test_forces_beyond_measure_are_an_error_and_no_warning():
    for tau in (np.array([1e200, 0.0]), [1e300, 0.0]):
        sim = rk.Simulation(m.double_pendulum(), [1.0, 0.0], dt=DT)
        with pytest.raises(rk.SimulationError, match="no longer finite"):
            for _ in range(5):
                sim.step(tau)


WRONG_OF_A_BATCH = {
    r"tau: expected shape \(2,\) or \(4, 2\), got \(3, 2\)": lambda s: s.step(np.zeros((3, 2))),
    r"rows: expected a mask of bool \(4,\) or row numbers from 0 to 3": lambda s: s.reset(rows=[1, 4]),
    r"rows: .* in ascending order, got \[2, 1\]": lambda s: s.reset(rows=[2, 1]),
    r"rows: .* got \[1\.0\]": lambda s: s.reset(rows=[1.0]),
    r"rows: .* got \[True\]": lambda s: s.reset(rows=[True]),
    r"rows: .* dtype=bool": lambda s: s.reset(rows=np.zeros(0, bool)),
    r"q: expected shape \(2,\), \(4, 2\) or \(1, 2\), got \(3, 2\)": lambda s: s.reset(
        np.zeros((3, 2)), rows=[True, False, False, False]
    ),
    "sensors: only a simulation of one robot has it": lambda s: s.sensors,
    "trajectory: nothing is recorded": lambda s: s.trajectory(),
    "controller: expected none with batch": lambda s: rk.Simulation(s.robot, batch=2, controller=leaning),
    r"Ground\(friction=...\): expected 2, one per row": lambda s: rk.Simulation(
        m.box(), ground=rk.Ground(friction=np.array([0.1, 0.5, 0.9])), batch=2
    ),
    "batch: expected": lambda s: rk.Simulation(s.robot, batch=0),
    r"q0: expected shape \(2,\) or \(2, 2\), got \(3, 2\)": lambda s: rk.Simulation(
        s.robot, np.zeros((3, 2)), batch=2
    ),
}


@pytest.mark.parametrize("message", WRONG_OF_A_BATCH)
def test_wrong_inputs_of_a_batch_are_said(message):
    sim = rk.Simulation(m.double_pendulum(), dt=DT, batch=4)
    with pytest.raises(rk.RobokitError, match=message):
        WRONG_OF_A_BATCH[message](sim)


def test_rows_count_the_time_that_they_take(monkeypatch):
    kernel = _step_kernel(False, ())
    monkeypatch.setattr(kernel, "seconds", 0.0)
    started = time.process_time()
    rk.rollout(m.box(), None, np.zeros((3, 6)), duration=20 * DT, dt=DT, integrator="contact")
    assert 0.0 < kernel.seconds <= time.process_time() - started


@pytest.mark.slow
def test_a_run_goes_over_to_code_that_is_compiled_well_and_keeps_its_bits(tmp_path, monkeypatch):
    """A kernel of its own, nothing on disk: it is compiled soon, and well once it has run long enough."""
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    fresh = _step_kernel.__wrapped__(False, ())
    monkeypatch.setattr("robokit.sim.steppers.step_kernel", lambda *_: fresh)
    monkeypatch.setattr("robokit.sim.simulation.NOTED", 10)
    robot = humanoid()
    q = rk.standing_configuration(robot, height=0.005, tilt=0.1)
    one_by_one, at_once = (rk.Simulation(robot, q, ground=True, dt=DT) for _ in range(2))

    def go_on():
        for _ in range(25):
            one_by_one.step()
        at_once.step(steps=25)

    go_on()
    states = [sim._run.stepper for sim in (one_by_one, at_once)]
    before, (code,), turns = [state.ready() for state in states], fresh._codes.values(), 2
    assert fresh.soon(1, "float64") and not fresh.version
    fresh.ran(fresh.seconds_to_compile("float64"), 1, "float64")
    while not fresh.version:  # what a thread compiles meanwhile does not keep them
        go_on()
        turns += 1
    go_on()
    assert not fresh.soon(1, "float64")
    assert list(fresh._codes.values()) != [code]
    assert all(state.ready() is not call for state, call in zip(states, before, strict=True))
    assert one_by_one.contacts.forces[:, 2].sum() > 0.0
    run = rk.simulate(robot, q, duration=25 * turns * DT, dt=DT, ground=True)
    for sim in (one_by_one, at_once):
        assert np.array_equal(sim.q, run.q[-1]) and np.array_equal(sim.v, run.v[-1])


def test_passive_motion_goes_over_to_such_code_and_keeps_its_bits(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    robot, q = rk.load_urdf(rk.find_robot("double_pendulum")).with_gravity((0.0, 0.1, -9.7)), [1.0, 0.3]
    sim = rk.Simulation(robot, q, dt=DT)
    sim.step()
    stepper = sim._run.stepper
    soon = stepper._runner
    assert soon.baseline
    stepper.kernel.newer(soon, 1e3)  # it has run for long
    waiting.until(lambda: (sim.step(steps=10), stepper._runner is not soon)[1], pause=0.0)
    sim.step(steps=10)
    assert not stepper._runner.baseline
    run = rk.simulate(robot, q, duration=sim.steps * DT, dt=DT)
    assert np.array_equal(sim.q, run.q[-1]) and np.array_equal(sim.v, run.v[-1])


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_simulation_that_is_copied_says_what_can_be(copied):
    robot = m.box_with_bar()
    sim = rk.Simulation(robot, *start(robot, None), dt=DT, ground=GROUND)
    with pytest.raises(TypeError, match=r"cannot be pickled or copied: pickle its state\(\)"):
        copied(sim)


@pytest.mark.parametrize(("ground", "batch"), [(None, None), (True, None), (True, 3)])
def test_threads_that_step_one_simulation_wait_for_each_other(ground, batch):
    robot = humanoid() if ground else rk.load_urdf(rk.find_robot("double_pendulum"))
    q0 = rk.standing_configuration(robot) if ground else np.array([1.0, 0.3])
    several, alone = (rk.Simulation(robot, q0, dt=DT, ground=ground, batch=batch) for _ in range(2))
    begin, count = threading.Barrier(4), 25

    def steps():
        begin.wait()
        for _ in range(count):
            several.step()

    def watches():
        begin.wait()
        return [several.state() for _ in range(count)]

    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(steps) for _ in range(3)]
        seen = pool.submit(watches).result()
        for each in others:
            each.result()
    path = {0: alone.q.copy()}
    for k in range(3 * count):
        alone.step()
        path[k + 1] = alone.q.copy()
    assert several.steps == alone.steps and np.array_equal(several.q, alone.q)
    assert all(np.array_equal(each.q, path[each.steps]) for each in seen)


def test_while_a_function_of_the_user_runs_other_threads_may_read_the_simulation():
    """A controller, and a target, that wait for a thread which looks at the state and its contacts."""
    robot = humanoid()
    q0, seen = rk.standing_configuration(robot), []

    def looks():
        sim = scope["sim"]
        return sim.q, sim.v, sim.middle, sim.contacts, sim.sensors, sim.state(), len(sim.trajectory())

    def asks(t, q, v):
        if "sim" in scope:
            seen.append(other.submit(looks).result(timeout=waiting.PATIENCE))
        return np.zeros(scope["n"])

    actuators = rk.PD(kp=50.0, kd=2.0, target=asks)
    with ThreadPoolExecutor(1) as other:
        for options, n in (({"controller": asks}, robot.nv), ({"actuators": actuators}, robot.nv - 6)):
            scope = {"n": n}
            sim = rk.Simulation(robot, q0, dt=DT, ground=True, **options)
            sim.step()
            scope["sim"] = sim
            sim.step(steps=2)
            sim.step()
            path = [each[0] for each in seen[-3:]]
            assert np.array_equal(sim.trajectory().q[-1], sim.q)
            del scope["sim"]
            alone = rk.Simulation(robot, q0, dt=DT, ground=True, **options)
            for k in range(4):
                if k:
                    assert np.array_equal(path[k - 1], alone.q)
                alone.step()
            assert np.array_equal(sim.q, alone.q)


def test_functions_of_the_user_are_asked_for_the_steps_that_are_taken():
    """A table with a row for each step serves as controller and as target; restored states ask for none."""
    robot, n = m.double_pendulum(), 12
    table, asked = np.random.default_rng(0).normal(size=(n, robot.nv)), []

    def row(t, q, v):
        asked.append(round(t / DT - 0.5, 6))
        return table[int(t / DT)]

    run = rk.simulate(robot, [0.3, 0.1], duration=n * DT, dt=DT, controller=row, record_every=1)
    assert asked == list(range(n)) and np.array_equal(run.tau, table[[*range(n), -1]])
    rk.simulate(robot, [0.3, 0.1], duration=n * DT, dt=DT, actuators=rk.Torque(target=row))
    sim = rk.Simulation(robot, [0.3, 0.1], dt=DT, controller=row, record_every=1)
    sim.step(steps=n - 1)
    sim.step()
    assert np.array_equal(sim.q, run.q[-1]) and np.array_equal(sim.trajectory().tau, run.tau)
    state = sim.state()
    with pytest.raises(rk.SimulationError, match=r"the controller failed at t = 0\.012 s: IndexError"):
        sim.step()
    assert sim.steps == n and len(sim.trajectory()) == n + 1
    sim.restore(state)
    other = rk.Simulation(robot, [0.3, 0.1], dt=DT, controller=row)
    other.restore(state)
    assert len(other.trajectory()) == 1
    sampled = rk.Simulation(robot, dt=DT, controller=lambda t, q, v: table[round(t / DT)], control_every=3)
    sampled.step(steps=n)


@pytest.mark.parametrize("every", [1, 3])
def test_joint_forces_of_a_call_act_beside_the_controller_in_all_its_steps(every):
    robot, law = m.double_pendulum(), lambda t, q, v: -2.0 * q - np.sin(9.0 * t)
    once, often = (
        rk.Simulation(robot, [0.3, 0.1], dt=DT, controller=law, control_every=every) for _ in range(2)
    )
    for steps in (10, 5):
        once.step(tau=[1.0, 0.5], steps=steps)
        for _ in range(steps):
            often.step(tau=[1.0, 0.5])
        once.step(steps=4)
        for _ in range(4):
            often.step()
        assert np.array_equal(once.q, often.q) and np.array_equal(once.v, often.v)


@pytest.mark.parametrize("every", [1, 3])
def test_joint_forces_of_a_call_end_where_a_state_is_restored(every):
    robot, law = m.double_pendulum(), lambda t, q, v: -2.0 * q - np.sin(9.0 * t)
    sim, other = (
        rk.Simulation(robot, [0.3, 0.1], dt=DT, controller=law, control_every=every) for _ in range(2)
    )
    for one in (sim, other):
        one.step(steps=3)
    state = sim.state()
    sim.step(tau=[1.0, 0.5])
    sim.restore(state)
    for one in (sim, other):
        one.step(steps=5)
    assert np.array_equal(sim.q, other.q) and np.array_equal(sim.v, other.v)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"controller": lambda t, q, v: np.full(2, 1e3 * t)},
        {"controller": lambda t, q, v: np.full(2, 1e3 * t), "control_every": 3},
        {"actuators": rk.PD(kp=5.0, kd=0.1, target=lambda t, q, v: np.full(2, 10.0 * t))},
    ],
)
def test_sensors_of_a_restored_state_are_those_of_its_last_step(options):
    robot = m.double_pendulum()
    sim = rk.Simulation(robot, [0.3, 0.1], dt=DT, record_every=4, **options)
    for k in range(7):
        sim.step(tau=[1.0 * k, 0.5])
    before, state = sim.sensors.joint_force(robot.joint_names[0]), sim.state()
    sim.step(steps=3)
    sim.restore(state)
    after = sim.sensors.joint_force(robot.joint_names[0])
    assert np.array_equal(after.actuator, before.actuator) and np.array_equal(after.total, before.total)


def test_a_controller_that_fails_in_a_reset_fails_again_in_the_first_step():
    fails = False

    def law(t, q, v):
        if fails:
            raise ValueError("no force")
        return np.zeros(2)

    sim = rk.Simulation(m.double_pendulum(), [0.3, 0.1], dt=DT, controller=law, control_every=50)
    sim.step(steps=10)
    fails = True
    with pytest.raises(ValueError, match="no force"):
        sim.reset()
    with pytest.raises(rk.SimulationError, match="no force"):
        sim.step()
    assert sim.steps == 0
    fails = False
    sim.step()
    assert sim.steps == 1


def test_what_is_read_while_the_next_inputs_are_found_is_of_the_last_step():
    """A target that waits for a thread which reads a sensor, where the controller was asked already."""
    robot, seen = m.double_pendulum(), []

    def looks():
        return scope["sim"].sensors.joint_force(robot.joint_names[0]).actuator

    def target(t, q, v):
        if "sim" in scope:
            seen.append(other.submit(looks).result(timeout=waiting.PATIENCE))
        return np.zeros(robot.nv)

    with ThreadPoolExecutor(1) as other:
        scope = {}
        actuators = rk.PD(kp=5.0, kd=0.1, target=target)
        law = {"controller": lambda t, q, v: np.full(2, 1e3 * t)}
        sim = rk.Simulation(robot, [0.3, 0.1], dt=DT, actuators=actuators, **law)
        sim.step()
        scope["sim"] = sim
        for _ in range(3):
            wanted = looks()
            sim.step()
            assert np.array_equal(seen[-1], wanted)


def test_while_a_simulation_is_reset_or_restored_other_threads_may_read_it():
    robot = humanoid()
    q0, over = rk.standing_configuration(robot), threading.Event()

    def law(t, q, v):
        time.sleep(1e-3)  # others have their turn
        return leaning(t, q, v)

    sim = rk.Simulation(robot, q0, dt=DT, ground=True, controller=law)

    def looks():
        count = 0
        while not over.is_set():
            state, found = sim.state(), sim.trajectory()
            assert np.isfinite(state.q).all() and 0.0 <= found.t[0] <= found.t[-1]
            assert sim.contacts is not None
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(looks) for _ in range(2)]
        for _ in range(10):
            sim.step(steps=3)
            state = sim.state()
            sim.reset()
            sim.restore(state)
            sim.step()
        over.set()
        assert all(each.result() > 0 for each in others)
    sim.reset()
    sim.step()
    assert sim.steps == 1


def test_a_restored_state_is_not_charged_with_the_work_before_it():
    """A brake has taken nearly all energy; what goes on elsewhere from there has made none."""
    robot, brake = m.slider(), rk.Velocity(gain=100.0)
    options = {"v0": [10.0], "dt": 1e-3, "integrator": "contact", "actuators": brake, "record_every": 1}
    one, other = rk.Simulation(robot, **options), rk.Simulation(robot, **options)
    one.step(steps=100)
    other.restore(one.state())
    for _ in range(100):
        one.step()
        other.step()
    assert one.trajectory().energy.work[-1] < -90.0
    assert np.array_equal(one.q, other.q) and np.array_equal(one.v, other.v)


@pytest.mark.parametrize("integrator", ["contact", "rkmk4"])
def test_a_restored_state_may_draw_on_the_springs_that_it_is_in(integrator):
    """A force has pushed the slider into the stop of its joint, whose spring throws it back."""
    robot = m.slider(upper=0.1)
    options = {"dt": 1e-3, "gravity": (0.0, 0.0, 0.0), "joint_damping": 0.0, "integrator": integrator}
    one = rk.Simulation(robot, [0.1], **options)
    other = rk.Simulation(robot, [0.0], record_every=1, **options)
    one.step(tau=[1000.0], steps=300)
    other.restore(one.state())
    other.step(steps=300)
    energy = other.trajectory().energy
    assert energy.kinetic[0] < 1e-9 < 1e-3 < energy.kinetic.max()


def test_a_restored_run_that_is_too_long_to_be_noted_is_taken_again_from_its_state(monkeypatch, tmp_path):
    """With the bristles of its contacts: forces and events are those that were noted."""
    robot = m.quadruped()
    options = {"dt": DT, "ground": True, "record_every": 5}
    one = rk.Simulation(robot, rk.standing_configuration(robot, height=0.05, tilt=0.2), **options)
    one.step(steps=203)
    found = []
    for most in (1 << 28, 20_000):
        monkeypatch.setattr("robokit.sim.run_loop.MOST_BYTES", most)
        other = rk.Simulation(robot, rk.standing_configuration(robot), **options)
        other.restore(one.state())
        still = other.trajectory()
        assert still.a.shape == (1, robot.nv) and still.joint_reactions().wrenches.shape[0] == 1
        other.step(steps=150)
        found.append(other.trajectory())
    noted, again = found
    assert noted.notes is not None and again.notes is None
    assert np.array_equal(noted.contacts.forces, again.contacts.forces)
    assert [str(event) for event in noted.events] == [str(event) for event in again.events]
    assert np.abs(noted.contacts.forces).max() > 10.0
    assert noted.step_forces.t[[0, -1]] == pytest.approx([0.204, 0.353], abs=1e-12)
    assert "front_left_foot" in noted.to_html(tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_motion_of_steps_is_warned_of_as_a_run():
    robot, v = m.ball(), [0.0, 0.0, 0.0, 0.0, 0.0, -60.0]
    options = {"q0": [1, 0, 0, 0, 0, 0, 0.2], "v0": v, "dt": 4e-3, "ground": rk.Ground()}

    def run() -> None:
        rk.simulate(robot, duration=0.08, **options)

    def steps() -> None:
        sim = rk.Simulation(robot, **options)
        sim.step(steps=20)
        sim.trajectory()

    said = []
    for each in (run, steps):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            each()
        said.append([str(one.message) for one in caught])
    assert said[0] == said[1] and any("penetrated the ground" in text for text in said[0])
