"""The public face of simulate: arguments, records, reasons to stop."""

import math
import warnings

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import ModelBuilder
from robokit.sim import motion
from robokit.sim.integrators import METHODS
from robokit.sim.joint_forces import joint_law
from robokit.sim.run_loop import warn_of
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import first_carried


def test_records():
    trajectory = rk.simulate(m.double_pendulum(), [0.1, 0.0], duration=0.1, record_every=30)
    assert trajectory.t == pytest.approx([0, 0.03, 0.06, 0.09, 0.1])
    assert trajectory.q.shape == (5, 2) and trajectory.v.shape == (5, 2)
    assert trajectory.momentum.shape == (5, 6) and trajectory.contact_force.shape == (5, 3)
    assert trajectory.contacts is None
    assert len(rk.simulate(m.double_pendulum(), duration=0.0)) == 1


def test_how_often_is_recorded_changes_nothing():
    runs = [
        rk.simulate(m.double_pendulum(), [1.0, 0.5], duration=0.3, record_every=k, controller=c)
        for k, c in ((1, None), (100, None), (1, lambda t, q, v: np.zeros(2)))
    ]
    for run in runs[1:]:
        assert np.array_equal(run.q[-1], runs[0].q[-1])


def test_records_agree_with_the_public_functions():
    robot = m.free_chain()
    trajectory = rk.simulate(robot, None, np.ones(robot.nv), duration=0.1)
    q, v = trajectory.q, trajectory.v
    assert trajectory.energy.kinetic == pytest.approx(rk.kinetic_energy(robot, q, v), rel=1e-12)
    assert trajectory.energy.potential == pytest.approx(rk.potential_energy(robot, q), abs=1e-11)
    assert trajectory.momentum == pytest.approx(rk.centroidal_momentum(robot, q, v), abs=1e-11)


@pytest.mark.parametrize("name", ["midpoint", "rkmk4", "energy_momentum"])
def test_machine_code_and_plain_floats_take_the_same_steps(name):
    robot = m.free_chain()
    q = robot.neutral()
    q[:4], q[6] = (0.8, 0.6, 0.0, 0.0), 0.14
    v = np.linspace(-1, 1, robot.nv)
    compiled = rk.simulate(robot, q, v, duration=0.05, integrator=name, joint_damping=0.2)
    law, _ = joint_law(robot, 0.2)
    program = Program(robot, name, METHODS[name], law)
    carried = first_carried(program, q[None], v[None])[0]
    state = [q.tolist(), v.tolist(), [0.0] * motion.SIZE, carried.tolist()]
    for _ in range(50):
        state = program.text(*state[:2], [0.0] * robot.nv, *state[2:], program.parameters(1e-3).tolist())
    assert state[0] == pytest.approx(compiled.q[-1].tolist(), abs=1e-10)
    assert state[1] == pytest.approx(compiled.v[-1].tolist(), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"dt": 0.0}, "dt"),
        ({"dt": math.nan}, "dt"),
        ({"duration": -1.0}, "duration"),
        ({"duration": "1"}, "duration"),
        ({"q0": [0.0]}, "q0"),
        ({"q0": [math.inf, 0.0]}, "q0"),
        ({"v0": np.zeros((2, 2))}, "v0"),
        ({"record_every": 0}, "record_every"),
        ({"record_every": 1.5}, "record_every"),
        ({"joint_damping": -1.0}, "joint_damping"),
        ({"ground": 3.0}, "ground"),
        ({"gravity": (0, 0)}, "gravity"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match=named):
        rk.simulate(m.double_pendulum(), **arguments)


def test_quaternion_must_be_unit():
    q = m.box().neutral()
    q[0] = 2.0
    with pytest.raises(rk.InvalidValue, match="unit quaternion"):
        rk.simulate(m.box(), q)


@pytest.mark.parametrize("wrong", [{"friction": -1.0}, {"sink": 0.0}, {"time": -1.0}, {"height": math.nan}])
def test_ground_checks_its_constants(wrong):
    with pytest.raises(rk.ShapeError, match=next(iter(wrong))):
        rk.Ground(**wrong)


def test_long_contact_steps_are_warned_of():
    with pytest.warns(UserWarning, match="4 ms"):
        rk.simulate(m.box(), None, duration=0.02, dt=6e-3, ground=rk.Ground(height=-5.0))


def test_deep_penetration_is_warned_of():
    with pytest.warns(rk.SimulationWarning, match="starts 50 mm inside the ground"):
        rk.simulate(m.box(), [1.0, *[0.0] * 5, 0.05], duration=0.01, ground=rk.Ground())
    with pytest.warns(rk.SimulationWarning, match="by 30 mm"):
        warn_of({"deepest_penetration": 0.03})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of({"deepest_penetration": 0.03}, start=0.03)  # it was said of the start


def test_massless_joint_is_named():
    builder = ModelBuilder("r")
    builder.link("base", mass=1.0)
    builder.link("arm", mass=1.0, com=(0, 0, 1), inertia=np.eye(3))
    builder.link("tip")
    builder.joint("shoulder", "continuous", "base", "arm")
    builder.joint("empty", "continuous", "arm", "tip")
    with pytest.raises(rk.SingularInertia, match="empty") as caught:
        rk.simulate(builder.build("fixed"))
    assert caught.value.joint == "empty"


def _explode(t, q, v):
    return 1e200 * np.sign(v + 1e-300) if t > 0.05 else np.zeros(2)


@pytest.mark.parametrize("record_every", [1, 7])
def test_not_finite_keeps_the_trajectory(record_every):
    with pytest.raises(rk.SimulationError, match="no longer finite") as caught:
        rk.simulate(m.double_pendulum(), [0.3, 0.2], [1, 1], controller=_explode, record_every=record_every)
    kept = caught.value.trajectory
    assert np.isfinite(kept.q).all() and 0.03 < kept.t[-1] < 0.1
    assert "try dt" in str(caught.value)


def test_not_finite_inside_the_engine_keeps_the_trajectory():
    with pytest.raises(rk.SimulationError) as caught:
        rk.simulate(m.double_pendulum(), [0.3, 0.2], [1e200, 0.0], duration=1.0, record_every=100)
    assert np.isfinite(caught.value.trajectory.q).all()
    assert len(caught.value.trajectory) >= 1


def test_ctrl_c_keeps_the_trajectory():
    def controller(t, q, v):
        if t > 0.02:
            raise KeyboardInterrupt
        return np.zeros(2)

    trajectory = rk.simulate(m.double_pendulum(), duration=1.0, controller=controller, record_every=1)
    assert trajectory.summary["interrupted"] is True
    assert 0.015 < trajectory.t[-1] < 0.03
    assert "interrupted" in trajectory.report()[0]


def test_progress_bar(capsys):
    rk.simulate(m.double_pendulum(), duration=0.05, progress=True)
    assert "step" in capsys.readouterr().err


def test_standing_height_touches_the_ground():
    for robot, clearance in ((m.box(), 0.05), (m.ball(), 0.0), (m.quadruped(), 0.02)):
        z = rk.standing_height(robot, clearance=clearance)
        q = robot.neutral()
        q[6] = z - clearance - 1e-4
        touching = rk.simulate(robot, q, duration=0.001, ground=rk.Ground(), self_collision=False)
        assert touching.summary["deepest_penetration"] == pytest.approx(1e-4, abs=1e-9)
        assert rk.standing_height(robot, clearance=clearance, ground=True) == z  # as simulate takes it
    with pytest.raises(rk.ShapeError, match="fixed base"):
        rk.standing_height(m.double_pendulum())


def test_standing_heights_of_rows_are_those_of_single_configurations():
    robot = m.quadruped()
    q = robot.random_configuration(0, size=5)
    for ground in (None, rk.Ground(shapes=[rk.Solid(rk.model.Box((9.0, 9.0, 0.2)))])):
        z = rk.standing_height(robot, q, 0.1, ground=ground)
        single = [rk.standing_height(robot, row, 0.1, ground=ground) for row in q]
        assert z.shape == (5,) and list(z) == single
    q[:, 6] = rk.standing_height(robot, q)
    rk.rollout(robot, q, duration=0.01, ground=True, self_collision=False)  # none starts in the ground


def test_standing_configuration_is_reproducible_and_inside_the_limits():
    robot = m.humanoid()
    a, b = (rk.standing_configuration(robot, tilt=0.1, seed=3) for _ in range(2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, rk.standing_configuration(robot, tilt=0.1, seed=4))
    assert np.linalg.norm(a[:4]) == pytest.approx(1.0)
    for joint in robot.joints[1:]:
        assert joint.lower <= a[joint.q_slice][0] <= joint.upper
    turned = rk.standing_configuration(robot, tilt=[math.cos(0.3), math.sin(0.3), 0, 0])
    assert turned[:4] == pytest.approx([math.cos(0.3), math.sin(0.3), 0, 0])


def test_every_slot_of_the_ledger_is_an_output():
    assert len(set(motion.SLOTS)) == motion.SIZE
    assert motion.SLOTS[motion.IMPULSE][-1] == "impulse_fz"


def test_a_controller_that_fails_on_the_way_leaves_what_was_computed():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))

    def controller(t, q, v):
        if t > 0.02:
            raise ValueError("no more torque")
        return np.zeros(2)

    with pytest.raises(
        rk.SimulationError, match=r"controller failed at t = 0.02 s: ValueError: no more"
    ) as error:
        rk.simulate(robot, duration=1.0, controller=controller)
    assert error.value.trajectory.t[-1] >= 0.02 and isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize("bad", [[math.nan, 0.0], [math.inf, 0.0], np.zeros(3), None])
def test_a_controller_that_goes_wrong_on_the_way_is_named(bad):
    def controller(t, q, v):
        return bad if t > 0.0105 else np.zeros(2)

    with pytest.raises(
        rk.SimulationError, match=r"t = 0\.011 s: (ShapeError|InvalidValue): controller's tau"
    ) as caught:
        rk.simulate(m.double_pendulum(), [1.0, 0.0], duration=1.0, controller=controller, record_every=1)
    assert caught.value.trajectory.t[-1] == pytest.approx(0.011)
    assert np.isfinite(caught.value.trajectory.energy.total).all()


@pytest.mark.parametrize("when", [0.0, 0.0105])
def test_ctrl_c_between_two_records_keeps_those_before(when):
    def controller(t, q, v):
        if t >= when:
            raise KeyboardInterrupt
        return np.ones(2)

    run = rk.simulate(m.double_pendulum(), duration=1.0, controller=controller, record_every=4)
    whole = rk.simulate(
        m.double_pendulum(), duration=0.008, controller=lambda t, q, v: np.ones(2), record_every=4
    )
    assert run.summary["interrupted"] is True
    assert len({len(x) for x in (run.t, run.q, run.v, run.tau, run.momentum, run.energy.total)}) == 1
    if not when:
        assert run.t.tolist() == [0.0]
    else:
        assert run.t[:3] == pytest.approx([0.0, 0.004, 0.008])
        assert np.array_equal(run.q[:3], whole.q)
    assert whole.summary["interrupted"] is False


def test_short_contact_steps_are_not_warned_of(recwarn):
    q = rk.standing_configuration(m.box(), height=0.05)
    rk.simulate(m.box(), q, duration=0.3, dt=4e-3, ground=rk.Ground())
    rk.simulate(m.double_pendulum(), duration=0.1, dt=0.01)
    assert not recwarn.list


def test_a_friction_for_an_unknown_link_is_named():
    q = rk.standing_configuration(m.box())
    with pytest.raises(rk.UnknownName, match="did you mean 'box'"):
        rk.simulate(m.box(), q, ground=rk.Ground(friction={"bxo": 0.1}))


def test_gravity_is_that_of_the_world():
    run = rk.simulate(m.box(), duration=0.5, gravity=(1.0, 2.0, 3.0))
    assert run.q[-1, 4:] == pytest.approx([0.125, 0.25, 0.375], abs=1e-12)
    assert run.robot.gravity == pytest.approx([1.0, 2.0, 3.0])
    assert m.box().gravity == pytest.approx([0.0, 0.0, -m.G])


def test_report_fits_a_terminal():
    falling = rk.simulate(
        m.quadruped(), rk.standing_configuration(m.quadruped(), 0.1, 0.2), duration=0.3, ground=rk.Ground()
    )
    free = rk.simulate(m.free_chain(), None, np.ones(m.free_chain().nv), duration=0.1)
    held = rk.simulate(m.double_pendulum(), duration=0.05, controller=lambda t, q, v: np.zeros(2))
    for run in (falling, free, held):
        lines = run.report()
        assert len(lines) >= 4
        assert max(map(len, lines)) <= 80, max(lines, key=len)
        assert all(line == line.rstrip() and "\n" not in line for line in lines)
    text = "\n".join(falling.report())
    assert "300 steps of 1 ms" in text and "(contact)" in text
    assert f"{1e3 * falling.summary['deepest_penetration']:.2g} mm" in text
    assert f"{falling.energy.dissipated[-1]:.4g} J dissipated" in text


def test_a_start_deep_inside_the_ground_is_refused():
    humanoid = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    with pytest.raises(rk.ShapeError, match=r"starts 0\.935 m below the ground; start from rk.standing"):
        rk.simulate(humanoid, duration=0.01, ground=True)


def test_a_robot_that_cannot_move_simulates_to_itself():
    robot = rk.loads_urdf('<robot name="stone"><link name="a"/></robot>')
    trajectory = rk.simulate(robot, duration=0.01)
    assert len(trajectory) == 3 and not trajectory.momentum.any()


def test_an_energy_balance_that_is_far_off_warns():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with pytest.warns(UserWarning, match="energy balance is off by"):
        rk.simulate(robot, [2.0, 1.0], duration=2.0, dt=0.1, integrator="rkmk4")
