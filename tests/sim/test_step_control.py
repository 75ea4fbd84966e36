"""Steps that are divided to an accuracy: errors, laws, rows, events, and what the summary says."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.contact.step_control import TICKS
from robokit.model import Box, ModelBuilder, Shape, Sphere

GROUND = rk.Ground()


@pytest.fixture(scope="module")
def fallen():
    """A humanoid that falls: its robot, its start, and its run with an accuracy."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q0 = rk.standing_configuration(robot, height=0.1)
    v0 = np.random.default_rng(1).normal(size=robot.nv)
    return robot, (q0, v0), rk.simulate(robot, q0, v0, 0.6, ground=True, accuracy=1e-3)


def ball(radius=0.1):
    inertia = 0.4 * radius**2 * np.eye(3)
    builder = ModelBuilder("ball").link("ball", 1.0, inertia=inertia, collisions=(Shape(Sphere(radius)),))
    return builder.build("floating")


def bounces(accuracy, **step):
    """State of an elastic ball after two bounces, and its run."""
    ground = rk.Ground(restitution=1.0, sink=1e-6, time=1e-5)
    run = rk.simulate(ball(), [1.0, 0, 0, 0, 0, 0, 0.4], None, 1.0, ground=ground, accuracy=accuracy, **step)
    return run.q[-1, 6], run


@pytest.mark.parametrize("speed", [0.0, 3.0])
def test_errors_of_a_pendulum_shrink_with_the_tolerance(speed):
    """An error of a part is C h^3, of N parts N times as much: it goes with the tolerance to the 2/3."""
    robot, start = m.pendulum(), ([1.5], [speed], 1.92)
    true = rk.simulate(robot, *start, dt=2e-4, integrator="rkmk4").q[-1, 0]
    errors, parts = [], []
    for accuracy in (1e-3, 1e-5, 1e-7):
        run = rk.simulate(robot, *start, dt=0.064, integrator="contact", accuracy=accuracy)
        errors.append(abs(run.q[-1, 0] - true))
        parts.append(run.summary["parts_taken"])
    assert errors[2] < 1e4 ** (-0.5) * errors[0] < 1e-3 and parts[0] < parts[1] < parts[2]


def test_bounces_are_met_where_they_are():
    true, _ = bounces(None, dt=1e-5)
    fixed, many = bounces(None, dt=1e-3)
    found, few = bounces(1e-3)
    assert abs(found - true) < 0.1 * abs(fixed - true)
    assert few.summary["parts_taken"] < 0.7 * many.summary["steps"]


def test_errors_of_a_fall_shrink_with_the_tolerance(fallen):
    robot, start, _ = fallen
    true = rk.simulate(robot, *start, 0.32, dt=4e-5, ground=True).q[-1]
    runs = [rk.simulate(robot, *start, 0.32, ground=True, accuracy=x) for x in (1e-2, 1e-4, 1e-6)]
    off = [np.linalg.norm(run.q[-1] - true) for run in runs]
    assert off[0] > 2.0 * off[1] and off[1] > off[2]


def test_laws_hold_in_parts(fallen):
    s, run = fallen[2].summary, fallen[2]
    assert s["momentum_balance_linear"] < 1e-10 and s["momentum_balance_angular"] < 1e-10
    assert (run.energy.mechanical <= run.energy.mechanical[0] + 1e-9).all()
    assert s["energy_balance"] < 1e-3 * s["energy_exchanged"]
    assert s["contact_impulse_pulled"] == s["contact_impulse_outside"] == 0.0
    facts = run.step_facts
    of_parts = facts.force.sum(axis=1) * facts.lengths[:, None] * s["dt"]
    np.testing.assert_allclose(of_parts.sum(axis=0), run.contact_impulse[-1], rtol=1e-9, atol=1e-9)
    assert len(run.step_forces.force) == s["steps"] and facts.edges[-1] == s["steps"]


def test_parts_are_short_in_impacts_and_long_else(fallen):
    s = fallen[2].summary
    assert s["shortest_part"] < s["dt"] / 16 and s["longest_part"] == s["dt"] / 2
    assert s["parts_rejected"] > 0 and s["parts_not_met"] == 0
    lies = rk.simulate(m.box(), rk.standing_configuration(m.box()), None, 0.5, ground=True).q[-1]
    box = rk.simulate(m.box(), lies, None, 0.4, ground=True, accuracy=1e-6)
    assert box.summary["parts_taken"] == 2 * box.summary["steps"], "at rest nothing is divided"
    hit = rk.simulate(ball(), [1.0, 0, 0, 0, 0, 0, 0.4], None, 1.0, ground=True, accuracy=1e-9).summary
    assert hit["shortest_part"] == pytest.approx(hit["dt"] / TICKS) and hit["parts_not_met"] > 0


def test_rows_have_parts_of_their_own(fallen):
    robot, (q0, v0), run = fallen
    rows = rk.rollout(
        robot, q0, np.stack([2 * v0, v0, 0 * v0]), 0.6, ground=True, accuracy=1e-3, threads=2, measures=True
    )
    np.testing.assert_array_equal(rows.q[:, 1], run.q)
    again = rows.trajectory(1)
    np.testing.assert_array_equal(again.q, run.q)
    assert [str(e) for e in again.events] == [str(e) for e in run.events]
    assert again.summary["parts_taken"] == run.summary["parts_taken"]
    first = next(e for e in run.events if e.kind == "first contact")
    most = max((e for e in run.events if e.kind == "peak force"), key=lambda e: e.size)
    assert rows.measures["first_contact_time"][1] == pytest.approx(first.time, abs=1e-12)
    assert rows.measures["peak_force"][1] == pytest.approx(most.size, rel=1e-9)
    assert rows.measures["peak_force_time"][1] == pytest.approx(most.time, abs=1e-12)


def test_a_fall_of_another_size_has_the_same_parts():
    runs = []
    for size in (1.0, 0.01):
        time, v = size**0.5, np.array([1.0, 2.0, 0.0, 0.5, 0.0, 0.0])
        v *= np.repeat([1.0 / time, size / time], 3)
        step = {"dt": 4e-3 * time, "record_every": 1, "accuracy": 1e-4}
        q0 = [1, 0, 0, 0, 0, 0, 0.2 * size]
        run = rk.simulate(m.box(0.2 * size), q0, v, 0.4 * time, ground=True, **step)
        runs.append((run.summary["parts_taken"], run.q / [1, 1, 1, 1, size, size, size]))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_allclose(runs[0][1], runs[1][1], atol=1e-12)


def test_arrays_grow_within_a_step():
    """A box that drops on tiles: more contacts than there is place for at first."""
    tiles = [(0.05 * (k % 4), 0.05 * (k // 4), -0.01) for k in range(16)]
    ground = rk.Ground(height=-1.0, shapes=[rk.Solid(Box((0.04, 0.04, 0.02)), place) for place in tiles])
    run = rk.simulate(m.box(), [1, 0, 0, 0, 0.075, 0.075, 0.12], None, 0.4, ground=ground, accuracy=1e-4)
    assert run.q[-1, 6] == pytest.approx(0.1, abs=1e-3) and np.abs(run.v[-1]).max() < 1e-3
    rows = rk.rollout(m.box(), run.q[:1].repeat(2, 0), None, 0.4, ground=ground, accuracy=1e-4)
    np.testing.assert_array_equal(rows.q[:, 1], run.q)


def test_events_and_sensors_are_those_of_short_steps():
    v0 = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    q0 = [1.0, 0, 0, 0, 0, 0, 0.3]
    fine = rk.simulate(ball(), q0, v0, 0.5, dt=5e-5, ground=GROUND)
    run = rk.simulate(ball(), q0, v0, 0.5, ground=GROUND, accuracy=1e-5)
    for kind in ("first contact", "impact"):
        a, b = (next(e for e in x.events if e.kind == kind) for x in (run, fine))
        assert a.time == pytest.approx(b.time, abs=2e-4) and a.size == pytest.approx(b.size, rel=0.02), kind
    lying = run.sensors.contact_wrench("ball")[-1, 3:]
    assert np.linalg.norm(lying) == pytest.approx(m.G, rel=0.02)


def test_contacts_of_a_divided_step_are_means_over_its_parts():
    """Momentum says what their forces are, angular momentum where they act; what presses is in the cone."""
    robot = m.box(0.2)
    q0, v0 = [0.8, 0.3, 0.5, np.sqrt(1 - 0.98), 0, 0, 0.25], [1.0, 2.0, 0.5, 0.4, 0.2, -1.0]
    run = rk.simulate(robot, q0, v0, 0.6, ground=True, accuracy=1e-4, record_every=1)
    dt, c = run.summary["dt"], run.contacts
    assert run.summary["parts_taken"] > 2 * len(run) and not run.summary["parts_not_met"]
    forces, change = c.forces[1:], np.diff(run.momentum, axis=0) / dt
    largest = np.abs(forces).max()
    assert np.abs(change[:, 3:] - forces.sum(1) - robot.total_mass * robot.gravity).max() < 1e-12 * largest
    assert np.abs(run.contact_forces["box"][1:] - forces.sum(1)).max() < 1e-12 * largest
    arms = c.points[1:] - 0.5 * (run.q[1:, None, 4:] + run.q[:-1, None, 4:])
    off = np.abs(change[:, :3] - np.cross(arms, forces).sum(1)).max(axis=1)
    assert np.median(off[forces.any((1, 2))]) < 2e-3 and off.max() < 0.02 * 0.1 * largest
    N = np.einsum("tki,tki->tk", c.forces, c.normals)
    assert N.min() >= 0.0 and (np.linalg.norm(c.forces, axis=2) <= N * np.hypot(1.0, 0.8) + 1e-9).all()
    wrench = run.sensors.contact_wrench("box")[1:, 3:]
    assert (
        np.abs(np.linalg.norm(wrench, axis=1) - np.linalg.norm(forces.sum(1), axis=1)).max() < 1e-9 * largest
    )


def test_loop_forces_of_divided_steps_are_means_over_their_parts():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    q, v = rk.close_loops(robot, robot.neutral()), np.full(robot.nv, 3.0)
    given = {"duration": 0.096, "dt": 8e-3, "integrator": "contact", "record_every": 1}
    run = rk.simulate(robot, q, v, accuracy=1e-6, **given)
    fine = rk.simulate(robot, q, v, **(given | {"dt": 1e-4}))
    assert run.summary["parts_taken"] > 2 * len(run)
    for name, found in run.loop_forces.items():
        mean = fine.loop_forces[name][:-1].reshape(-1, 80, 6).mean(axis=1)
        assert np.abs(found[: len(mean)] - mean).max() < 1e-3 * np.abs(mean).max()


def test_nothing_is_said_of_spins_that_parts_of_steps_follow(recwarn):
    rk.simulate(
        m.box(0.2), v0=[90.0, 80, 60, 0, 0, 0], duration=0.05, dt=4e-3, integrator="contact", accuracy=1e-3
    )
    assert not len(recwarn)


def test_a_servo_that_tracks_has_no_error_of_its_own():
    """Its target velocity goes with what each part adds to the damping."""
    robot, rate = m.pendulum(), 0.5
    drive = rk.PD(kp=2e4, kd=200.0, target=lambda t, q, v: [rate * t], velocity=[rate])
    run = rk.simulate(
        robot, [0.0], [rate], 0.5, dt=2e-3, integrator="contact", actuators=drive, accuracy=1e-4
    )
    fixed = rk.simulate(robot, [0.0], [rate], 0.5, dt=1e-4, integrator="contact", actuators=drive)
    assert run.q[-1, 0] == pytest.approx(fixed.q[-1, 0], abs=2e-3)


def test_half_the_step_is_a_quarter_of_the_accuracy(fallen):
    robot, start, _ = fallen
    run = rk.simulate(robot, *start, 0.1, ground=True, accuracy=1e-3, estimate=True)
    assert run.summary["estimate"]["dt"] == run.summary["dt"] / 2


def test_only_steps_of_contact_are_divided():
    with pytest.raises(rk.ShapeError, match="accuracy: divides the steps of 'contact'"):
        rk.simulate(m.pendulum(), accuracy=1e-3)
    with pytest.raises(rk.ShapeError, match="accuracy: expected"):
        rk.simulate(m.box(), ground=True, accuracy=0.0)


def test_a_run_with_parts_is_kept_in_files_and_shown(fallen, tmp_path):
    run = fallen[2]
    again = rk.Trajectory.load(run.save(tmp_path / "fall.npz"))
    assert [str(e) for e in again.events] == [str(e) for e in run.events]
    assert again.summary["shortest_part"] == run.summary["shortest_part"]
    assert any("to an accuracy of 0.001" in line for line in again.report())
    assert run.to_html(tmp_path / "fall.html").stat().st_size > 1e5
