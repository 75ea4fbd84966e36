"""Events of a run: times and sizes follow from closed forms, and from every step, whatever was recorded."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Mimic, ModelBuilder, couple
from robokit.sim.step_kernel import subjects_of

DT = 1e-3


def of_kind(run: rk.Trajectory, kind: str) -> list:
    return [event for event in run.events if event.kind == kind]


@pytest.mark.parametrize("every", [1, 37])
def test_a_ball_touches_the_ground_when_it_has_fallen_that_far(every):
    radius, height = 0.1, 0.3
    q0 = m.ball().neutral()
    q0[-1] = radius + height
    run = rk.simulate(m.ball(), q0, duration=0.4, dt=DT, ground=rk.Ground(), record_every=every)
    (first,) = of_kind(run, "first contact")
    assert first.subject == "ball" and first.time == pytest.approx(math.sqrt(2 * height / m.G), abs=DT)
    hit = of_kind(run, "impact")[0]
    speed = math.sqrt(2 * m.G * height)
    assert first.size == pytest.approx(speed, rel=0.01)
    assert hit.size == pytest.approx(1.0 * speed, rel=0.2)  # 1 kg, and some of it comes back
    assert f"{speed:.2f}"[:3] in str(first)
    assert any("first contact" in line for line in run.report())


def test_a_box_slides_until_friction_has_stopped_it():
    v, mu = 1.0, 0.4
    run = sliding_box(v, mu)
    events = [event for event in run.events if not event.kind.startswith("peak")]
    assert [event.kind for event in events] == ["first contact", "slip", "stick", "rest"]
    slip, stick = events[1:3]
    assert slip.time < 2 * DT and slip.size == pytest.approx(v, rel=0.02)
    assert stick.time == pytest.approx(v / (mu * m.G), abs=2 * DT)
    assert stick.size == pytest.approx(v * v / (2 * mu * m.G), rel=0.02)


def sliding_box(v: float, mu: float, **more) -> rk.Trajectory:
    box, ground = m.box(), rk.Ground(friction=mu)
    q0 = rk.standing_configuration(box, ground=ground)
    v0 = np.zeros(box.nv)
    v0[3] = v
    return rk.simulate(box, q0, v0, duration=0.5, dt=DT, ground=ground, **more)


def test_a_pendulum_reaches_its_limit_in_its_own_time():
    robot = m.pendulum(upper=0.5, lower=-2.0).with_gravity((0, 0, 0))
    run = rk.simulate(robot, v0=[2.0], duration=0.5, dt=DT, joint_damping=0.0, record_every=1)
    reached, left = (of_kind(run, kind)[0] for kind in ("limit", "limit left"))
    assert reached.subject == "hinge" and "upper" in reached.text and reached.unit == "rad/s"
    assert reached.time == pytest.approx(0.5 / 2.0, abs=DT)
    assert reached.size == pytest.approx(2.0, rel=1e-3)
    assert left.time > reached.time and left.size > 1.0 and left.unit == "N m"
    (past,) = of_kind(run, "past limit")
    beyond = run.q[:, 0] - 0.5
    assert past.subject == "hinge" and past.unit == "rad" and "upper" in past.text
    assert past.size == pytest.approx(beyond.max(), rel=1e-9)
    assert past.time == pytest.approx((beyond.argmax() + 0.5) * DT)
    limits = next(answer for answer in run.answers if answer.label == "joint limits")
    assert limits.event is past and limits.value == "1 joint" and "upper" in limits.note


def test_an_actuator_is_at_its_limit_until_the_target_is_near():
    robot = m.pendulum(kind="continuous").with_gravity((0, 0, 0))
    inertia, most, kp, target = 0.01 + 0.5**2, 1.0, 10.0, 1.0
    drive = rk.PD(joints=["hinge"], target=target, kp=kp, kd=0.0, effort=most)
    run = rk.simulate(robot, duration=0.8, dt=DT, actuators=drive, joint_damping=0.0)
    begin, end = (of_kind(run, kind)[0] for kind in ("saturation", "saturation ends"))
    assert begin.subject == "hinge" and begin.time < DT and begin.size == pytest.approx(most)
    assert end.time == pytest.approx(math.sqrt(2 * inertia * (target - most / kp) / most), abs=3 * DT)
    assert end.size == pytest.approx(end.time, abs=2 * DT)


def tumbling(every: int, **more) -> rk.Trajectory:
    q0, v0 = m.box().neutral(), np.array([3.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    q0[-1] = 0.5
    return rk.simulate(m.box(), q0, v0, 0.8, DT, rk.Ground(), record_every=every, **more)


def test_events_do_not_depend_on_what_was_recorded():
    def push(t, q, v):
        return np.array([0.0, 0.0, 0.0, 3.0 * math.sin(30.0 * t), 0.0, 0.0])

    for more in ({}, {"controller": push}):
        runs = [tumbling(every, **more) for every in (1, 10, 1000)]
        lists = [[str(event) for event in run.events] for run in runs]
        assert len(lists[0]) > 8 and lists[0] == lists[1] == lists[2]


def test_a_row_of_a_rollout_has_the_events_of_its_simulation():
    v0 = np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]])
    box, ground = m.box(), rk.Ground(friction=0.4)
    q0 = rk.standing_configuration(box, ground=ground)
    rows = rk.rollout(box, q0, v0, duration=0.5, dt=DT, ground=ground)
    assert [str(x) for x in rows.trajectory(0).events] == [str(x) for x in sliding_box(1.0, 0.4).events]


@pytest.mark.parametrize("run", [lambda: tumbling(17), lambda: rk.simulate(m.double_pendulum(), [1, 0])])
def test_a_run_that_is_too_long_to_be_noted_has_the_same_events_and_sensors(run):
    noted = run()
    again, link = dataclasses.replace(noted, notes=None), noted.robot.links[-1].name
    assert noted.notes is not None and again.events == noted.events
    for one, other in ((noted.sensors.imu(link), again.sensors.imu(link)),):
        np.testing.assert_array_equal(one.specific_force, other.specific_force)
        np.testing.assert_array_equal(one.angular_velocity, other.angular_velocity)
    if noted.contacts is not None:
        np.testing.assert_array_equal(noted.contacts.forces, again.contacts.forces)
        np.testing.assert_array_equal(noted.contacts.points, again.contacts.points)


def test_no_step_is_taken_twice(monkeypatch):
    run = tumbling(17)
    monkeypatch.setattr("robokit.sim.events.stepper", None)
    assert run.events and run.contacts is not None and len(run.sensors.imu("box").specific_force) == len(run)


def test_events_are_saved(tmp_path):
    run = tumbling(10)
    again = rk.Trajectory.load(run.save(tmp_path / "run"))
    assert again.events == run.events
    assert any("impact" in line for line in again.report())


def test_failure_is_an_event():
    robot = m.pendulum(kind="continuous")
    with pytest.raises(rk.SimulationError) as caught:
        rk.simulate(robot, duration=0.1, dt=DT, controller=lambda t, q, v: [0.0] if t < 0.05 else 1 / 0)
    last = caught.value.trajectory.events[-1]
    assert last.kind == "failure" and last.time == pytest.approx(0.05) and "ZeroDivisionError" in last.text


def test_forces_of_links_add_up_to_that_of_the_ground():
    run = tumbling(1)
    (link,) = run.contact_forces
    assert link == "box"
    np.testing.assert_allclose(run.contact_forces[link], run.contacts.forces.sum(axis=1))
    np.testing.assert_allclose(run.contact_forces[link], run.contact_force, atol=1e-9)
    assert np.abs(run.contact_force).max() > 10.0
    assert rk.simulate(m.pendulum(), duration=0.01).contact_forces == {}


def test_links_that_did_not_touch_the_ground_have_no_force(tmp_path):
    robot = m.quadruped()
    run = rk.simulate(robot, rk.standing_configuration(robot), duration=0.02, ground=True)
    for each in (run, rk.Trajectory.load(run.save(tmp_path / "run.npz"))):
        assert tuple(each.contact_forces) == run.step_forces.links and not each.contact_forces["trunk"].any()
        with pytest.raises(rk.UnknownName, match="no link named 'Trunk'; did you mean 'trunk'"):
            _ = each.contact_forces["Trunk"]


@pytest.mark.parametrize("accuracy", [None, 1e-3])
def test_before_the_first_step_nothing_touches(accuracy):
    robot = m.box(0.2)
    given = {"ground": True, "self_collision": True, "accuracy": accuracy}
    fresh = rk.Simulation(robot, [1, 0, 0, 0, 0, 0, 0.1], **given).trajectory()
    for run in (fresh, rk.simulate(robot, fresh.q[0], duration=0.0, **given)):
        assert len(run) == 1 and run.contacts.forces.shape == run.body_contacts.forces.shape == (1, 0, 3)
        assert run.contact_forces["box"].tolist() == [[0.0, 0.0, 0.0]]


def test_forces_of_all_steps_are_known_whatever_is_recorded(tmp_path):
    run, every = tumbling(7), tumbling(1)
    forces = run.step_forces
    assert forces.links == ("box",) and len(forces.t) == run.summary["steps"]
    # A bristle of 6e6 N/m makes that of the last bit of a position.
    np.testing.assert_allclose(forces.total, every.contact_force[1:], atol=2e-8)
    at = np.searchsorted(forces.t, run.t[1:] - 1e-9)
    np.testing.assert_allclose(forces.total[at], run.contact_force[1:], atol=2e-8)
    np.testing.assert_allclose(DT * forces.total.sum(axis=0), run.contact_impulse[-1], atol=1e-8)
    again = rk.Trajectory.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.step_forces.force, forces.force)
    np.testing.assert_array_equal(again.contact_impulse, run.contact_impulse)
    assert rk.simulate(m.pendulum(), duration=0.01).step_forces is None


@pytest.mark.parametrize("every", [1, 50])
def test_the_largest_force_is_that_of_a_step(every):
    every_step, run = tumbling(1), tumbling(every)
    forces = np.linalg.norm(every_step.contact_forces["box"], axis=1)
    (most,), (load,) = of_kind(run, "peak force"), of_kind(run, "peak load")
    assert most.subject == "box" and most.unit == "N" and load.subject == run.robot.name
    assert most.size == pytest.approx(forces.max(), rel=1e-9)
    assert most.time == pytest.approx((forces.argmax() - 0.5) * DT)
    assert load.size == pytest.approx(np.linalg.norm(every_step.contact_force, axis=1).max(), rel=1e-9)


def test_a_run_answers_the_usual_questions():
    said = {answer.label: answer for answer in tumbling(20).answers}
    events = tumbling(1).events
    first = next(event for event in events if event.kind == "first contact")
    most = max((event for event in events if event.kind == "peak force"), key=lambda event: event.size)
    assert said["first contact"].value == f"{first.time:.4f} s" and "box" in said["first contact"].note
    assert said["first contact"].event == first and said["largest force"].event == most
    assert said["impacts"].value == str(sum(event.kind == "impact" for event in events))
    assert said["joint limits"].value == "none reached" and "on all links" not in said
    assert all(len(answer.label) <= 13 for answer in said.values())


def test_events_of_a_run_without_notes_are_those_of_every_step():
    run = tumbling(40)
    again = dataclasses.replace(tumbling(40), notes=None)  # as of a run that is too long to be noted
    assert again.events == again.sampled_events == run.events
    assert list(map(str, run.answers)) == list(map(str, again.answers))


def kinds(events):
    return {event.kind: event for event in reversed(events)}


@pytest.mark.parametrize("options", [{}, {"accuracy": 1e-5}], ids=["whole steps", "divided steps"])
def test_sampled_events_have_the_largest_force_of_every_step(options):
    run = tumbling(40, **options)
    again = dataclasses.replace(run, notes=None)  # as of a run that is too long to be noted
    exact, rough = kinds(run.events), kinds(again.sampled_events)
    assert rough["peak load"].size == pytest.approx(exact["peak load"].size, rel=1e-9)
    assert rough["peak load"].time == pytest.approx(exact["peak load"].time)
    assert rough["first contact"].time == pytest.approx(exact["first contact"].time, abs=40 * DT)
    assert any("recorded states, every 40 ms" in x for x in again.report()) and again.notes is None
    assert len(again.sampled_events) <= len(run.events)
    assert again.contacts is not None and run.sampled_events == run.events


def test_a_robot_that_stands_touches_from_the_start():
    said = {answer.label: answer for answer in sliding_box(1.0, 0.4).answers}
    assert str(said["first contact"]) == "from the start: box"
    assert said["slips"].value == "1" and "box from 0.0005 s" in said["slips"].note
    assert said["rest"].value.startswith("since 0.2") and "next contact" not in said


def test_links_that_collide_exchange_the_impulse_of_their_restitution():
    masses, restitution = (1.0, 2.0), 0.3
    robot = m.sliders(masses=masses).with_gravity((0, 0, 0))
    pairs = rk.collision_pairs(robot).with_law(restitution=restitution)
    run = rk.simulate(robot, v0=[1.0, -0.5], duration=0.4, dt=DT, self_collision=pairs)
    met = of_kind(run, "collision")
    assert {event.subject for event in met} == {"ball0", "ball1"} and len(met) == 2
    for event in met:
        assert event.time == pytest.approx(0.3 / 1.5, abs=2 * DT)
        assert event.size == pytest.approx(2.0 / 3.0 * (1.0 + restitution) * 1.5, rel=0.005)


def test_a_coupled_joint_reaches_its_limit_under_its_own_name():
    builder = ModelBuilder("gripper").link("palm")
    for finger in ("left", "right"):
        builder.link(finger, 1.0, com=(0.2, 0.0, 0.0), inertia=np.eye(3) * 0.01)
    builder.joint("lead", "revolute", "palm", "left", axis=(0, 0, 1), lower=-2.0, upper=2.0)
    builder.joint(
        "follow", "revolute", "palm", "right", axis=(0, 0, 1), lower=-0.4, upper=0.4, mimic=Mimic("lead", 2.0)
    )
    run = rk.simulate(
        rk.model.couple(builder.build("fixed")), v0=[1.0], duration=0.4, dt=DT, joint_damping=0.0
    )
    reached = of_kind(run, "limit")[0]
    assert reached.subject == "follow" and reached.time == pytest.approx(0.4 / 2.0, abs=DT)
    assert reached.size == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("multiplier", [2.0, -2.0])
def test_a_joint_that_follows_another_reaches_limits_of_its_own(multiplier):
    """A force of 3 N on the leader is 1.5 N at the stop of the joint that goes twice as far."""
    builder = ModelBuilder("fingers").link("palm")
    for name, mimic, upper in (("lead", None, 0.05), ("follow", Mimic("lead_slide", multiplier, 0.0), 0.04)):
        builder.link(name, 0.1, inertia=np.eye(3) * 1e-4)
        low, high = (0.0, upper) if mimic is None or multiplier > 0.0 else (-upper, 0.0)
        builder.joint(
            f"{name}_slide", "prismatic", "palm", name, None, (1, 0, 0), lower=low, upper=high, mimic=mimic
        )
    robot = couple(builder.build("fixed"))
    motor = rk.Torque(joints=["lead_slide"], target=3.0)
    options = {"actuators": motor, "integrator": "contact", "dt": 1e-3, "duration": 0.5, "gravity": (0, 0, 0)}
    run = rk.simulate(robot, joint_damping=3.0, **options)
    found = {event.subject for event in run.events if event.kind == "limit"}
    assert found == {"follow_slide"}
    names = [name for name, _ in subjects_of(run.program).joints]
    stops = dict(zip(names, run.step_facts.stop[-1], strict=True))
    assert stops["lead_slide"] == 0.0
    assert stops["follow_slide"] == pytest.approx(-np.sign(multiplier) * 1.5, abs=1e-6)
    rows = rk.rollout(robot, [[0.0]], joint_damping=3.0, measures=["limits", "limits_by_joint"], **options)
    assert rows.measures["limit_joint"][0] == "follow_slide"


@pytest.mark.parametrize("integrator", ["rkmk4", "contact"])
def test_rotors_do_not_keep_a_robot_from_rest(integrator):
    """Its speed is that of its links: the measure of a rollout and the event of a run agree on it."""
    robot = ModelBuilder("wheel").link("base").link("rim", 1.0, inertia=np.eye(3) * 1e-4)
    robot = robot.joint("axle", "continuous", "base", "rim", axis=(0, 0, 1)).build()
    same = {"duration": 0.3, "integrator": integrator, "actuators": rk.Torque(0.0, armature=100.0)}
    run = rk.simulate(robot, [0.0], [0.01], **same)
    (rest,) = of_kind(run, "rest")
    assert rest.size == pytest.approx(0.01 * 1e-2, rel=1e-6)  # sqrt(I / m) omega
    measured = rk.rollout(robot, [[0.0]], [[0.01]], measures=["rest"], **same).measures
    assert measured["rest_time"][0] == rest.time


def test_events_and_contacts_of_a_long_run_take_its_steps_once(monkeypatch):
    taken = []
    again = "robokit.sim.trajectory.retaken"
    monkeypatch.setattr("robokit.sim.run_loop.MOST_BYTES", 20_000)
    monkeypatch.setattr(
        again, lambda *a, real=rk.sim.trajectory.retaken, **k: taken.append(a) or real(*a, **k)
    )
    q0 = m.ball().neutral()
    q0[-1] = 0.15
    run = rk.simulate(m.ball(), q0, duration=0.3, dt=DT, ground=True)
    assert run.notes is None and run.events and run.contacts is not None and run.step_facts is not None
    assert len(run.sensors.imu("ball").specific_force) == len(run.a) == len(run)
    assert len(taken) == 1


def test_a_run_without_a_step_has_no_events():
    run = rk.simulate(m.box(), rk.standing_configuration(m.box()), duration=0.0, dt=DT, ground=True)
    again = dataclasses.replace(run, notes=None)
    assert run.events == again.sampled_events == dataclasses.replace(again).events == []
