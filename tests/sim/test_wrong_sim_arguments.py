"""Every argument of the simulator that makes no sense is named in one clear error."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sim_models as m
from for_each import for_each

import robokit as rk

MASKED = np.ma.masked_array([0.1, 0.2], mask=[True, False])
NO_NUMBERS = ["x", "1", None, True, 1j, [1.0], {}, ..., math.nan, math.inf, -math.inf, 10**400, np.ma.masked]
NO_COUNTS = ["x", True, 1.5, 1j, [1], -1, math.nan]
NO_STATES = [
    "ab",
    ["a", "b"],
    [1j, 0.0],
    [None, 1.0],
    [True, False],
    MASKED,
    [[1.0], [2.0, 3.0]],
    {},
    ...,
]


def _refused(what, function, *arguments, **options):
    with pytest.raises((rk.ShapeError, rk.InvalidValue, rk.WrongType, rk.UnknownName)) as caught:
        function(*arguments, **options)
    message = str(caught.value)
    assert message.startswith(what) or f"{what}=" in message or what == "integrator", message
    assert len(message) < 400


@for_each("run", [rk.simulate, rk.rollout])
@for_each("name", ["duration", "dt", "joint_damping"])
@for_each("wrong", NO_NUMBERS)
def test_numbers_of_a_run(run, name, wrong):
    if wrong is None and name != "duration":
        return
    _refused(name, run, m.double_pendulum(), **{name: wrong})


@for_each("number", [Fraction(1, 50), np.array(0.02), np.float32(0.02)])
def test_one_number_of_another_type(number):
    robot = m.double_pendulum()
    run = rk.simulate(robot, duration=number, record_every=np.array(2))
    assert np.array_equal(run.q, rk.simulate(robot, duration=float(number), record_every=2).q)


@for_each("run", [rk.simulate, rk.rollout])
def test_runs_that_would_not_end(run):
    for times in ({"duration": 1e300}, {"dt": 1e-300}, {"duration": 1e9, "dt": 1e-3}):
        _refused("duration", run, m.double_pendulum(), **times)


@for_each("run", [rk.simulate, rk.rollout])
@for_each("wrong", [*NO_COUNTS, 0])
def test_counts_of_a_run(run, wrong):
    _refused("record_every", run, m.double_pendulum(), record_every=wrong)
    if run is rk.rollout:
        _refused("threads", run, m.double_pendulum(), threads=wrong)
        if wrong != 0:
            _refused("steps", run, m.double_pendulum(), steps=wrong)


@for_each("run", [rk.simulate, rk.rollout])
@for_each("wrong", NO_STATES)
def test_states_of_a_run(run, wrong):
    for name in ("q0", "v0"):
        _refused(name, run, m.double_pendulum(), **{name: wrong})
    if run is rk.rollout:
        _refused("tau", run, m.double_pendulum(), tau=wrong)


@for_each("run", [rk.simulate, rk.rollout])
@for_each("wrong", [0, 0.0, "", "yes", [], 3.0])
def test_grounds_of_a_run(run, wrong):
    _refused("ground", run, m.double_pendulum(), ground=wrong)


@for_each("run", [rk.simulate, rk.rollout])
@for_each("wrong", ["verlet", "", 3, ["contact"], True])
def test_integrators(run, wrong):
    _refused("integrator", run, m.double_pendulum(), integrator=wrong)


@for_each("wrong", [3, "f", [0.0, 0.0]])
def test_a_controller_is_a_function(wrong):
    _refused("controller", rk.simulate, m.double_pendulum(), controller=wrong)


def test_a_controller_takes_three_arguments():
    with pytest.raises(rk.ShapeError, match=r"controller: expected a function \(t, q, v\) .* takes \(t\)"):
        rk.simulate(m.double_pendulum(), controller=lambda t: np.zeros(2))


@for_each("run", [rk.simulate, rk.rollout, rk.standing_configuration, rk.standing_height])
@for_each("wrong", [None, "humanoid", 3, {}])
def test_what_is_no_robot(run, wrong):
    _refused("robot", run, wrong)


def test_gravities():
    for wrong in ("down", 9.81, (0, 0), (0, 0, math.nan), (0, 0, 1j), None):
        if wrong is not None:
            _refused("gravity", rk.simulate, m.double_pendulum(), gravity=wrong)


@for_each("name", ["height", "sink", "time"])
@for_each("wrong", NO_NUMBERS)
def test_numbers_of_a_ground(name, wrong):
    if name != "height" and wrong is None:
        return
    _refused("Ground", rk.Ground, **{name: wrong})


@for_each("given", [{"slip": 1e-3}, {"sweeps": 1}, {"max_points": 40}])
def test_old_arguments_of_a_ground_are_said_to_do_nothing(given):
    with pytest.warns(rk.SimulationWarning, match=f"{next(iter(given))}.*nothing"):
        assert rk.Ground(**given) == rk.Ground()


@for_each("wrong", [*NO_STATES[:-2], "0.5", None, True, 1j, -0.1, [[0.1]], []])
def test_frictions_of_a_ground(wrong):
    _refused("Ground", rk.Ground, friction=wrong)
    _refused("Ground", rk.Ground, friction={"link": wrong})


@for_each("wrong", NO_NUMBERS)
def test_numbers_of_a_standing_robot(wrong):
    for name in ("height", "ground_height", "tilt"):
        _refused(name, rk.standing_configuration, m.box(), **{name: wrong})
    for name in ("clearance", "ground_height"):
        _refused(name, rk.standing_height, m.box(), **{name: wrong})


@for_each("function", [rk.standing_configuration, rk.standing_height])
@for_each("wrong", [*NO_STATES, np.zeros(7), np.full(7, np.nan), np.ones(3)])
def test_configurations_of_a_standing_robot(function, wrong):
    _refused("q", function, m.box(), q=wrong)


@for_each("wrong", ["x", -1, 1.5, 1j, {}, math.nan])
def test_seeds(wrong):
    _refused("seed", rk.standing_configuration, m.box(), seed=wrong)


def test_tilts():
    for wrong in ([1.0, 0.0], [2.0, 0, 0, 0], [math.nan, 0, 0, 0], "north"):
        _refused("tilt", rk.standing_configuration, m.box(), tilt=wrong)


def test_records_that_no_memory_holds():
    _refused("duration", rk.rollout, m.double_pendulum(), np.zeros((100, 2)), steps=10**10, record_every=1)


def test_a_start_beyond_the_range_of_the_sines_is_an_error_of_q0():
    arm = rk.load_urdf(rk.find_robot("arm"))
    q = arm.neutral()
    q[2] = 1e12
    for call in (
        lambda: rk.simulate(arm, q, duration=0.01),
        lambda: rk.rollout(arm, q[None], duration=0.01),
        lambda: rk.rollout(arm, np.stack([arm.neutral(), q]), duration=0.01),
    ):
        with pytest.raises(rk.InvalidValue, match=r"^q0: expected an angle of at most 1073741824 rad"):
            call()


def test_a_number_for_a_vector_and_a_mapping_for_a_configuration_are_named():
    robot = m.double_pendulum()
    with pytest.raises(rk.ShapeError, match=r"gravity: expected 3 numbers, got one number, -9\.81"):
        rk.simulate(robot, gravity=-9.81)
    for call in (lambda q: rk.simulate(robot, q), lambda q: rk.gravity_forces(robot, q)):
        with pytest.raises(rk.ShapeError, match=r"robot\.configuration\(joints=\{\.\.\.\}\) makes one"):
            call({"upper": 0.3})


def test_what_is_meant_for_another_function_names_it():
    robot = m.double_pendulum()
    with pytest.raises(rk.ShapeError, match=r"q0: expected shape \(2,\), got \(5, 2\); rk\.rollout"):
        rk.simulate(robot, np.zeros((5, 2)))
    with pytest.raises(rk.ShapeError, match=r"tau: .* got a function; .* rk\.Simulation\(\.\.\., batch=B\)"):
        rk.rollout(robot, np.zeros((5, 2)), tau=lambda t, q, v: q)
    with pytest.raises(TypeError, match="'controller'; did you mean 'tau' or 'actuators'"):
        rk.rollout(robot, controller=lambda t, q, v: q)
    with pytest.raises(rk.RobokitError, match=r"got XML; rk\.loads_urdf reads the text"):
        rk.load('<robot name="a"><link name="b"/></robot>')
